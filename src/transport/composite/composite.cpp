#include "transport/composite/composite.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/clock.h"
#include "transport/packing/packing.h"
#include "transport/peer_account.h"
#include "transport/shm/shm.h"

namespace thalweg {
namespace {

// Looks at the wire before a chunk is copied, as long as each found something: control messages, mostly.
constexpr int looks_at_wire = 4;

}  // namespace

Junction::~Junction() {
    if (descriptor_ >= 0) close(descriptor_);
}

int Junction::descriptor_of(int inside, int between) {
    const std::lock_guard lock(mutex_);
    if (descriptor_ >= 0) return descriptor_;
    const int made = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event = {};
    event.events = EPOLLIN;
    if (made >= 0 && epoll_ctl(made, EPOLL_CTL_ADD, inside, &event) == 0 &&
        epoll_ctl(made, EPOLL_CTL_ADD, between, &event) == 0)
        return descriptor_ = made;
    if (made >= 0) close(made);
    return -1;
}

class Composite final : public Transport {
  public:
    explicit Composite(CompositeParts parts) : parts_(std::move(parts)) {
        const Capabilities& inside = parts_.inside->capabilities();
        const Capabilities& between = parts_.between->capabilities();
        capabilities_.name = "shm and ucx";
        capabilities_.max_message_bytes = std::min(inside.max_message_bytes, between.max_message_bytes);
        capabilities_.live_operations = std::min(inside.live_operations, between.live_operations);
        capabilities_.wakeup_descriptor = inside.wakeup_descriptor && between.wakeup_descriptor;
        capabilities_.any_thread = inside.any_thread && between.any_thread;
        capabilities_.one_sided = inside.one_sided && between.one_sided;
        capabilities_.stand_ins = inside.stand_ins;
        capabilities_.tells_excess = inside.tells_excess && between.tells_excess;
        capabilities_.rails = between.rails;
        if (parts_.accounts != nullptr) parts_.accounts->measures_wire();
    }
    // What is on its way and nobody waits for any more must not count as load for ever.
    ~Composite() override {
        bool any = false;
        for (const Crossing& crossing : crossing_) {
            if (!crossing.metered) continue;
            const std::uint64_t time_ns = now_ns();
            for_meters([&](WireMeter& meter) { meter.dropped(crossing.direction, crossing.bytes, time_ns); });
            any = true;
        }
        if (any) tell_port();
    }
    Composite(const Composite&) = delete;
    Composite& operator=(const Composite&) = delete;

    Status open() {
        if (const Status status = grow(std::max(parts_.inside->slots(), parts_.between->slots()));
            failed(status))
            return status;
        if (!capabilities_.wakeup_descriptor) return Status::ok;
        descriptor_ = parts_.junction->descriptor_of(parts_.inside->wait_descriptor(),
                                                     parts_.between->wait_descriptor());
        return descriptor_ >= 0 ? Status::ok : Status::unsupported;
    }

    const Capabilities& capabilities() const override { return capabilities_; }
    int rank() const override { return parts_.between->rank(); }
    int size() const override { return parts_.between->size(); }
    Slot slots() const override { return slots_; }
    Status grow(Slot slots) override try {
        if (slots <= slots_) return Status::ok;
        crossing_.resize(slots);
        packing_.grow(slots);
        for (Transport* part : {parts_.inside.get(), parts_.between.get()})
            if (const Status status = part->grow(slots); failed(status)) return status;
        slots_ = slots;
        return Status::ok;
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }

    void expect(int peer, std::size_t bytes) override { part_of(peer).expect(peer, bytes); }
    void forgo(int peer, std::size_t bytes) override { part_of(peer).forgo(peer, bytes); }

    Status post_send(Slot slot, int peer, MessageId id, const void* data, std::size_t bytes,
                     SendMode mode) override {
        if (failed(failure_)) return failure_;
        if (is_near(peer)) return noted(parts_.inside->post_send(slot, peer, id, data, bytes, mode));
        if (packing_.wants_look())
            if (const Status status = look(); failed(status)) return status;
        cross(slot, WireMeter::out, bytes);
        std::size_t packed = 0;
        const void* const from = packing_.load(data, bytes, packed);
        if (packed > 0) note_packed(peer);
        return noted(parts_.between->post_send(slot, peer, id, from, bytes, mode));
    }
    Status post_recv(Slot slot, int peer, MessageId id, void* data, std::size_t bytes) override {
        if (failed(failure_)) return failure_;
        crossing_[slot].inside = is_near(peer);
        if (is_near(peer)) return noted(parts_.inside->post_recv(slot, peer, id, data, bytes));
        cross(slot, WireMeter::in, bytes);
        void* const to = packing_.expect(slot, data, bytes, id.unequal);
        if (packing_.expects(slot)) note_packed(peer);
        return noted(parts_.between->post_recv(slot, peer, id, to, bytes));
    }

