// How many requests an execution may have posted, and which step may take the next place.
//
// Receives must not starve sends nor sends receives, and a step that became ready early must not take the
// place of one that the peers wait for. The rule: of the `limit` places one is kept for the oldest incomplete
// send and one for the oldest incomplete receive ("oldest": smallest id). All others go to whatever is ready,
// in id order.
//
// Why two places suffice. Call a set of schedules *orderly* (orderly.h decides it) when the messages of the
// whole group have one total order in which (a) the sends of every rank are numbered upwards, (b) so are its
// receives, and (c) a message that depends on another, through any steps of one rank, comes later. Rounds
// played one after another are orderly, and so are their pieces chunk by chunk. Claim: an orderly set
// completes with limit = 2 on every rank even if every send completes only when it has met its receive.
// Proof: let m, from u to v, be the smallest message of the order that is not complete. All that m's send
// depends on at u is smaller (c), hence complete, or local, hence done without waiting: the send is ready.
// All smaller sends of u are complete, so by (a) it is u's oldest, and its place is free or already its own;
// credits never hold the oldest send. The same holds for the receive at v by (b). So m gets posted on both
// sides and completes: no state is final but the last. With one place this fails: two ranks that exchange
// messages each fill it with their send.
//
// A set that is valid but not orderly can need as many places as it has messages (a rank sends a before b,
// the receiver takes b before a: one place for sends is then never enough). So an execution that finds ready
// messages shut out by its own limit, and sees nothing complete for a while, widens its window; and a channel
// grows its transport so that the oldest execution can always widen to all its messages. With the whole
// group's oldest operation unbounded in that way, any valid schedule completes. Only where a transport cannot
// grow (hardware queues) must schedules be orderly or have no more messages than it has slots.
#pragma once

#include <cstdint>

namespace thalweg {

inline constexpr std::uint32_t smallest_window = 2;

class Window {
  public:
    void reset(std::uint32_t limit) { *this = Window{}, limit_ = limit; }
    void widen(std::uint32_t by) { limit_ += by; }
    std::uint32_t limit() const { return limit_; }
    std::uint32_t posted() const { return posted_; }

    // `keep_send`: an oldest incomplete send exists that is neither posted nor the step in question; the same
    // for receives. At every time posted + kept places <= limit, so the oldest ones always find theirs.
    bool admits(bool keep_send, bool keep_recv) const {
        return posted_ + 1 + keep_send + keep_recv <= limit_;
    }
    void post() { ++posted_; }
    void complete() { --posted_; }

  private:
    std::uint32_t limit_ = 0;
    std::uint32_t posted_ = 0;
};

}  // namespace thalweg
