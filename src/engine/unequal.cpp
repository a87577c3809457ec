// Receives of messages whose ends may give them different sizes, whole ones and those that travel in pieces
// (schedule/step.h).
//
// A receiver can withdraw nothing. So the receive of a piece is posted when the one before has come and was
// full: only then another one is on its way. A message that ends early lets its further receives be skipped;
// one that goes on behind the last of them is taken to its end by receives without room, which no step waits
// for: were the steps behind it to wait, two ranks might each wait for what the other sends later.
#include <unordered_map>

#include "engine/execution.h"

namespace thalweg {

void Execution::Impl::expect_unequal() {
    gaps.reserve(recvs_.ids.size());
    // In one: the receiver cannot tell how many parts a message has that is longer than its receive.
    moved_.clear();
    link_pieces();
    unequal = true;
}

void Execution::Impl::link_pieces() {
    std::unordered_map<std::uint64_t, StepId> receives;  // by peer and number
    const auto key = [](const Step& step, std::uint32_t behind) {
        return static_cast<std::uint64_t>(step.peer) * max_messages_per_pair + step.message + behind;
    };
    for (const StepId id : recvs_.ids)
        if (steps_[id].full_bytes != 0) receives.emplace(key(steps_[id], 0), id);
    if (receives.empty()) return;
    pieces_.resize(steps_.size());
    for (const auto& [unused, id] : receives) {
        if (steps_[id].may_follow == 0) continue;
        const auto next = receives.find(key(steps_[id], 1));
        if (next == receives.end()) continue;
        pieces_[id].next = next->second;
        if (predecessors_[next->second]++ == 0) std::erase(roots_, next->second);
    }
}

// A receive is complete. True: it goes on, or has gone on, with what comes behind the last one of its
// message, and there is nothing else to be done about it.
bool Execution::Impl::takes_excess(Slot slot, StepId id, Status& status) {
    const std::uint64_t received = channel->transport().received_bytes(slot);
    const bool further = !pieces_.empty() && pieces_[id].excess != 0;
    if (!further) {
        note_received(id, received);
        if (!goes_on(id, received)) return false;
        complete_step(id);
        advance_lane(recvs_);
        ++unfinished_;
    }
    status = take_excess(slot, id, received);
    return true;
}

// Of a receive whose sender may have had another number of bytes.
void Execution::Impl::note_received(StepId id, std::uint64_t received) {
    const Step& step = steps_[id];
    const Slice& target = step.target;
    if (received > target.bytes) truncated_ = true;
    if (step.full_bytes != 0 && received >= step.full_bytes && step.may_follow != 0) return;
    // The message ends here.
    StepId last = id;
    for (StepId next = next_piece(id); next != ReadySet::none; next = next_piece(next)) {
        pieces_[next].never_comes = true;
        last = next;
    }
    const std::uint64_t begin = target.offset + std::min(received, target.bytes);
    const std::uint64_t end = steps_[last].target.end();
    if (begin < end) gaps.push_back({target.buffer, begin, end - begin});
}

// Whether more of its message comes behind a piece that no receive stands behind.
bool Execution::Impl::goes_on(StepId id, std::uint64_t received) const {
    const Step& step = steps_[id];
    return step.full_bytes != 0 && step.may_follow != 0 && received >= step.full_bytes &&
           next_piece(id) == ReadySet::none;
}

// `received`: of the piece that came last, behind which another one comes unless it was the last.
Status Execution::Impl::take_excess(Slot slot, StepId id, std::uint64_t received) {
    const Step& step = steps_[id];
    std::uint32_t& excess = pieces_[id].excess;
    if (received == Transport::too_many_bytes) return Status::mismatch;  // it may be the last, or not
    if (received >= step.full_bytes && excess < step.may_follow) {
        ++excess;
        return channel->transport().post_recv(slot, step.peer, {operation, step.message + excess, true},
                                              address(step.target), 0);
    }
    excess = 0;
    channel->release(slot);
    window_.complete();
    --unfinished_;
    return Status::ok;
}

// Of a piece that never comes.
void Execution::Impl::skip(StepId id) {
    ready_locals_.erase(id);
    complete_step(id);
    advance_lane(recvs_);
}

}  // namespace thalweg
