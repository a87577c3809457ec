#include "transport/shm/channel.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace thalweg::shm {
namespace {

using Poster = ShmPort::Impl::Poster;
using Driver = ShmPort::Impl::Driver;

constexpr std::size_t most_bytes = std::size_t{1} << 40;
// Numbers of operations are compared as they are; this is what an engine may rely on.
constexpr std::uint32_t live_operations = 1u << 20;
// How long the end of a channel waits for a peer that may touch its memory, and how long without sleeping.
constexpr std::uint64_t longest_withdrawal_ns = 1'000'000'000, spin_ns = 1'000'000;

std::uint64_t name_of(const ShmGroup& group) {
    return std::uint64_t{group.space == OperationSpace::plans} << 63 | std::uint64_t{group.name.root} << 32 |
           group.name.counter;
}

// What a peer is told of exposed memory.
struct RemoteMemory {
    std::uint64_t address = 0, bytes = 0;
};

}  // namespace

Channel::Channel(ShmPort::Impl& port, const ShmGroup& group)
    : port_(port), group_(group), name_(name_of(group)) {
    capabilities_.name = "shm";
    capabilities_.max_message_bytes = most_bytes;
    capabilities_.live_operations = live_operations;
    capabilities_.wakeup_descriptor = true;
    capabilities_.any_thread = true;
    capabilities_.stand_ins = true;
    capabilities_.tells_excess = true;
}

Status Channel::open() {
    if (const Status status = grow(std::max<Slot>(group_.slots, 2)); failed(status)) return status;
    const Poster lock(port_);
    // Memory can be written into where the system allows it with everybody who is within reach.
    bool writes = true;
    for (std::size_t place = 0; place < near_ranks(); ++place) {
        const Peer* const peer = peer_of(near_rank(place));
        writes &= peer == nullptr || peer->segment.writes();
    }
    capabilities_.one_sided = writes;
    opened_ = port_.open(*this);
    return opened_ ? Status::ok : Status::invalid_argument;
}

Channel::~Channel() {
    if (port_.in_child()) return;
    withdraw();
    const Poster lock(port_);
    if (opened_)
        port_.close(*this);
    else
        port_.awake(*this);
    port_.release(slots_);
}

// What cannot be withdrawn in time is nobody's: this process neither reads nor writes it any more.
void Channel::withdraw() {
    const std::uint64_t begin_ns = now_ns();
    for (bool waits = opened_; waits;) {
        {
            const Driver lock(port_);
            const bool touched = port_.withdraw(*this);
            waits = touched && now_ns() - begin_ns < longest_withdrawal_ns;
            if (touched && !waits) {
                port_.abandon(*this);
                THALWEG_LOG_AT(
                    warn,
                    "memory of operations that were given up may still be read or written by another "
                    "process, which has not answered for 1 s");
            }
            if (waits) port_.poll(true);
        }
        // The peer may need this core to answer.
        if (waits && now_ns() - begin_ns > spin_ns) usleep(100);
    }
}

