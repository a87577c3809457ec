#include "plan/measured_link.h"

#include <algorithm>

#include "base/clock.h"
#include "engine/waiters/between_polls.h"
#include "transport/mpi/host.h"

namespace thalweg {
namespace {

constexpr int round_trips = 8;  // the shortest counts

}  // namespace

MeasuredLink::MeasuredLink(MPI_Comm comm, int peer, int tag, WaitPolicy policy, Memory& memory)
    : comm_(comm),
      peer_(peer),
      tag_(tag),
      policy_(policy),
      memory_(memory),
      deadline_ns_(now_ns() + patience_ns) {
    expects_end_ = post(false, &memory_.other, sizeof memory_.other, tag_ + 1, peers_end_);
}

bool MeasuredLink::ping(std::uint64_t& latency_ns) {
    latency_ns = ~std::uint64_t{0};
    for (int i = 0; i < round_trips; ++i) {
        const std::uint64_t start = now_ns();
        if (!send(nullptr, 0) || !receive(nullptr, 0)) return false;
        latency_ns = std::min(latency_ns, (now_ns() - start) / 2);
    }
    return true;
}

bool MeasuredLink::pong() {
    for (int i = 0; i < round_trips; ++i)
        if (!receive(nullptr, 0) || !send(nullptr, 0)) return false;
    return true;
}

bool MeasuredLink::stream_out(std::size_t part_bytes) {
    for (int i = 0; i < parts; ++i)
        if (!begin(true, memory_.data + static_cast<std::size_t>(i) * part_bytes, part_bytes)) return false;
    return finish();
}

bool MeasuredLink::stream_in(std::size_t part_bytes, std::uint64_t& duration_ns) {
    std::uint64_t first = 0, timed = 0;
    for (int i = 0; i < parts; ++i)
        if (!begin(false, memory_.data + static_cast<std::size_t>(i) * part_bytes, part_bytes)) return false;
    while (active_ > 0) {
        if (!poll()) return false;
        if (first == 0 && active_ <= parts - untimed_parts) {
            first = now_ns();
            timed = static_cast<std::uint64_t>(active_);
        }
    }
    duration_ns = 0;
    if (timed != 0)
        duration_ns = std::max<std::uint64_t>(1, (now_ns() - first) * (parts - untimed_parts) / timed);
    return true;
}

bool MeasuredLink::tell(Verdict verdict) {
    memory_.verdict = verdict;
    return send(&memory_.verdict, sizeof memory_.verdict);
}

bool MeasuredLink::hear(Verdict& verdict) {
    if (!receive(&memory_.verdict, sizeof memory_.verdict)) return false;
    verdict = memory_.verdict;
    return true;
}

// Sends its own ending, even where that may fail: the other end need not wait then.
MeasuredLink::Outcome MeasuredLink::end() {
    deadline_ns_ = now_ns() + patience_ns;
    memory_.own = {sent_, trouble_};
    if (post(true, &memory_.own, sizeof memory_.own, tag_ + 1, requests_[active_])) ordinal_[active_++] = 0;
    while (expects_end_ && !peer_ended_ && in_time()) advance();
    const bool clean = peer_ended_ && drain() && trouble_ != LinkTrouble::failed;
    if (!clean) abandon();
    if (peer_ended_)
        trouble_ = std::max(trouble_, memory_.other.trouble);
    else
        trouble_ = std::max(trouble_, LinkTrouble::silent);
    return {trouble_, clean};
}

bool MeasuredLink::post(bool out, void* data, std::size_t bytes, int tag, MPI_Request& request) {
    const Host& mpi = *host();
    const int count = static_cast<int>(bytes);
    const int error = out ? mpi.Isend(data, count, mpi.byte, peer_, tag, comm_, &request)
                          : mpi.Irecv(data, count, mpi.byte, peer_, tag, comm_, &request);
    if (error != MPI_SUCCESS) trouble_ = LinkTrouble::failed;
    return error == MPI_SUCCESS;
}

bool MeasuredLink::begin(bool out, void* data, std::size_t bytes) {
    if (trouble_ != LinkTrouble::none || !post(out, data, bytes, tag_, requests_[active_])) return false;
    sent_ += out;
    expected_ += !out;
    ordinal_[active_++] = out ? 0 : expected_;
    return true;
}

bool MeasuredLink::finish() {
    while (active_ > 0)
        if (!poll()) return false;
    return true;
}

// An end that is done says so before what it sent last may have been found here.
bool MeasuredLink::poll() {
    advance();
    if (active_ == 0) return trouble_ == LinkTrouble::none;
    if (trouble_ == LinkTrouble::none && !in_time()) trouble_ = LinkTrouble::silent;
    if (peer_ended_ && memory_.other.trouble != LinkTrouble::none) return false;
    return trouble_ == LinkTrouble::none;
}

bool MeasuredLink::in_time() { return now_ns() < deadline_ns_; }

// Looks once, and passes some time where nothing came. False: a call failed.
bool MeasuredLink::advance() {
    const Host& mpi = *host();
    int completed = 0, indices[parts + 2], ended = 0;
    int error = MPI_SUCCESS;
    if (active_ > 0) error = mpi.Testsome(active_, requests_, &completed, indices, MPI_STATUSES_IGNORE);
    const bool lost = error != MPI_SUCCESS || completed == MPI_UNDEFINED;
    if (lost) completed = 0;
    if (expects_end_ && !peer_ended_ && mpi.Test(&peers_end_, &ended, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        error = MPI_ERR_OTHER;
        expects_end_ = false;
    }
    peer_ended_ |= ended != 0;
    // The other end may wait for this core.
    const bool nothing = completed == 0 && ended == 0;
    waits_since_ns_ = nothing ? pause_between_polls(policy_, waits_since_ns_) : 0;
    std::sort(indices, indices + completed);
    while (completed > 0) forget(indices[--completed]);
    // After a failure nobody says which are complete, but those are null.
    for (int i = active_; lost && i-- > 0;)
        if (requests_[i] == mpi.request_null) forget(i);
    if (lost || error != MPI_SUCCESS) trouble_ = LinkTrouble::failed;
    return error == MPI_SUCCESS;
}

void MeasuredLink::forget(int index) {
    --active_;
    requests_[index] = requests_[active_];
    ordinal_[index] = ordinal_[active_];
}

// What the other end sent is received, one message after another, which come after all that were expected.
// False: not in time, or a call failed.
bool MeasuredLink::drain() {
    const std::uint64_t sent = memory_.other.sent;
    withdraw_unserved();
    for (;;) {
        const bool receives =
            std::any_of(ordinal_, ordinal_ + active_, [](auto ordinal) { return ordinal != 0; });
        if (!receives && expected_ < sent) {
            if (!post(false, memory_.unexpected, sizeof memory_.unexpected, tag_, requests_[active_]))
                return false;
            ordinal_[active_++] = ++expected_;
        }
        if (active_ == 0) return true;
        if (!in_time() || !advance()) return false;
    }
}

// Receives take messages in the order in which they were posted: the last ones are those that none is for.
void MeasuredLink::withdraw_unserved() {
    for (int i = 0; i < active_; ++i)
        if (ordinal_[i] > memory_.other.sent && host()->Cancel(&requests_[i]) != MPI_SUCCESS)
            trouble_ = LinkTrouble::failed;
}

// To MPI, which may still use the memory.
void MeasuredLink::abandon() {
    const Host& mpi = *host();
    for (int i = 0; i < active_; ++i) {
        if (requests_[i] == mpi.request_null) continue;
        if (ordinal_[i] != 0) mpi.Cancel(&requests_[i]);
        mpi.Request_free(&requests_[i]);
    }
    if (expects_end_ && !peer_ended_) {
        mpi.Cancel(&peers_end_);
        mpi.Request_free(&peers_end_);
    }
    active_ = 0;
}

}  // namespace thalweg