    // The wire first, then what is inside, where one chunk is copied at most.
    Status progress(std::span<Slot> done, std::size_t& count) override {
        count = 0;
        stirred_ = false;
        if (failed(failure_)) return failure_;
        count = packing_.take_early(done);
        for (int look = 0; look < looks_at_wire && count < done.size(); ++look) {
            std::size_t completed = 0;
            const Status status = parts_.between->progress(done.subspan(count), completed);
            if (failed(status)) return noted(status);
            count += arrived(done.subspan(count, completed));
            stirred_ |= parts_.between->stirred();
            if (completed == 0 && !parts_.between->stirred()) break;
        }
        if (!packing_.idle() && count < done.size()) {
            Slot slot = 0;
            if (packing_.unpack(*parts_.between, slot)) done[count++] = slot;
            stirred_ = true;
        }
        std::size_t completed = 0;
        const Status status = parts_.inside->progress(done.subspan(count), completed);
        stirred_ |= parts_.inside->stirred();
        if (!failed(status)) count += completed;
        return noted(status);
    }
    std::uint64_t received_bytes(Slot slot) const override {
        return (crossing_[slot].inside ? *parts_.inside : *parts_.between).received_bytes(slot);
    }
    bool stirred() const override { return stirred_; }
    bool has_work() const override {
        return !packing_.rests() || parts_.between->has_work() || parts_.inside->has_work();
    }

    std::uint64_t sent() const override { return parts_.between->sent(); }
    bool has_left(std::uint64_t sent) override {
        const bool inside = parts_.inside->has_left(parts_.inside->sent());
        return parts_.between->has_left(sent) && inside;
    }
    void drive_host() override { parts_.between->drive_host(); }

    int wait_descriptor() const override { return descriptor_; }
    Status arm() override {
        if (!capabilities_.wakeup_descriptor) return Status::unsupported;
        if (!packing_.rests()) return Status::in_progress;
        const Status inside = parts_.inside->arm();
        return inside == Status::ok ? parts_.between->arm() : inside;
    }
    void give_up() override { fail(Status::transport_failed); }
    bool crosses(int peer) const override { return !is_near(peer); }
    int inside_descriptor() const override { return parts_.inside->wait_descriptor(); }
    Status arm_inside() override { return packing_.rests() ? parts_.inside->arm() : Status::in_progress; }

    Status stand_in(StandIn memory) override try {
        if (!capabilities_.stand_ins) return Status::unsupported;
        packing_.add(memory);
        const Status status = parts_.inside->stand_in(memory);
        if (failed(status)) packing_.remove(memory.memory);
        return status;
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }
    void end_stand_in(const std::byte* memory) override {
        parts_.inside->end_stand_in(memory);
        packing_.remove(memory);
    }

    // A key: the lengths of those of both, and these.
    Status expose(void* memory, std::size_t bytes, Region& region, std::vector<std::byte>& key) override try {
        if (!capabilities_.one_sided) return Status::unsupported;
        std::vector<std::byte> keys[2];
        const Region free = free_number(exposed_);
        Exposed exposed;
        exposed.used = true;
        Status status = parts_.inside->expose(memory, bytes, exposed.inside, keys[0]);
        if (failed(status)) return status;
        status = parts_.between->expose(memory, bytes, exposed.between, keys[1]);
        if (!failed(status)) {
            status = join(keys, key);
            if (failed(status)) parts_.between->conceal(exposed.between);
        }
        if (failed(status)) {
            parts_.inside->conceal(exposed.inside);
            return status;
        }
        exposed_[region = free] = exposed;
        return Status::ok;
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }
    void conceal(Region region) override {
        parts_.inside->conceal(exposed_[region].inside);
        parts_.between->conceal(exposed_[region].between);
        exposed_[region].used = false;
    }
    Status attach(int peer, std::span<const std::byte> key, Target& target) override try {
        std::uint64_t lengths[2] = {};
        if (key.size() < sizeof lengths) return Status::invalid_argument;
        std::memcpy(lengths, key.data(), sizeof lengths);
        key = key.subspan(sizeof lengths);
        if (lengths[0] > key.size() || lengths[1] != key.size() - lengths[0]) return Status::invalid_argument;
        Attached attached{true, is_near(peer), 0};
        Transport& part = attached.is_near ? *parts_.inside : *parts_.between;
        const Target free = free_number(attached_);
        const Status status = part.attach(
            peer, attached.is_near ? key.first(lengths[0]) : key.subspan(lengths[0]), attached.target);
        if (failed(status)) return status;
        attached_[target = free] = attached;
        return Status::ok;
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }
    void detach(Target target) override {
        Attached& attached = attached_[target];
        (attached.is_near ? *parts_.inside : *parts_.between).detach(attached.target);
        attached.used = false;
    }
    Status post_put(Slot slot, Target target, std::uint64_t offset, const void* data, std::size_t bytes,
                    MessageId signal) override {
        if (failed(failure_)) return failure_;
        const Attached& attached = attached_[target];
        if (attached.is_near)
            return noted(parts_.inside->post_put(slot, attached.target, offset, data, bytes, signal));
        cross(slot, WireMeter::out, bytes);
        return noted(parts_.between->post_put(slot, attached.target, offset, data, bytes, signal));
    }