Status Channel::grow(Slot slots) try {
    const Poster lock(port_);
    if (slots <= slots_) return Status::ok;
    completed_.reserve(slots);
    received_.resize(slots);
    if (group_.accounts != nullptr) accounts_.resize(slots);
    port_.reserve(slots - slots_);
    slots_ = slots;
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

void Channel::expect(int, std::size_t bytes) {
    if (port_.in_child()) return;
    const Poster lock(port_);
    port_.expect(bytes);
}

void Channel::forgo(int, std::size_t bytes) {
    if (port_.in_child()) return;
    const Poster lock(port_);
    port_.forgo(bytes);
}

Key Channel::key_of(int rank, MessageId id) const {
    return {name_, id.operation % live_operations, id.message, process_of(rank)};
}

void Channel::fail(Status status) {
    if (!failed(failure_)) failure_ = status;
    port_.tell(*this);
}

Status Channel::lose(const Peer* peer, int rank) {
    if (!failed(failure_)) {
        THALWEG_LOG_AT(error, "process %u cannot be reached any more: %s",
                       peer != nullptr ? peer->process : process_of(rank),
                       peer == nullptr         ? "it is not on this host"
                       : was_given_up_by(peer) ? "it has given up"
                                               : peer->reason);
    }
    fail(Status::transport_failed);
    return Status::transport_failed;
}

// Hot path: one uncontended lock; memory of ours only where the peer's ring is full.
Status Channel::post_send(Slot slot, int rank, MessageId id, const void* data, std::size_t bytes,
                          SendMode mode) try {
    if (port_.in_child()) return Status::transport_failed;
    const Poster lock(port_);
    if (failed(failure_)) return failure_;
    Peer* const peer = peer_of(rank);
    if (peer == nullptr || peer->dead || was_given_up_by(peer)) return lose(peer, rank);
    Key key = key_of(rank, id);
    note_peer(slot, rank);
    count_sent(slot, bytes <= port_.options().eager_bytes ? Way::eager : Way::receivers_choice, bytes);
    // Only read.
    port_.send(*this, slot, *peer, key, const_cast<void*>(data), bytes, mode);
    return failure_ == Status::transport_failed ? failure_ : Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

// Hot path, as post_send.
Status Channel::post_recv(Slot slot, int rank, MessageId id, void* data, std::size_t bytes) try {
    if (port_.in_child()) return Status::transport_failed;
    const Poster lock(port_);
    if (failed(failure_)) return failure_;
    Peer* const peer = peer_of(rank);
    if (peer == nullptr || was_given_up_by(peer)) return lose(peer, rank);
    received_[slot] = bytes;
    note_peer(slot, rank);
    port_.receive(*this, slot, *peer, key_of(rank, id), data, bytes, id.unequal);
    // A mismatch is progress()'s to tell.
    return failure_ == Status::transport_failed ? failure_ : Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

Status Channel::progress(std::span<Slot> done, std::size_t& count) {
    if (port_.in_child()) return Status::transport_failed;
    const Driver lock(port_);
    // What wakes a thread that sleeps for this channel stays as it is while another one looks in vain.
    const bool woken = asleep && pthread_equal(sleeper, pthread_self());
    if (woken) port_.awake(*this);
    stirred_ = port_.poll(woken);
    if (asleep && has_news()) port_.awake(*this);
    if (failed(failure_)) return failure_;
    count = std::min(done.size(), completed_.size());
    std::copy_n(completed_.begin(), count, done.begin());
    completed_.erase(completed_.begin(), completed_.begin() + static_cast<std::ptrdiff_t>(count));
    return Status::ok;
}

bool Channel::has_left(std::uint64_t) { return port_.in_child() || port_.all_left(); }

void Channel::drive_host() {
    if (group_.drive_host) group_.drive_host(group_.host);
}

Status Channel::arm() {
    if (port_.in_child()) return Status::transport_failed;
    const Driver lock(port_);
    return port_.arm(*this);
}

// What the operations were for has failed: their memory is the program's again.
void Channel::give_up() {
    if (port_.in_child()) return;
    {
        const Poster lock(port_);
        fail(Status::transport_failed);
        // Who gives up will not ask for its news any more, as whoever sleeps otherwise does.
        if (asleep && pthread_equal(sleeper, pthread_self())) port_.awake(*this);
    }
    withdraw();
}

Status Channel::stand_in(StandIn memory) try {
    const std::byte* const run = memory.lasting ? memory.run() : nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(run);
    // One look for all faces of an array. Others only read `known_` meanwhile, with the lock.
    const auto holds = [address](const Mapped& known) {
        return address >= known.begin && address < known.end;
    };
    std::optional<Mapped> found;
    if (run != nullptr && std::none_of(known_.begin(), known_.end(), holds)) found = mapping_of(run);
    const Poster lock(port_);
    if (found) known_.push_back(*found);
    stand_ins_.add(std::move(memory));
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

void Channel::end_stand_in(const std::byte* memory) {
    const Poster lock(port_);
    stand_ins_.remove(memory);
}

std::optional<SharedPlace> Channel::shared_place_of(const void* data, std::size_t bytes) const {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    for (const Mapped& known : known_) {
        if (address < known.begin || address >= known.end || bytes > known.end - address || !known.place)
            continue;
        SharedPlace place = *known.place;
        place.offset += address - known.begin;
        return still_maps(data, bytes, place) ? std::optional(place) : std::nullopt;
    }
    return std::nullopt;
}

Status Channel::expose(void* memory, std::size_t bytes, Region& region, std::vector<std::byte>& key) try {
    if (port_.in_child()) return Status::transport_failed;
    if (!capabilities_.one_sided) return Status::unsupported;
    if (bytes == 0) return Status::invalid_argument;
    const RemoteMemory what{reinterpret_cast<std::uintptr_t>(memory), bytes};
    std::vector<std::byte> told(sizeof what);
    std::memcpy(told.data(), &what, sizeof what);
    const Poster lock(port_);
    putters_.resize(near_ranks(), Putter::unasked);
    const auto free = std::find_if(exposed_.begin(), exposed_.end(),
                                   [](const Exposed& exposed) { return exposed.bytes == 0; });
    region = static_cast<Region>(free - exposed_.begin());
    if (free == exposed_.end()) exposed_.emplace_back();
    exposed_[region] = {what.address, what.bytes};
    key = std::move(told);
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

void Channel::conceal(Region region) {
    const Poster lock(port_);
    exposed_[region] = {};
}

void Channel::note_stopped(const Peer& peer) {
    for (std::size_t place = 0; place < putters_.size(); ++place)
        if (putters_[place] == Putter::asked && peer_of(near_rank(place)) == &peer)
            putters_[place] = Putter::stopped;
}

bool Channel::exposes(std::uint64_t address, std::uint64_t bytes) const {
    return std::any_of(exposed_.begin(), exposed_.end(), [&](const Exposed& exposed) {
        return address >= exposed.address && address - exposed.address <= exposed.bytes &&
               bytes <= exposed.bytes - (address - exposed.address);
    });
}

Status Channel::attach(int peer, std::span<const std::byte> key, Target& target) try {
    if (port_.in_child()) return Status::transport_failed;
    RemoteMemory what;
    if (key.size() != sizeof what) return Status::invalid_argument;
    const Poster lock(port_);
    if (peer_of(peer) == nullptr || !peer_of(peer)->segment.writes()) return Status::unsupported;
    std::memcpy(&what, key.data(), sizeof what);
    const auto free = std::find_if(attached_.begin(), attached_.end(),
                                   [](const Attached& attached) { return attached.rank < 0; });
    target = static_cast<Target>(free - attached_.begin());
    if (free == attached_.end()) attached_.emplace_back();
    attached_[target] = {peer, what.address, what.bytes};
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

void Channel::detach(Target target) { attached_[target].rank = -1; }

Status Channel::post_put(Slot slot, Target target, std::uint64_t offset, const void* data, std::size_t bytes,
                         MessageId signal) try {
    if (port_.in_child()) return Status::transport_failed;
    const Poster lock(port_);
    if (failed(failure_)) return failure_;
    const Attached& attached = attached_[target];
    if (offset > attached.bytes || bytes > attached.bytes - offset) return Status::invalid_argument;
    Peer* const peer = peer_of(attached.rank);
    if (peer == nullptr || peer->dead || was_given_up_by(peer)) return lose(peer, attached.rank);
    note_peer(slot, attached.rank);
    count_sent(slot, Way::put, bytes);
    port_.put(*this, slot, *peer, key_of(attached.rank, signal), attached.address + offset, data, bytes);
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

}  // namespace thalweg::shm
