#include "transport/ucx/port.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "transport/ucx/channel.h"

namespace thalweg {

using ucx::Channel;
using ucx::Part;
using ucx::Peer;
using ucx::Rail;
using ucx::Storage;

namespace {

// How long closing waits for peers to take what was sent.
constexpr std::uint64_t longest_close_ns = 2'000'000'000;
// And how long without sleeping.
constexpr std::uint64_t spin_ns = 1'000'000;
// Of names that have come back: with so many, new channels get those in the place of fresh ones, so that what
// is kept of them, four bytes each, does not grow for ever.
constexpr std::size_t most_returned = 1 << 16;

}  // namespace

UcxPort::Impl::Driver::Driver(Impl& port) : port_(port) {
    // The lock is not fair, and a driver that polls in a loop would keep it from posters.
    if (port_.posters_.load(std::memory_order_relaxed) != 0) sched_yield();
    port_.mutex_.lock();
}

UcxPort::Impl::Impl(const ucx::Library& library, const UcxOptions& options, const ucx::TagLayout& layout)
    : ucp_(library), options_(options), layout_(layout) {
    // No memory is taken while operations run, where not more peers than this greet at a time.
    constexpr std::size_t usual_greetings = 256;
    greetings_.reserve(usual_greetings);
}

Status UcxPort::Impl::check(const UcxDirectory& directory, std::string& why) const {
    const auto& [bytes, offsets, processes, owner] = directory;
    const std::size_t count = processes.empty() ? options_.processes : processes.size();
    const bool ordered =
        std::adjacent_find(processes.begin(), processes.end(), std::greater_equal()) == processes.end();
    if (offsets.size() != count + 1 || offsets.back() > bytes.size() || !ordered ||
        (!processes.empty() && processes.back() >= options_.processes)) {
        why = "a directory of addresses does not name processes once and in order";
        return Status::mismatch;
    }
    ucx::AddressView view;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t begin = offsets[i], end = offsets[i + 1];
        const auto process = [i, &processes = processes] {
            return "process " + std::to_string(processes.empty() ? i : processes[i]);
        };
        if (begin > end || end > bytes.size() || !parse_address(bytes.subspan(begin, end - begin), view)) {
            why = process() + " has an address that this build cannot read";
            return Status::mismatch;
        }
        if (view.rails.size() == rails_.size()) continue;
        why = process() + " has " + std::to_string(view.rails.size()) + " rails, process " +
              std::to_string(options_.process) + " has " + std::to_string(rails_.size());
        return Status::mismatch;
    }
    return Status::ok;
}

Status UcxPort::Impl::learn(const UcxDirectory& directory, std::string& why) try {
    if (const Status status = check(directory, why); failed(status)) return status;
    std::vector<UcxDirectory> replaced;  // their memory is given back without the lock
    const auto names_all_of = [](const UcxDirectory& one, const UcxDirectory& other) {
        return one.processes.empty() ||
               (!other.processes.empty() && std::includes(one.processes.begin(), one.processes.end(),
                                                          other.processes.begin(), other.processes.end()));
    };
    const Poster lock(*this);
    for (const UcxDirectory& each : directories_)
        if (names_all_of(each, directory) && !names_all_of(directory, each)) return Status::ok;
    directories_.reserve(directories_.size() + 1);
    replaced.reserve(directories_.size());
    greetings_.reserve(greetings_.size() + strangers_.size() * rails_.size());
    const auto kept =
        std::stable_partition(directories_.begin(), directories_.end(),
                              [&](const UcxDirectory& each) { return !names_all_of(directory, each); });
    std::move(kept, directories_.end(), std::back_inserter(replaced));
    directories_.erase(kept, directories_.end());
    directories_.push_back(directory);
    hear_strangers();
    return Status::ok;
} catch (const std::bad_alloc&) {
    why = "no memory for the addresses of others";
    return Status::out_of_memory;
}

bool UcxPort::Impl::knows(std::uint32_t process) {
    const Poster lock(*this);
    return !address_of(process).empty();
}

bool UcxPort::Impl::reaches(std::uint32_t process, std::string& why) {
    const Poster lock(*this);
    Peer* peer = nullptr;
    if (!failed(reach(process, peer))) return true;
    why = "libucp finds no way to process " + std::to_string(process) + ": " +
          (peer != nullptr ? ucp_.status_string(peer->reason) : "its address makes no sense");
    return false;
}

