#include "transport/shm/shm.h"

#include <new>
#include <utility>

#include "transport/shm/channel.h"
#include "transport/shm/refusal.h"

namespace thalweg {

Status ShmPort::open(const ShmOptions& options, std::unique_ptr<ShmPort>& port, std::string& why) try {
    auto impl = std::make_unique<Impl>(options);
    if (const Status status = impl->start(why); failed(status)) return status;
    port.reset(new ShmPort(std::move(impl)));
    return Status::ok;
} catch (const std::bad_alloc&) {
    why = "no memory";
    return Status::out_of_memory;
}

ShmPort::ShmPort(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ShmPort::~ShmPort() = default;

std::span<const std::byte> ShmPort::address() const { return impl_->address(); }
Status ShmPort::meet(std::uint32_t process, std::span<const std::byte> address, std::string& why) {
    return impl_->meet(process, address, why);
}
bool ShmPort::knows(std::uint32_t process) const { return impl_->knows(process); }
std::size_t ShmPort::mapped_bytes() const { return impl_->mapped_bytes(); }

void ShmPort::poll() {
    if (impl_->in_child()) return;
    const Impl::Driver lock(*impl_);
    impl_->poll(false);
}

bool ShmPort::has_left() { return impl_->in_child() || impl_->all_left(); }

ChannelName ShmPort::name_channel() { return impl_->name_channel(); }

Status ShmPort::make_channel(const ShmGroup& group, std::unique_ptr<Transport>& channel) try {
    if (group.size < 1 || group.rank < 0 || group.rank >= group.size) return Status::invalid_argument;
    auto made = std::make_unique<shm::Channel>(*impl_, group);
    if (const Status status = made->open(); failed(status)) return status;
    channel = std::move(made);
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

Status ShmPort::make_bare_channel(std::unique_ptr<Transport>& channel) try {
    auto made = std::make_unique<shm::Channel>(*impl_, ShmGroup{});
    if (const Status status = made->grow(1); failed(status)) return status;
    channel = std::move(made);
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

void* ShmPort::allocate(std::size_t bytes) { return impl_->allocate(bytes); }
void ShmPort::release(void* memory) { impl_->release(memory); }
Status ShmPort::set_protocol(const char* name) { return impl_->set_protocol(name); }
void ShmPort::set_wire_ns(std::uint64_t ns) { impl_->set_wire_ns(ns); }
std::uint64_t ShmPort::copies_left() const { return impl_->copies_left(); }
bool ShmPort::holds(const void* memory, std::size_t bytes) { return impl_->holds(memory, bytes); }
std::vector<ShmAccount> ShmPort::accounts() { return impl_->accounts(); }
const char* ShmPort::description() const { return impl_->description(); }

const char* ShmPort::Impl::description() const {
    const std::lock_guard lock(mutex_);
    bool reads = false, refused = false;
    for (const auto& [process, peer] : peers_) {
        if (process == options_.process) continue;
        reads |= peer->segment.reads();
        refused |= !peer->segment.reads();
    }
    if (!refused) return "rings, and copies from process to process";
    return reads ? "rings, and copies between some processes" : shm::why_rings_only();
}

}  // namespace thalweg
