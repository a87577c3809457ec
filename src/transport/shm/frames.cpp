// Frames between processes: writing them, taking them out, and matching messages with receives.
#include <bit>
#include <cstring>
#include <new>

#include "base/clock.h"
#include "transport/shm/channel.h"

namespace thalweg {

using shm::Frame;
using shm::FrameKind;
using shm::Key;
using shm::Peer;
using shm::Request;

namespace {

// Frames of one peer between two looks at the others.
constexpr std::uint32_t frames_at_a_time = 32;

}  // namespace

// Hot path: one copy into the ring; a system call only where the peer sleeps.
void ShmPort::Impl::write(Peer& peer, shm::Outgoing next, bool passing) {
    Request* const complete = next.complete;
    if (peer.dead) {
        if (complete != nullptr) fail(*complete, Status::transport_failed);
        return;
    }
    if (peer.outgoing.empty() && next.write_to(peer.writer)) {
        written(peer);
        if (complete != nullptr) finish(*complete);
        return;
    }
    shm::Waiting& waiting = waiting_.take(std::move(next));
    if (passing) waiting.keep_word();
    peer.outgoing.push(waiting);
    ++waiting_frames_;
    stir();
}

void ShmPort::Impl::write_place(Peer& peer, Frame frame, const Request& request,
                                const std::optional<shm::SharedPlace>& shared) {
    frame.address = reinterpret_cast<std::uintptr_t>(request.data);
    if (shared) {
        frame.payload = sizeof *shared;
        write(peer, {frame, &*shared, {}, nullptr, nullptr}, true);
        return;
    }
    if (!request.elements) {
        write(peer, frame);
        return;
    }
    shm::WrittenElements place;
    frame.address = 0;
    if (shm::reachable(request.elements)) {
        place = shm::written(request.elements);
        frame.address = place.address;
        frame.payload = sizeof place;
    }
    write(peer, {frame, &place, {}, nullptr, nullptr}, true);
}

void ShmPort::Impl::written(Peer& peer) {
    shm::Header& header = peer.segment.header();
    const std::uint32_t ring = peer.segment.ring_number();
    std::atomic<std::uint64_t>& word = header.written[ring / 64];
    const std::uint64_t bit = std::uint64_t{1} << ring % 64;
    // The peer clears the bit and then looks into the ring; we write into the ring and then look at the bit.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_seq_cst);
    // It sets `asleep` and then looks at the bits.
    if (header.asleep.load(std::memory_order_seq_cst) != 0 && header.asleep.exchange(0) != 0)
        peer.segment.ring_bell();
}

bool ShmPort::Impl::flush(Peer& peer) {
    std::uint64_t moved = 0;
    while (!peer.outgoing.empty()) {
        if (!peer.outgoing.first()->what.write_to(peer.writer)) break;
        shm::Waiting& gone = peer.outgoing.pop();
        Request* const complete = gone.what.complete;
        waiting_.free(gone);
        ++moved;
        if (complete != nullptr) finish(*complete);
    }
    if (moved == 0) return false;
    written(peer);
    waiting_frames_ -= moved;  // only now: who sees that all has left polls no more
    return true;
}

Peer* ShmPort::Impl::sender_of(std::uint32_t ring) {
    if (by_ring_[ring] != nullptr) return by_ring_[ring];
    const shm::RingControl& control = *segment_.ring(ring).control;
    const std::uint64_t sender = control.sender.load(std::memory_order_acquire);
    Peer* const peer = sender == 0 ? nullptr : find(static_cast<std::uint32_t>(sender - 1));
    if (peer == nullptr || peer->heard) return nullptr;
    peer->heard = true;
    peer->reader = shm::RingReader(segment_.ring(ring));
    peer->control = &control;
    return by_ring_[ring] = peer;
}

bool ShmPort::Impl::listen() {
    bool moved = false;
    for (std::size_t word = 0; word < unread_.size(); ++word) {
        std::atomic<std::uint64_t>& written = segment_.header().written[word];
        if (written.load(std::memory_order_relaxed) != 0) {
            unread_[word] |= written.exchange(0);
            // What is read of the rings now is no older: their writers look at the bit after they have
            // written.
            std::atomic_thread_fence(std::memory_order_seq_cst);
        }
        for (std::uint64_t bits = unread_[word]; bits != 0; bits &= bits - 1) {
            const auto ring = static_cast<std::uint32_t>(word * 64 + std::countr_zero(bits));
            // No ring of ours: whoever set the bit has written nonsense.
            if (ring >= segment_.rings() || ring >= by_ring_.size()) {
                unread_[word] &= ~(std::uint64_t{1} << ring % 64);
                continue;
            }
            Peer* const peer = sender_of(ring);
            // One that has not been met yet is looked at again when somebody is: nobody stays awake for it.
            if (peer == nullptr) unmet_[word] |= std::uint64_t{1} << ring % 64;
            const bool more = peer != nullptr && drain(*peer, frames_at_a_time);
            moved |= peer != nullptr;
            if (!more) unread_[word] &= ~(std::uint64_t{1} << ring % 64);
        }
    }
    return moved;
}

// True: there may be more.
bool ShmPort::Impl::drain(Peer& peer, std::uint32_t most) {
    Frame frame;
    const std::byte* payload = nullptr;
    shm::Read read = shm::Read::nothing;
    std::uint32_t taken = 0;
    bool understood = true;
    while (understood && taken < most && (read = peer.reader.front(frame, payload)) == shm::Read::frame) {
        if (peer.dead && frame.kind != FrameKind::eager && frame.kind != FrameKind::taken &&
            frame.kind != FrameKind::pushed && frame.kind != FrameKind::piece &&
            frame.kind != FrameKind::stored) {
            peer.reader.pop();
            continue;
        }
        try {
            understood = take(peer, frame, payload);
        } catch (const std::bad_alloc&) {
            return true;  // it stays where it is
        }
        peer.reader.pop();
        ++taken;
    }
    if (!understood || read == shm::Read::nonsense) {
        mourn(peer, "it wrote what makes no sense");
        return false;
    }
    if (taken != 0 && peer.reader.space_wanted()) {
        std::atomic<std::uint32_t>& asleep = peer.segment.header().asleep;
        if (asleep.load() != 0 && asleep.exchange(0) != 0) peer.segment.ring_bell();
    }
    return read == shm::Read::frame;
}

// False: nonsense.
bool ShmPort::Impl::take(Peer& peer, const Frame& frame, const std::byte* payload) {
    switch (frame.kind) {
        case FrameKind::eager:
        case FrameKind::request:
            return take_message(peer, frame, payload);
        case FrameKind::answer:
            return take_answer(peer, frame, payload);
        case FrameKind::piece: {
            Request* const receive = requests_.find(frame.other);
            if (receive == nullptr) return true;  // withdrawn
            if (receive->ready && receive->peer == &peer) meet_ready(*receive);
            if (receive->kind != Request::Kind::receive || receive->peer != &peer || !receive->awaits_peer ||
                receive->protocol == nullptr || receive->protocol->push == nullptr ||
                frame.offset > receive->bytes || frame.payload > receive->bytes - frame.offset)
                return false;
            if (receive->channel == nullptr) return true;  // withdrawn, and its memory is somebody else's
            const std::uint64_t began_ns = now_ns();
            receive->store(frame.offset, payload, frame.payload);
            if (forced_ == nullptr) note_out_of_ring(*receive, frame.payload, now_ns() - began_ns);
            return true;
        }
        case FrameKind::pushed:
        case FrameKind::taken: {
            Request* const request = requests_.find(frame.other);
            if (request == nullptr) return true;
            const auto kind = frame.kind == FrameKind::pushed ? Request::Kind::receive : Request::Kind::send;
            if (request->kind != kind || request->peer != &peer || !request->awaits_peer) return false;
            if (request->left_over != 0) {
                ask_for_rest(*request);
                return true;
            }
            request->awaits_peer = false;
            if (!request->copying) finish(*request);
            return true;
        }
        case FrameKind::stored:
            return take_stored(frame, payload);
        case FrameKind::ready:
            return take_ready(peer, frame);
        case FrameKind::unready:
            take_unready(peer, frame);
            return true;
        case FrameKind::unheard:
            return take_unheard(peer, frame);
        case FrameKind::recall:
            take_recall(peer, frame);
            return true;
        case FrameKind::no_puts:
            take_no_puts(peer, frame);
            return true;
        case FrameKind::none_put:
            take_none_put(peer, frame);
            return true;
        case FrameKind::leaving:
            mourn(peer, "it has finished");
            return true;
        case FrameKind::skip:
            break;
    }
    return false;
}

// A message, or word of one. Where memory is lacking the frame comes again: until all is done that may throw
// the receive stays among the posted ones.
bool ShmPort::Impl::take_message(Peer& peer, const Frame& frame, const std::byte* payload) {
    const bool whole = frame.kind == FrameKind::eager;
    if (whole ? frame.payload != frame.bytes : frame.bytes == 0) return false;
    shm::RemotePlace place;
    if (!whole && !shm::read_place(frame, payload, frame.bytes, place)) return false;
    const Key key{frame.channel, frame.operation, frame.message, peer.process};
    if (Request* const receive = posted_.find(key)) {
        const bool fits = has_room(*receive, frame.bytes);
        if (fits && !whole && receive->ready) {  // the sender has its answer, or will find it
            meet_ready(*receive);
            receive->remote_request = frame.cookie;
            return true;
        }
        if (fits && !whole) {
            fetch(*receive, frame, std::move(place));
            posted_.remove(*receive);
            return true;
        }
        if (fits && frame.bytes != 0 && receive->channel != nullptr) receive->store(0, payload, frame.bytes);
        if (frame.cookie != 0) acknowledge(peer, frame.cookie);
        posted_.remove(*receive);
        if (fits)
            finish(*receive);
        else
            overflow(*receive);
        return true;
    }
    Request& early = requests_.take(Request::Kind::early);
    early.peer = &peer;
    early.key = key;
    early.bytes = frame.bytes;
    early.acknowledge = frame.cookie;
    early.remote = frame.address;
    early.remote_request = frame.arena;
    early.place = std::move(place);
    try {
        if (whole) {
            std::byte* const copy = requests_.copy_of(early);
            if (frame.bytes != 0) std::memcpy(copy, payload, frame.bytes);
        }
        early_.add(early);
    } catch (const std::bad_alloc&) {
        requests_.free(early);
        throw;
    }
    return true;
}

// Whether a message of `bytes` bytes is what the receive is there for, which is cut to its size then.
bool ShmPort::Impl::has_room(Request& receive, std::uint64_t bytes) {
    if (receive.bytes == bytes) return true;
    if (!receive.unequal) return false;
    if (receive.channel != nullptr) receive.channel->note_received(receive.slot, bytes);
    if (receive.bytes < bytes) return false;
    receive.bytes = bytes;
    return true;
}

// After has_room() has said no, and the sender has heard that it is over.
void ShmPort::Impl::overflow(Request& receive) {
    if (receive.unequal)
        finish(receive);
    else
        fail(receive, Status::mismatch);
}

void ShmPort::Impl::send(shm::Channel& channel, Slot slot, Peer& peer, const Key& key, void* data,
                         std::size_t bytes, SendMode mode) {
    Frame frame;
    frame.channel = key.channel;
    frame.operation = key.operation;
    frame.message = key.message;
    frame.bytes = bytes;
    const bool whole = bytes <= options_.eager_bytes;
    if (whole) {
        frame.kind = FrameKind::eager;
        frame.payload = static_cast<std::uint32_t>(bytes);
    }
    const StandInPart elements = channel.stand_ins().resolve(data, bytes);
    if (whole && mode == SendMode::buffered && peer.outgoing.empty() &&
        shm::Outgoing{frame, data, elements, nullptr, nullptr}.write_to(peer.writer)) {
        written(peer);
        channel.finish(slot);
        return;
    }
    const auto shared = whole ? std::nullopt : channel.shared_place_of(data, bytes);
    if (!whole) look_for_ready(peer, key, bytes);
    if (peer.dead || channel.was_given_up_by(&peer)) {  // as it has just told
        channel.lose(&peer, -1);
        return;
    }
    waiting_.spare(3);  // for what a copy says at its end, and for the request: nothing throws after
    Request& request = requests_.take(Request::Kind::send);
    const std::uint64_t ready =
        whole || peer.readies.empty() ? 0 : peer.readies.take(key.channel, key.operation, key.message, bytes);
    request.channel = &channel;
    request.slot = slot;
    request.peer = &peer;
    request.data = static_cast<std::byte*>(data);
    request.bytes = bytes;
    request.elements = elements;
    if (ready != 0 && begins_ready(request, ready)) return;
    if (whole && mode == SendMode::buffered) {
        write(peer, {frame, data, elements, nullptr, &request});
        return;
    }
    request.awaits_peer = ready == 0;
    frame.cookie = shm::Requests::cookie(request);
    if (whole) {
        write(peer, {frame, data, elements, nullptr, nullptr});
        return;
    }
    frame.kind = FrameKind::request;
    if (ready == 0) {
        request.key = key;
        announce(request);
    }
    const auto inside = static_cast<std::size_t>(request.data - segment_.arena());
    if (request.data >= segment_.arena() && inside < segment_.arena_bytes()) frame.arena = inside + 1;
    write_place(peer, frame, request, shared);
}

void ShmPort::Impl::receive(shm::Channel& channel, Slot slot, Peer& peer, const Key& key, void* data,
                            std::size_t bytes, bool unequal) {
    waiting_.spare(1);
    Request& receive = requests_.take(Request::Kind::receive);
    receive.unequal = unequal;
    receive.channel = &channel;
    receive.slot = slot;
    receive.peer = &peer;
    receive.key = key;
    receive.elements = channel.stand_ins().resolve(data, bytes);
    receive.data = static_cast<std::byte*>(data);
    receive.bytes = bytes;
    Request* const early = early_.take(key);
    if (early == nullptr) {
        if (peer.dead) {
            fail(receive, Status::transport_failed);
            return;
        }
        const bool told = may_tell(receive);
        try {
            posted_.add(receive);
        } catch (const std::bad_alloc&) {
            requests_.free(receive);
            throw;
        }
        if (told) tell_ready(receive);
        return;
    }
    const std::uint64_t cookie = early->acknowledge;
    if (!has_room(receive, early->bytes)) {
        if (cookie != 0) acknowledge(peer, cookie);
        overflow(receive);
    } else if (early->copy != nullptr) {
        if (early->bytes != 0) receive.store(0, early->copy, early->bytes);
        if (cookie != 0) acknowledge(peer, cookie);
        finish(receive);
    } else if (peer.dead || early->recalled) {
        fail(receive, Status::transport_failed);
    } else {
        postpone(receive, *early);
        return;
    }
    requests_.free(*early);
}

}  // namespace thalweg
