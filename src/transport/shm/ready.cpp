// Receives that say beforehand that their messages shall come through the ring: an answer that nobody waits
// for.
//
//     receiver                 sender
//     ready  ----------------> the message is sent already: its request is answered so
//                              not yet: kept; who sends it writes pieces at once
//     ready  -----> <-------- a request, written before that was read: neither is answered
//     unready ---------------> the receive is gone: forgotten, if the message was not sent
//              <-------------- unheard: not kept, the message will be asked about as others are
//
// A receive that was told of goes only when the sender has heard so, or has sent its message: its place among
// the posted ones is kept until then, or that message would be taken for the next one's.
#include "base/clock.h"
#include "transport/shm/channel.h"

namespace thalweg {
namespace {

constexpr int most_looks = 8;  // of a send, at one frame each

}  // namespace

using shm::Frame;
using shm::FrameKind;
using shm::Peer;
using shm::Request;

// Whether its sender is to be told of a receive that is about to be posted. Not where another one waits for a
// message of the same name, or is copying such a one for itself: else the first such message that the sender
// has no answer to is the one for it.
bool ShmPort::Impl::may_tell(const Request& receive) {
    const Peer& peer = *receive.peer;
    if (receive.unequal || receive.bytes <= options_.eager_bytes || receive.bytes > shm::most_ready_bytes ||
        !peer.heard || !peer.outgoing.empty())
        return false;
    if (forced_ == nullptr ? !peer.chooser.keeps_ring(receive.bytes) : forced_ != &shm::eager) return false;
    if (posted_.find(receive.key) != nullptr) return false;
    for (const Request* jobs : {first_job_, first_met_})
        for (const Request* job = jobs; job != nullptr; job = job->next_job)
            if (job->kind == Request::Kind::receive && job->key == receive.key) return false;
    return true;
}

void ShmPort::Impl::tell_ready(Request& receive) {
    Peer& peer = *receive.peer;
    peer.chooser.keep_ring(receive.bytes, forced_ != nullptr);
    note_decision(receive);
    peer.reader.touch();
    receive.ready = true;
    Frame frame;
    frame.kind = FrameKind::ready;
    frame.channel = receive.key.channel;
    frame.operation = receive.key.operation;
    frame.message = receive.key.message;
    frame.bytes = receive.bytes;
    frame.cookie = shm::Requests::cookie(receive);
    write(peer, frame);
}

// The sender has heard of it, or has sent without. Teaches the choice nothing: nobody knows since when both
// were there.
void ShmPort::Impl::meet_ready(Request& receive) {
    posted_.remove(receive);
    receive.ready = false;
    receive.awaits_peer = true;
    receive.protocol = &shm::eager;
    receive.decided_ns = now_ns();
    receive.expected_s = 0;
}

// The receive goes, if its sender was not told of it, or has ended. Else false: it is nobody's until the
// sender has answered. Without memory that is not told, and sends to nobody.
bool ShmPort::Impl::take_ready_back(Request& receive) {
    if (!receive.ready || receive.peer->dead) return true;
    receive.channel = nullptr;
    if (!waiting_.try_spare(1)) return false;
    Frame frame;
    frame.kind = FrameKind::unready;
    frame.cookie = shm::Requests::cookie(receive);
    write(*receive.peer, frame);
    return false;
}

// False: nonsense. Of a channel that is not open here nothing is kept.
bool ShmPort::Impl::take_ready(Peer& peer, const Frame& frame) {
    if (frame.payload != 0 || frame.bytes == 0 || frame.cookie == 0) return false;
    for (Request* send = peer.first_announced; send != nullptr; send = send->next) {
        if (send->recalled || send->channel == nullptr || send->key.channel != frame.channel ||
            send->key.operation != frame.operation || send->key.message != frame.message)
            continue;
        // Another number of bytes: the receiver finds that out when it reads the request.
        if (send->bytes == frame.bytes) send_ready(*send, frame.cookie, false);
        return true;
    }
    if (!channels_.contains(frame.channel) || !peer.readies.add(frame)) tell_unheard(peer, frame.cookie);
    return true;
}

void ShmPort::Impl::tell_unheard(Peer& peer, std::uint64_t receive) {
    Frame unheard;
    unheard.kind = FrameKind::unheard;
    unheard.other = receive;
    write(peer, unheard);
}

// One whose message was sent hears of that.
void ShmPort::Impl::take_unready(Peer& peer, const Frame& frame) {
    if (!peer.readies.knows(frame.cookie)) return;
    waiting_.spare(1);  // or the frame comes again
    peer.readies.forget(frame.cookie);
    tell_unheard(peer, frame.cookie);
}

// Who opens a channel of that name next asks about its messages. Without memory their receives wait in vain.
void ShmPort::Impl::forget_readies(std::uint64_t channel) {
    for (const auto& [process, peer] : peers_)
        while (const std::uint64_t receive = peer->readies.any_of(channel)) {
            peer->readies.forget(receive);
            if (waiting_.try_spare(1)) tell_unheard(*peer, receive);
        }
}

// False: nonsense.
bool ShmPort::Impl::take_unheard(Peer& peer, const Frame& frame) {
    Request* const receive = requests_.find(frame.other);
    if (receive == nullptr) return true;  // it is over
    if (receive->kind != Request::Kind::receive || receive->peer != &peer) return false;
    const bool crossed = !receive->ready && receive->protocol == &shm::eager && receive->awaits_peer;
    const bool withdrawn = receive->ready && receive->channel == nullptr;
    if (withdrawn) posted_.remove(*receive);
    receive->ready = false;
    // `crossed`: with a request that was given up since.
    if (crossed || withdrawn) fail(*receive, Status::transport_failed);
    return true;
}

void ShmPort::Impl::send_ready(Request& send, std::uint64_t receive, bool first) {
    settle(send);
    send.peer->writer.touch();
    send.awaits_peer = false;
    send.protocol = &shm::eager;
    send.remote = 0;
    send.remote_request = receive;
    send.done = 0;
    send.until = send.bytes;
    queue(send, first);
}

// Takes what the peer wrote before it is asked: it may have told of the receive.
void ShmPort::Impl::look_for_ready(Peer& peer, const shm::Key& key, std::uint64_t bytes) {
    if (bytes > shm::most_ready_bytes || !peer.heard) return;
    for (int looks = 0; looks < most_looks && !peer.dead; ++looks)
        if (peer.readies.has(key.channel, key.operation, key.message) || !drain(peer, 1)) return;
}

// True: the message is on its way. Else the peer is to be asked, or to be told that it would be: a message of
// the same name that is sent after this one must not be taken for it.
bool ShmPort::Impl::begins_ready(Request& send, std::uint64_t receive) {
    const std::uint64_t cookie = shm::Requests::cookie(send);
    send_ready(send, receive, true);
    copy_a_chunk();
    return requests_.find(cookie) == nullptr || send.done != 0;
}

}  // namespace thalweg