  private:
    struct Exposed {
        bool used = false;
        Region inside = 0, between = 0;
    };
    struct Attached {
        bool used = false;
        bool is_near = false;
        Target target = 0;
    };
    // Of a slot in use.
    struct Crossing {
        bool metered = false;
        WireMeter::Direction direction = WireMeter::out;
        std::size_t bytes = 0;
        bool inside = false;  // of a receive: it does not cross after all
    };

    template <typename Entry>
    static std::uint32_t free_number(std::vector<Entry>& all) {
        const auto free =
            std::find_if(all.begin(), all.end(), [](const Entry& entry) { return !entry.used; });
        const auto number = static_cast<std::uint32_t>(free - all.begin());
        if (free == all.end()) all.emplace_back();
        return number;
    }

    // The key of both.
    static Status join(const std::vector<std::byte> (&keys)[2], std::vector<std::byte>& key) noexcept try {
        const std::uint64_t lengths[2] = {keys[0].size(), keys[1].size()};
        key.resize(sizeof lengths);
        std::memcpy(key.data(), lengths, sizeof lengths);
        for (const std::vector<std::byte>& part : keys) key.insert(key.end(), part.begin(), part.end());
        return Status::ok;
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }

    // A part that has failed takes the whole with it, and nobody polls the other one any more either. (An
    // argument that is refused is no such failure.)
    Status noted(Status status) {
        if (status == Status::transport_failed || status == Status::mismatch) fail(status);
        return status;
    }
    void fail(Status status) {
        if (failed(failure_)) return;
        failure_ = status;
        for (Transport* part : {parts_.inside.get(), parts_.between.get()}) part->give_up();
    }
    Transport& part_of(int peer) { return is_near(peer) ? *parts_.inside : *parts_.between; }
    bool is_near(int peer) const { return (*parts_.is_near)[static_cast<std::size_t>(peer)]; }

    // The process's, and the communicator's where it has one.
    template <typename Tell>
    void for_meters(Tell tell) {
        tell(parts_.junction->meter());
        if (parts_.accounts != nullptr) tell(parts_.accounts->wire());
    }
    void note_packed(int peer) {
        if (parts_.accounts != nullptr) parts_.accounts->of(peer).packed();
    }

    // Small messages are latency, not load.
    static constexpr std::size_t least_metered_bytes = 4096;

    void cross(Slot slot, WireMeter::Direction direction, std::size_t bytes) {
        crossing_[slot] = {bytes >= least_metered_bytes, direction, bytes};
        if (!crossing_[slot].metered) return;
        const std::uint64_t time_ns = now_ns();
        for_meters([&](WireMeter& meter) { meter.posted(direction, bytes, time_ns); });
        tell_port();
    }
    // At the wire, in the midst of posting.
    Status look() {
        return noted(packing_.look(*parts_.between, [this](auto slots) { return arrived(slots); }));
    }
    // Of slots that the wire is done with: as Packing::arrived().
    std::size_t arrived(std::span<Slot> slots) {
        bool any = false;
        for (const Slot slot : slots) {
            Crossing& crossing = crossing_[slot];
            if (!crossing.metered) continue;
            crossing.metered = false;
            const std::uint64_t time_ns = now_ns();
            for_meters(
                [&](WireMeter& meter) { meter.completed(crossing.direction, crossing.bytes, time_ns); });
            any = true;
        }
        if (any) tell_port();
        return packing_.arrived(slots);
    }
    void tell_port() {
        if (parts_.port != nullptr) parts_.port->set_wire_ns(parts_.junction->meter().left_ns());
    }

    CompositeParts parts_;
    Capabilities capabilities_;
    Slot slots_ = 0;
    std::vector<Crossing> crossing_;  // by slot
    Packing packing_;                 // of what crosses
    std::vector<Exposed> exposed_;
    std::vector<Attached> attached_;
    int descriptor_ = -1;
    bool stirred_ = false;
    Status failure_ = Status::ok;
};

Status make_composite(CompositeParts parts, std::unique_ptr<Transport>& made) try {
    if (!parts.inside || !parts.between || !parts.junction || !parts.is_near ||
        parts.inside->size() != parts.between->size() || parts.inside->rank() != parts.between->rank() ||
        parts.is_near->size() != static_cast<std::size_t>(parts.between->size()))
        return Status::invalid_argument;
    auto composite = std::make_unique<Composite>(std::move(parts));
    if (const Status status = composite->open(); failed(status)) return status;
    made = std::move(composite);
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

}  // namespace thalweg
