// The end of a channel that has something in flight.
#include <new>

#include "transport/shm/channel.h"

namespace thalweg {

using shm::Channel;
using shm::Frame;
using shm::Request;

// Of frames of the channel that wait for room, and whose payload is the program's.
template <typename Then>
void ShmPort::Impl::for_payloads(const Channel& channel, Then then) {
    for (const auto& [process, peer] : peers_)
        for (shm::Waiting* waiting = peer->outgoing.first(); waiting != nullptr; waiting = waiting->next)
            if (shm::Outgoing& what = waiting->what; what.frame.channel == channel.name() &&
                                                     what.own == nullptr && what.frame.payload != 0 &&
                                                     what.payload != waiting->word.data())
                then(what);
}

bool ShmPort::Impl::withdraw(Channel& channel) {
    bool touched = channel.has_failed() && end_puts(channel);
    // What waits for room in a ring goes out all the same.
    for_payloads(channel, [&](shm::Outgoing& what) {
        try {
            what.keep_payload();
        } catch (const std::bad_alloc&) {
            touched = true;
        }
    });
    for (Request& request : requests_) {
        if (request.kind == Request::Kind::none || request.channel != &channel) continue;
        if (request.kind == Request::Kind::receive && request.protocol == nullptr) {
            forget(request);
            continue;
        }
        // Others of a peer that has ended are gone (mourn()).
        if (request.peer->dead && request.copying) {
            unqueue(request);
            settle(request);
            requests_.free(request);
            continue;
        }
        if (request.kind == Request::Kind::receive && request.awaits_peer && !request.peer->dead) {
            touched = true;  // stays the channel's until the peer is done
            continue;
        }
        const bool pushing = request.kind == Request::Kind::send && request.copying;
        const bool unfinished_put = request.kind == Request::Kind::put && request.copying;
        // What travels whole is in the ring already. Of other sends the peer may be reading, until it says
        // that it does no more, what the program frees next.
        const bool is_read = request.kind == Request::Kind::send && request.bytes > options_.eager_bytes &&
                             (request.awaits_peer || pushing) && !request.peer->dead;
        if (is_read && !request.recalled && !waiting_.try_spare(1)) {
            touched = true;  // there may be memory later
            continue;
        }
        if (pushing || unfinished_put) unqueue(request);
        if (unfinished_put) {
            requests_.free(request);
            continue;
        }
        if (is_read) {
            if (!request.recalled) recall(request);
            touched = true;
            continue;
        }
        request.channel = nullptr;
    }
    return touched;
}

void ShmPort::Impl::recall(Request& send) {
    send.recalled = send.awaits_peer = true;
    Frame frame;
    frame.kind = shm::FrameKind::recall;
    frame.cookie = shm::Requests::cookie(send);
    frame.other = send.remote_request;
    write(*send.peer, frame);
}

// Its memory is about to be somebody else's.
void ShmPort::Impl::take_recall(shm::Peer& peer, const Frame& frame) {
    for (Request& request : requests_) {
        if (request.peer != &peer) continue;
        // Who receives it later is told that it is gone.
        if (request.kind == Request::Kind::early && request.acknowledge == frame.cookie)
            request.recalled = true;
        if (request.kind != Request::Kind::receive || (request.protocol == nullptr && !request.ready))
            continue;
        const bool asked = !request.ready && request.remote_request == frame.cookie;
        if (!asked && shm::Requests::cookie(request) != frame.other) continue;
        if (request.ready) posted_.remove(request);
        if (request.copying) unqueue(request);
        fail(request, Status::transport_failed);
    }
    acknowledge(peer, frame.cookie);
}

// The plans of exchanges that put are given up, and the memory that others were given is the program's again.
bool ShmPort::Impl::end_puts(Channel& channel) {
    using Putter = Channel::Putter;
    bool waits = false;
    for (std::size_t place = 0; place < channel.putters().size(); ++place) {
        Putter& putter = channel.putters()[place];
        const int rank = channel.near_rank(place);
        shm::Peer* const peer = channel.peer_of(rank);
        if (peer == nullptr || peer->dead || channel.was_given_up_by(peer) || rank == channel.rank())
            putter = Putter::stopped;
        if (putter == Putter::unasked && waiting_.try_spare(1)) {
            Frame frame;
            frame.kind = shm::FrameKind::no_puts;
            frame.channel = channel.name();
            write(*peer, frame);
            putter = Putter::asked;
        }
        waits |= putter != Putter::stopped;
    }
    return waits;
}

// What was to be put there is put nowhere, and who waits for the peer on this channel hears that it has given
// up.
void ShmPort::Impl::take_no_puts(shm::Peer& peer, const Frame& frame) {
    waiting_.spare(1);  // or the frame comes again
    if (const auto found = channels_.find(frame.channel); found != channels_.end()) {
        Channel& channel = *found->second;
        channel.note_given_up(peer);
        bool wants = false;
        for (Request& request : requests_) {
            const bool in_flight = request.kind == Request::Kind::send ||
                                   request.kind == Request::Kind::receive ||
                                   request.kind == Request::Kind::put;
            if (!in_flight || request.channel != &channel || request.peer != &peer) continue;
            wants = true;
            if (request.kind != Request::Kind::put || !request.copying) continue;
            unqueue(request);
            requests_.free(request);
        }
        if (wants) channel.lose(&peer, -1);
    }
    Frame answer;
    answer.kind = shm::FrameKind::none_put;
    answer.channel = frame.channel;
    write(peer, answer);
}

void ShmPort::Impl::take_none_put(shm::Peer& peer, const Frame& frame) {
    const auto found = channels_.find(frame.channel);
    if (found != channels_.end()) found->second->note_stopped(peer);
}

// What withdraw() could not keep for want of memory is read no more: an answer to nobody in its place. What
// peers still send for it is written nowhere.
void ShmPort::Impl::abandon(Channel& channel) {
    for (Channel::Putter& putter : channel.putters()) putter = Channel::Putter::stopped;
    for_payloads(channel, [](shm::Outgoing& what) {
        what.frame = {};
        what.frame.kind = shm::FrameKind::taken;
        what.payload = nullptr;
        what.elements = {};
    });
    for (Request& request : requests_) {
        if (request.kind == Request::Kind::none || request.channel != &channel) continue;
        if (request.kind == Request::Kind::send && request.copying) unqueue(request);
        request.channel = nullptr;
    }
}

void ShmPort::Impl::close(Channel& channel) {
    awake(channel);
    abandon(channel);
    early_.take_all([&](const Request& early) { return early.key.channel == channel.name(); },
                    [&](Request& early) { drop(early); });
    forget_readies(channel.name());
    channels_.erase(channel.name());
}

}  // namespace thalweg
