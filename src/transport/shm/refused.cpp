// Copies that the system refuses between two memories: what is left of the message goes through the ring.
#include <algorithm>
#include <cstring>

#include "transport/shm/channel.h"

namespace thalweg {

using shm::Frame;
using shm::FrameKind;
using shm::Request;

// The system does not copy between these two memories: what is left of this side's share goes through the
// ring. Pre: it was taken out of the queue.
void ShmPort::Impl::take_the_ring(Request& job) {
    job.peer->segment.try_again();
    if (job.kind != Request::Kind::receive) {
        job.protocol = &shm::eager;
        job.next_job = first_job_;
        first_job_ = &job;
        if (last_job_ == nullptr) last_job_ = &job;
        ++jobs_;
        return;
    }
    count_copies(-static_cast<std::int64_t>(job.until - job.done));
    job.copying = false;
    job.expected_s = 0;  // says nothing about a protocol
    // Of a share the sender has heard, and copies the rest.
    if (job.until != job.bytes) {
        job.left_over = job.until;
        job.until = job.done;
        if (!job.awaits_peer) ask_for_rest(job);
        return;
    }
    // Of the whole message it has not heard yet.
    Frame frame;
    frame.kind = FrameKind::answer;
    frame.other = job.remote_request;
    frame.cookie = shm::Requests::cookie(job);
    frame.operation = number_of(shm::eager);
    frame.bytes = job.until = job.done;
    job.protocol = &shm::eager;
    job.awaits_peer = true;
    write(*job.peer, frame);
    if (job.done != 0) acknowledge(*job.peer, job.remote_request);
}

Status ShmPort::Impl::store_through(const Request& put, std::size_t bytes, std::size_t& done) {
    done = 0;
    while (done < bytes) {
        Frame frame;
        frame.kind = FrameKind::stored;
        frame.channel = put.key.channel;
        frame.address = put.remote + put.done + done;
        frame.payload = static_cast<std::uint32_t>(std::min(bytes - done, shm::piece_bytes));
        if (!put.peer->writer.write(frame, put.data + put.done + done)) break;
        done += frame.payload;
    }
    return Status::ok;
}

// Into exposed memory only. Of a channel that is gone, or has failed, it is nobody's any more.
bool ShmPort::Impl::take_stored(const Frame& frame, const std::byte* payload) {
    const auto found = channels_.find(frame.channel);
    if (found == channels_.end() || found->second->has_failed()) return true;
    if (!found->second->exposes(frame.address, frame.payload)) return false;
    std::memcpy(reinterpret_cast<void*>(frame.address), payload, frame.payload);
    return true;
}

// Pre: the sender has done its own share, and waits for word of the receiver's.
void ShmPort::Impl::ask_for_rest(Request& receive) {
    Frame frame;
    frame.kind = FrameKind::answer;
    frame.other = receive.remote_request;
    frame.cookie = shm::Requests::cookie(receive);
    frame.operation = number_of(shm::eager);
    frame.offset = receive.done;
    frame.bytes = receive.left_over;
    write(*receive.peer, frame);
    receive.left_over = 0;
    receive.awaits_peer = true;
}

}  // namespace thalweg