std::span<const std::byte> UcxPort::Impl::address_of(std::uint32_t process) const {
    for (const UcxDirectory& each : directories_) {
        std::size_t at = process;
        if (!each.processes.empty()) {
            const auto found = std::lower_bound(each.processes.begin(), each.processes.end(), process);
            if (found == each.processes.end() || *found != process) continue;
            at = static_cast<std::size_t>(found - each.processes.begin());
        }
        if (at + 1 < each.offsets.size())
            return each.bytes.subspan(each.offsets[at], each.offsets[at + 1] - each.offsets[at]);
    }
    return {};
}

Status UcxPort::Impl::name_channel(UcxChannelName& name) {
    const Poster lock(*this);
    std::uint32_t counter = 0;
    if (next_counter_ < layout_.counters() && returned_counters_.size() < most_returned) {
        counter = static_cast<std::uint32_t>(next_counter_++);
    } else if (!returned_counters_.empty()) {
        counter = returned_counters_.front();
        returned_counters_.pop_front();
    } else {
        return Status::unsupported;
    }
    name = {options_.process, counter};
    return Status::ok;
}

void UcxPort::Impl::give_back(UcxChannelName name) {
    if (in_child()) return;
    const Poster lock(*this);
    if (name.root == options_.process) returned_counters_.push_back(name.counter);
}

void UcxPort::Impl::refuse(UcxChannelName name) {
    if (in_child()) return;
    const Poster lock(*this);
    for (const OperationSpace space : {OperationSpace::calls, OperationSpace::plans})
        channels_.try_emplace(layout_.channel(name, space), nullptr);
}

bool UcxPort::Impl::open(Channel& channel) { return channels_.emplace(channel.name(), &channel).second; }

void UcxPort::Impl::close(Channel& channel, bool settled) {
    awake(channel);
    Part* left = std::exchange(first_deferred_, nullptr);
    last_deferred_ = nullptr;
    while (left != nullptr) {
        Part& part = *left;
        left = part.next_deferred;
        if (part.storage->channel != &channel) defer(part);
    }
    if (settled)
        channels_.erase(channel.name());
    else
        channels_.find(channel.name())->second = nullptr;
}

void UcxPort::Impl::adopt(std::unique_ptr<Storage> storage, Orphans& place) noexcept {
    place.front() = std::move(storage);
    orphans_.splice(orphans_.end(), place);
}

Peer* UcxPort::Impl::find(std::uint32_t process) {
    const auto known = peers_.find(process);
    if (known != peers_.end()) return known->second.get();
    ucx::AddressView view;
    if (!parse_address(address_of(process), view)) return nullptr;
    auto peer = std::make_unique<Peer>();
    peer->port = this;
    peer->process = process;
    peer->same_host = view.host_key == options_.host_key;
    peer->endpoints.resize(rails_.size());
    peer->greetings.resize(rails_.size());
    return peers_.emplace(process, std::move(peer)).first->second.get();
}

// Called by libucp within a poll, where endpoints must not be closed yet, nor anything thrown.
void UcxPort::Impl::on_error(void* argument, ucp_ep_h, ucs_status_t status) {
    Peer& peer = *static_cast<Peer*>(argument);
    if (peer.dead) return;
    peer.dead = true;
    peer.reason = status;
    peer.next_dying = std::exchange(peer.port->dying_, &peer);
}

// A peer that has gone fails the channels that still want something of it. One that has finished and closed
// is not missed by anybody, which is how every job ends.
void UcxPort::Impl::mourn() {
    for (Peer* peer = std::exchange(dying_, nullptr); peer != nullptr; peer = peer->next_dying) {
        peer->mourned = true;
        peer->held.clear();
        for (std::size_t rail = 0; rail < peer->endpoints.size(); ++rail) close_endpoint(*peer, rail, true);
        for (const auto& [name, channel] : channels_)
            if (channel) channel->peer_died(*peer);
    }
}

void UcxPort::Impl::close_endpoint(Peer& peer, std::size_t rail, bool force) {
    ucp_ep_h endpoint = std::exchange(peer.endpoints[rail], nullptr);
    if (!endpoint) return;
    ucp_request_param_t parameters = {};
    parameters.op_attr_mask =
        UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    parameters.user_data = this;
    parameters.cb.send = [](void* request, ucs_status_t, void* user_data) {
        Impl& port = *static_cast<Impl*>(user_data);
        port.ucp_.request_free(request);
        --port.closing_;
    };
    const ucs_status_ptr_t answer = ucp_.ep_close_nbx(endpoint, &parameters);
    if (answer && !UCS_PTR_IS_ERR(answer)) ++closing_;
}

