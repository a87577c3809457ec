// Messages that are copied when they have met: who copies what, chunk by chunk.
#include <algorithm>
#include <new>

#include "base/clock.h"
#include "base/float_modes.h"
#include "transport/shm/channel.h"

namespace thalweg {
namespace {

// What a ring gets before its reader hears of it, and may begin.
constexpr std::size_t told_at_a_time = 2 * shm::piece_bytes;

// For which this thread had a core.
std::uint64_t core_ns() {
    timespec spent{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return static_cast<std::uint64_t>(spent.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(spent.tv_nsec);
}

}  // namespace

using shm::Frame;
using shm::FrameKind;
using shm::Peer;
using shm::Request;

shm::Reach ShmPort::Impl::reach(const Peer& peer, const Request& receive) const {
    shm::Reach reach;
    const bool both_reachable =
        receive.remote != 0 && (!receive.elements || shm::reachable(receive.elements));
    reach.reads = both_reachable && peer.segment.reads();
    reach.writes = both_reachable && peer.control != nullptr && options_.cma &&
                   peer.control->sender_writes.load(std::memory_order_relaxed) != 0;
    reach.mapped = receive.mapped != nullptr;
    // The same copy by way of the system is no better.
    if (reach.mapped) reach.reads = false;
    return reach;
}

// A receive has met a message that lies at the sender: decides, tells the sender, begins. Throws
// std::bad_alloc; then nothing has begun.
void ShmPort::Impl::fetch(Request& receive, const Frame& request, shm::RemotePlace place) {
    Peer& peer = *receive.peer;
    receive.remote = request.address;
    receive.remote_request = request.cookie;
    receive.place = std::move(place);
    receive.mapped = request.arena == 0 ? nullptr : peer.segment.arena(request.arena - 1, receive.bytes);
    if (receive.place.shared) receive.mapped = receive.channel->view(*receive.place.shared, receive.bytes);
    const shm::Header& theirs = peer.segment.header();
    const shm::Load mine{copies_left(), segment_.header().wire_ns.load(std::memory_order_relaxed)};
    // What it was sent it will copy itself, more or less: it may not have decided yet.
    const shm::Load others{std::max(theirs.copy_bytes.load(std::memory_order_relaxed), peer.announced_bytes),
                           theirs.wire_ns.load(std::memory_order_relaxed)};
    const shm::Decision decision = in_standard_modes([&] {
        return peer.chooser.choose(receive.bytes, reach(peer, receive), mine, others, rates_, forced_);
    });
    note_decision(receive);
    receive.protocol = decision.protocol;
    if (decision.protocol == &shm::eager) peer.reader.touch();
    receive.done = 0;
    receive.until = decision.receivers_share;
    receive.decided_ns = now_ns();
    receive.slept = sleeps_;
    receive.expected_s = decision.expected_s;
    if (receive.until < receive.bytes) {
        Frame frame;
        frame.kind = FrameKind::answer;
        frame.other = request.cookie;
        frame.cookie = shm::Requests::cookie(receive);
        frame.operation = number_of(*decision.protocol);
        frame.bytes = receive.until;
        try {
            write_place(peer, frame, receive);
        } catch (const std::bad_alloc&) {
            receive.protocol = nullptr;
            throw;
        }
        receive.awaits_peer = true;
    }
    if (receive.until != 0) queue(receive);
}

// Until the next poll: what this process sends in the same exchange, which its peer will copy, is posted
// after its receives, and bears upon who copies what.
void ShmPort::Impl::postpone(Request& receive, Request& early) {
    receive.met = &early;
    receive.next_job = nullptr;
    (last_met_ == nullptr ? first_met_ : last_met_->next_job) = &receive;
    last_met_ = &receive;
    stir();
}

void ShmPort::Impl::fetch_postponed() {
    while (first_met_ != nullptr) {
        Request& receive = *first_met_;
        Request& early = *receive.met;
        Request* const next = receive.next_job;
        Frame frame;
        frame.address = early.remote;
        frame.cookie = early.acknowledge;
        frame.arena = early.remote_request;
        if (!early.recalled) try {
                fetch(receive, frame, std::move(early.place));
            } catch (const std::bad_alloc&) {
                early.place = std::move(receive.place);
                return;  // the next poll decides
            }
        first_met_ = next;
        if (first_met_ == nullptr) last_met_ = nullptr;
        receive.met = nullptr;
        if (early.recalled) fail(receive, Status::transport_failed);
        requests_.free(early);
    }
}

// A message that nobody will receive any more; its sender need not wait for that.
void ShmPort::Impl::drop(Request& early) {
    if (early.acknowledge != 0 && !early.peer->dead && waiting_.try_spare(1))
        acknowledge(*early.peer, early.acknowledge);
    requests_.free(early);
}

// Pre: nothing is copied for it yet.
void ShmPort::Impl::forget(Request& receive) {
    if (!take_ready_back(receive)) return;
    posted_.remove(receive);
    if (receive.met != nullptr) {
        Request** link = &first_met_;
        Request* before = nullptr;
        for (; *link != &receive; link = &(*link)->next_job) before = *link;
        *link = receive.next_job;
        if (last_met_ == &receive) last_met_ = before;
        drop(*receive.met);
    }
    requests_.free(receive);
}

// The receiver has decided what the sender, this process, shall copy.
bool ShmPort::Impl::take_answer(Peer& peer, const Frame& frame, const std::byte* payload) {
    Request* const send = requests_.find(frame.other);
    if (send == nullptr || send->recalled) return true;
    shm::RemotePlace place;
    if (!shm::read_place(frame, payload, send->bytes, place)) return false;
    const shm::Protocol* const protocol = shm::find_protocol(frame.operation);
    if (send->kind != Request::Kind::send || send->peer != &peer || !send->awaits_peer || send->copying ||
        protocol == nullptr || protocol->push == nullptr)
        return false;
    // abandon() was left with it: its memory is somebody else's.
    if (send->channel == nullptr) {
        waiting_.spare(1);
        recall(*send);
        return true;
    }
    if (send->protocol != nullptr) {
        if (protocol != &shm::eager || frame.offset >= frame.bytes || frame.bytes > send->bytes) return false;
        send->protocol = protocol;
        send->done = frame.offset;
        send->until = frame.bytes;
        send->awaits_peer = false;
        queue(*send);
        return true;
    }
    if (frame.bytes >= send->bytes) return false;
    settle(*send);
    send->protocol = protocol;
    if (protocol == &shm::eager) peer.writer.touch();
    send->remote = frame.address;
    send->place = std::move(place);
    send->remote_request = frame.cookie;
    send->done = frame.bytes;
    send->until = send->bytes;
    send->awaits_peer = frame.bytes != 0;
    queue(*send);
    return true;
}

void ShmPort::Impl::put(shm::Channel& channel, Slot slot, Peer& peer, const shm::Key& signal,
                        std::uint64_t remote, const void* data, std::size_t bytes) {
    waiting_.spare(1);
    Request& put = requests_.take(Request::Kind::put);
    put.channel = &channel;
    put.slot = slot;
    put.peer = &peer;
    put.key = signal;
    put.data = const_cast<std::byte*>(static_cast<const std::byte*>(data));
    put.bytes = put.until = bytes;
    put.remote = remote;
    put.protocol = &shm::cma_put;
    if (bytes == 0)
        copied(put);
    else
        queue(put);
}

void ShmPort::Impl::queue(Request& request, bool first) {
    request.copying = true;
    request.blocked = false;
    request.next_job = first ? first_job_ : nullptr;
    if (last_job_ == nullptr || first)
        first_job_ = &request;
    else
        last_job_->next_job = &request;
    if (last_job_ == nullptr || !first) last_job_ = &request;
    ++jobs_;
    count_copies(static_cast<std::int64_t>(request.until - request.done));
    stir();
}

// Pre: it is in the queue.
void ShmPort::Impl::unqueue(Request& request) {
    Request** link = &first_job_;
    Request* before = nullptr;
    for (; *link != &request; link = &(*link)->next_job) before = *link;
    *link = request.next_job;
    if (last_job_ == &request) last_job_ = before;
    --jobs_;
    request.copying = false;
    count_copies(-static_cast<std::int64_t>(request.until - request.done));
}

void ShmPort::Impl::count_copies(std::int64_t bytes) {
    const std::uint64_t left = copies_left() + static_cast<std::uint64_t>(bytes);
    copies_left_.store(left, std::memory_order_relaxed);
    segment_.header().copy_bytes.store(left, std::memory_order_relaxed);
}

// One chunk of the oldest copy that can go on. False: there is none.
bool ShmPort::Impl::copy_a_chunk() {
    if (!waiting_.try_spare(2)) return false;  // for what is said at its end, or at a change to the ring
    for (std::uint32_t tries = jobs_; tries != 0; --tries) {
        Request& job = *first_job_;
        first_job_ = job.next_job;
        if (first_job_ == nullptr) last_job_ = nullptr;
        --jobs_;
        const bool receives = job.kind == Request::Kind::receive;
        const shm::Elements* const theirs = job.place.elements ? &*job.place.elements : nullptr;
        const shm::Transfer transfer{job.peer->segment.pid(), job.data,           job.remote,   job.mapped,
                                     &job.peer->writer,       job.remote_request, job.elements, theirs,
                                     job.peer->segment.life()};
        // A receive that was withdrawn reads no more; the sender is told that it is over.
        const bool withdrawn = receives && job.channel == nullptr;
        if (withdrawn) {
            count_copies(-static_cast<std::int64_t>(job.until - job.done));
            job.done = job.until;
        }
        std::size_t moved = 0;
        if (!withdrawn) {
            const bool wire_busy = segment_.header().wire_ns.load(std::memory_order_relaxed) != 0;
            std::size_t most = wire_busy ? options_.chunk_bytes : options_.longest_chunk_bytes;
            if (job.protocol == &shm::eager) most = std::min(most, told_at_a_time);
            const std::size_t bytes = std::min<std::uint64_t>(most, job.until - job.done);
            // What was asked for teaches the choice nothing, so that both can be compared in one run.
            const int size_class = shm::size_class_of(job.bytes);
            const bool measures = forced_ == nullptr && rates_.wants(*job.protocol, size_class);
            const std::uint64_t began_ns = now_ns(), began_core_ns = measures ? core_ns() : 0;
            // Frames that wait for room come first: what is told of a message is read before its bytes.
            const bool waits = job.protocol == &shm::eager && !receives && !job.peer->outgoing.empty();
            const bool stores = job.kind == Request::Kind::put && job.protocol == &shm::eager;
            const auto copy = receives ? job.protocol->pull : job.protocol->push;
            const Status status = waits    ? Status::ok
                                  : stores ? store_through(job, bytes, moved)
                                           : copy(transfer, job.done, bytes, moved);
            const std::uint64_t taken_ns = now_ns() - began_ns;
            if (status == Status::unsupported && !job.peer->dead) {
                take_the_ring(job);
                return true;
            }
            if (failed(status) || job.peer->dead) {
                count_copies(-static_cast<std::int64_t>(job.until - job.done));
                job.copying = false;
                fail(job, Status::transport_failed);
                return true;
            }
            if (moved != 0 && measures) {
                const std::uint64_t taken_core_ns = core_ns() - began_core_ns;
                in_standard_modes([&] {
                    rates_.measured(*job.protocol, size_class, moved, seconds(taken_ns),
                                    seconds(taken_core_ns));
                });
            }
            job.peer->account.copy_ns += taken_ns;
            note_copied(job, taken_ns);
            if (moved != 0 && job.protocol == &shm::eager) written(*job.peer);
            job.done += moved;
            count_copies(-static_cast<std::int64_t>(moved));
            job.blocked = moved == 0;
        }
        if (job.done == job.until) {
            job.copying = false;
            copied(job);
            return true;
        }
        // Goes on as the first, so that one is ready as early as can be; who is held up lets others pass.
        if (job.blocked) {
            job.next_job = nullptr;
            (last_job_ == nullptr ? first_job_ : last_job_->next_job) = &job;
            last_job_ = &job;
        } else {
            job.next_job = first_job_;
            first_job_ = &job;
            if (last_job_ == nullptr) last_job_ = &job;
        }
        ++jobs_;
        if (moved != 0) return true;
    }
    return false;
}

void ShmPort::Impl::acknowledge(Peer& peer, std::uint64_t cookie) {
    Frame frame;
    frame.kind = FrameKind::taken;
    frame.other = cookie;
    write(peer, frame);
}

// This side's share of the bytes is where it belongs.
void ShmPort::Impl::copied(Request& request) {
    Peer& peer = *request.peer;
    Frame frame;
    switch (request.kind) {
        case Request::Kind::receive:
            acknowledge(peer, request.remote_request);
            break;
        case Request::Kind::send:
            frame.kind = FrameKind::pushed;
            frame.other = request.remote_request;
            // A send of this process's share alone is over when the peer can hear so: nobody need poll after.
            write(peer, {frame, nullptr, {}, nullptr, request.awaits_peer ? nullptr : &request});
            return;
        case Request::Kind::put:
            frame.kind = FrameKind::eager;
            frame.channel = request.key.channel;
            frame.operation = request.key.operation;
            frame.message = request.key.message;
            write(peer, {frame, nullptr, {}, nullptr, &request});
            return;
        default:
            return;
    }
    if (!request.awaits_peer) finish(request);
}

void ShmPort::Impl::announce(Request& send) {
    Peer& peer = *send.peer;
    send.announced = true;
    peer.announced_bytes += send.bytes;
    send.next = nullptr;
    (peer.last_announced == nullptr ? peer.first_announced : peer.last_announced->next) = &send;
    peer.last_announced = &send;
}

void ShmPort::Impl::settle(Request& send) {
    if (!send.announced) return;
    send.announced = false;
    Peer& peer = *send.peer;
    if (peer.dead) return;
    peer.announced_bytes -= send.bytes;
    Request** link = &peer.first_announced;
    Request* before = nullptr;
    for (; *link != &send; link = &(*link)->next) before = *link;
    *link = send.next;
    if (peer.last_announced == &send) peer.last_announced = before;
}

void ShmPort::Impl::finish(Request& request) {
    settle(request);
    std::uint64_t taken_ns = 0;
    if (request.kind == Request::Kind::receive && request.protocol != nullptr) {
        Peer& peer = *request.peer;
        taken_ns = now_ns() - request.decided_ns;
        in_standard_modes([&] {
            peer.chooser.measured(request.bytes, *request.protocol, request.expected_s, seconds(taken_ns),
                                  sleeps_ - request.slept);
        });
        const std::uint32_t number = number_of(*request.protocol);
        ++peer.account.messages[number];
        peer.account.bytes[number] += request.bytes;
        peer.account.transfer_ns += taken_ns;
    }
    note_received(request, taken_ns);
    if (request.channel != nullptr) request.channel->finish(request.slot);
    requests_.free(request);
}

void ShmPort::Impl::fail(Request& request, Status status) {
    settle(request);
    if (request.channel != nullptr) {
        if (status == Status::mismatch)
            request.channel->fail(status);
        else
            request.channel->lose(request.peer, -1);
    }
    requests_.free(request);
}

}  // namespace thalweg
