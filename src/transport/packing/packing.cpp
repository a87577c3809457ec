#include "transport/packing/packing.h"

#include <algorithm>
#include <new>
#include <utility>

namespace thalweg {
namespace {

// Of elements that are packed or unpacked, between two looks at the wire.
constexpr std::size_t bytes_at_a_time = 256 * 1024;

}  // namespace

void Packing::grow(Slot slots) {
    arrived_.reserve(slots);
    early_.reserve(slots);
    if (slots <= expected_.size()) return;
    looked_.resize(slots);
    expected_.resize(slots);
}

bool Packing::wants_look() const { return packed_bytes_ >= bytes_at_a_time; }

std::size_t Packing::take_early(std::span<Slot> done) {
    packed_bytes_ = 0;
    const std::size_t count = std::min(done.size(), early_.size());
    std::copy_n(early_.begin(), count, done.begin());
    early_.erase(early_.begin(), early_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
}

const void* Packing::load(const void* data, std::size_t bytes, std::size_t& packed) {
    void* from = const_cast<void*>(data);
    const StandInPart part = stand_ins_.resolve(from, bytes);
    packed = part ? bytes : 0;
    packed_bytes_ += packed;
    if (part) part.load(static_cast<std::byte*>(from), 0, bytes);
    return from;
}

void* Packing::expect(Slot slot, void* data, std::size_t bytes, bool unequal) {
    const StandInPart part = stand_ins_.resolve(data, bytes);
    expected_[slot] = {part, bytes, unequal};
    return data;
}

std::size_t Packing::arrived(std::span<Slot> slots) {
    std::size_t done = 0;
    for (const Slot slot : slots) {
        if (expected_[slot].part)
            arrived_.push_back(slot);
        else
            slots[done++] = slot;
    }
    return done;
}

bool Packing::unpack(const Transport& transport, Slot& slot) {
    slot = arrived_.front();
    Expected& expected = expected_[slot];
    std::size_t all = expected.bytes;
    if (expected.unequal) all = std::min<std::uint64_t>(all, transport.received_bytes(slot));
    const std::size_t bytes = std::min(bytes_at_a_time, all - unpacked_);
    const std::byte* const packed = expected.part.whole->memory + expected.part.begin;
    expected.part.store(unpacked_, packed + unpacked_, bytes);
    unpacked_ += bytes;
    if (unpacked_ != all) return false;
    expected.part = {};
    arrived_.erase(arrived_.begin());
    unpacked_ = 0;
    return true;
}

namespace {

class PackingTransport final : public Transport {
  public:
    PackingTransport(std::unique_ptr<Transport> inner, PeerAccounts* accounts)
        : inner_(std::move(inner)), accounts_(accounts), capabilities_(inner_->capabilities()) {
        capabilities_.stand_ins = true;
        make_room();
    }

    const Capabilities& capabilities() const override { return capabilities_; }
    int rank() const override { return inner_->rank(); }
    int size() const override { return inner_->size(); }
    Slot slots() const override { return inner_->slots(); }
    Status grow(Slot slots) override try {
        const Status status = inner_->grow(slots);
        make_room();
        return status;
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }

    void expect(int peer, std::size_t bytes) override { inner_->expect(peer, bytes); }
    void forgo(int peer, std::size_t bytes) override { inner_->forgo(peer, bytes); }

    Status post_send(Slot slot, int peer, MessageId id, const void* data, std::size_t bytes,
                     SendMode mode) override {
        if (packing_.wants_look())
            if (const Status status = look(); failed(status)) return status;
        std::size_t packed = 0;
        const void* const from = packing_.load(data, bytes, packed);
        if (packed > 0) note_packed(peer);
        return inner_->post_send(slot, peer, id, from, bytes, mode);
    }
    Status post_recv(Slot slot, int peer, MessageId id, void* data, std::size_t bytes) override {
        void* const to = packing_.expect(slot, data, bytes, id.unequal);
        if (packing_.expects(slot)) note_packed(peer);
        return inner_->post_recv(slot, peer, id, to, bytes);
    }

    Status progress(std::span<Slot> done, std::size_t& count) override {
        count = 0;
        stirred_ = false;
        if (failed(failure_)) return failure_;
        count = packing_.take_early(done);
        std::size_t completed = 0;
        if (const Status status = inner_->progress(done.subspan(count), completed); failed(status))
            return status;
        count += packing_.arrived(done.subspan(count, completed));
        if (packing_.idle() || count == done.size()) return Status::ok;
        Slot slot = 0;
        if (packing_.unpack(*inner_, slot)) done[count++] = slot;
        stirred_ = true;
        return Status::ok;
    }
    std::uint64_t received_bytes(Slot slot) const override { return inner_->received_bytes(slot); }
    bool stirred() const override { return stirred_ || inner_->stirred(); }
    bool has_work() const override { return !packing_.rests() || inner_->has_work(); }
    std::uint64_t sent() const override { return inner_->sent(); }
    bool has_left(std::uint64_t sent) override { return inner_->has_left(sent); }
    void drive_host() override { inner_->drive_host(); }
    void give_up() override { inner_->give_up(); }

    int wait_descriptor() const override { return inner_->wait_descriptor(); }
    Status arm() override { return packing_.rests() ? inner_->arm() : Status::in_progress; }
    bool crosses(int peer) const override { return inner_->crosses(peer); }
    int inside_descriptor() const override { return inner_->inside_descriptor(); }
    Status arm_inside() override { return packing_.rests() ? inner_->arm_inside() : Status::in_progress; }

    Status stand_in(StandIn memory) override try {
        // What it would be without.
        if (memory.run() == memory.memory) return Status::unsupported;
        packing_.add(std::move(memory));
        return Status::ok;
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }
    void end_stand_in(const std::byte* memory) override { packing_.remove(memory); }

    Status expose(void* memory, std::size_t bytes, Region& region, std::vector<std::byte>& key) override {
        return inner_->expose(memory, bytes, region, key);
    }
    void conceal(Region region) override { inner_->conceal(region); }
    Status attach(int peer, std::span<const std::byte> key, Target& target) override {
        return inner_->attach(peer, key, target);
    }
    void detach(Target target) override { inner_->detach(target); }
    Status post_put(Slot slot, Target target, std::uint64_t offset, const void* data, std::size_t bytes,
                    MessageId signal) override {
        return inner_->post_put(slot, target, offset, data, bytes, signal);
    }

  private:
    void note_packed(int peer) {
        if (accounts_ != nullptr) accounts_->of(peer).packed();
    }
    void make_room() { packing_.grow(inner_->slots()); }
    // An error progress() says again.
    Status look() {
        return failure_ = packing_.look(*inner_, [this](auto slots) { return packing_.arrived(slots); });
    }

    std::unique_ptr<Transport> inner_;
    PeerAccounts* accounts_;  // or null
    Capabilities capabilities_;
    Packing packing_;
    bool stirred_ = false;
    Status failure_ = Status::ok;
};

}  // namespace

std::unique_ptr<Transport> with_packing(std::unique_ptr<Transport> inner, PeerAccounts* accounts) {
    if (inner == nullptr || inner->capabilities().stand_ins) return inner;
    return std::make_unique<PackingTransport>(std::move(inner), accounts);
}

}  // namespace thalweg