bool UcxPort::Impl::poll() {
    unsigned moved = 0;
    for (const Rail& rail : rails_) moved += ucp_.worker_progress(rail.worker);
    if (is_greeted()) answer_greetings();
    run_deferred();
    if (dying_ != nullptr) mourn();
    if (!orphans_.empty()) {
        std::erase_if(orphans_, [](const auto& storage) { return storage->in_flight == 0; });
    }
    return moved != 0;
}

void UcxPort::Impl::defer(Part& part) noexcept {
    part.next_deferred = nullptr;
    (first_deferred_ == nullptr ? first_deferred_ : last_deferred_->next_deferred) = &part;
    last_deferred_ = &part;
}

void UcxPort::Impl::run_deferred() {
    while (first_deferred_ != nullptr) {
        const Part& part = *first_deferred_;
        first_deferred_ = part.next_deferred;
        part.storage->channel->send_signal(part.slot);
    }
}

// One flush at a time; what was sent after it began is the next one's.
bool UcxPort::Impl::has_left(std::uint64_t sent) {
    while (!is_known_to_have_left(sent)) {
        if (flushing_ != 0) return false;
        if (!is_known_to_have_left(leaving_)) {
            left_.store(leaving_, std::memory_order_relaxed);
            continue;
        }
        leaving_ = this->sent();
        ucp_request_param_t parameters = {};
        parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        parameters.user_data = this;
        parameters.cb.send = [](void* request, ucs_status_t, void* user_data) {
            Impl& port = *static_cast<Impl*>(user_data);
            port.ucp_.request_free(request);
            --port.flushing_;
        };
        // An error is a peer's that is gone, of which its channels hear by themselves.
        for (const Rail& rail : rails_)
            if (UCS_PTR_IS_PTR(ucp_.worker_flush_nbx(rail.worker, &parameters))) ++flushing_;
    }
    return true;
}

// Delivers what was sent: the flush of an endpoint over TCP ends when the peer's libucp has said that it has
// read all, for which the peer has to poll. Before that nothing may be closed: a socket that is closed while
// something of the peer's lies in it unread loses what the peer has not got yet. Ranks that end close at the
// same time, and so answer one another. Where a channel was given up with requests in flight, nothing is
// waited for, because their peers may never answer; and libucp, which asserts that a worker has no unfinished
// business when it is destroyed, keeps one that has.
bool UcxPort::Impl::close_endpoints() {
    const auto in_flight = [this] {
        return std::any_of(orphans_.begin(), orphans_.end(),
                           [](const auto& storage) { return storage->in_flight != 0; });
    };
    const bool force = in_flight();
    for (const auto& [process, peer] : peers_) {
        for (std::size_t rail = 0; rail < rails_.size(); ++rail) close_endpoint(*peer, rail, force);
    }
    const std::uint64_t begin_ns = now_ns();
    while (closing_ != 0 || flushing_ != 0 || in_flight()) {
        const std::uint64_t waited_ns = now_ns() - begin_ns;
        if (waited_ns > longest_close_ns) {
            THALWEG_LOG_AT(info, "libucp has not closed %d endpoints after 2 s; they are left to it",
                           closing_);
            return false;
        }
        for (const Rail& rail : rails_) ucp_.worker_progress(rail.worker);
        if (waited_ns > spin_ns) usleep(100);
    }
    return true;
}

// What libucp may still write to is kept, in sight of those who look for leaks.
void UcxPort::Impl::leave_behind() {
    struct Left {
        std::vector<Rail> rails;
        Orphans orphans;
        decltype(peers_) peers;
        Left* before;
    };
    static std::atomic<Left*> newest = nullptr;
    if (auto* const left = new (std::nothrow)
            Left{std::move(rails_), std::move(orphans_), std::move(peers_), newest.load()}) {
        while (!newest.compare_exchange_weak(left->before, left)) {
        }
        return;
    }
    for (auto& orphan : orphans_) (void)orphan.release();
    for (auto& [process, peer] : peers_) (void)peer.release();
}

UcxPort::Impl::~Impl() {
    bool closed = false;
    // In a child the lock, the workers and their sockets are the parent's.
    if (!in_child()) {
        const Poster lock(*this);
        closed = close_endpoints();
        if (closed) orphans_.clear();  // with keys of their workers
        for (const Rail& rail : rails_) {
            if (closed && rail.worker) ucp_.worker_destroy(rail.worker);
            if (closed && rail.context) ucp_.cleanup(rail.context);
        }
    }
    if (!closed) leave_behind();
    if (descriptor_ >= 0) ::close(descriptor_);
    if (bell_ >= 0) ::close(bell_);
}

}  // namespace thalweg
