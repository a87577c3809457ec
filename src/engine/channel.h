// The engine's side of a transport, shared by its executions: slots, credits, waiters, and who is alive.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "engine/credits.h"
#include "engine/engine.h"
#include "engine/waiters/waiter.h"

namespace thalweg {

class Channel {
  public:
    Channel(Transport& transport, const Limits& limits);

    Transport& transport() { return transport_; }
    const Transport& transport() const { return transport_; }
    CreditLedger& credits() { return credits_; }
    const Limits& limits() const { return limits_; }
    Status failure() const { return failure_; }
    // Nothing is posted or polled any more.
    void fail(Status status) {
        if (!failed(failure_)) transport_.give_up();
        failure_ = status;
    }
    Waiter& waiter(WaitPolicy policy) { return policy == WaitPolicy::spin ? *spin_ : *timed_; }

    // An execution is alive from enter() to leave(). enter() says unsupported where the transport could not
    // tell this operation from the oldest that is alive.
    Status enter(Execution::Impl& execution, std::uint32_t operation);
    void leave(Execution::Impl& execution);

    // Called when an execution is made: the transport shall have slots for all its messages. Where it cannot
    // grow, what it has must do (window.h).
    void provide(std::uint32_t messages);

    // Reserves slots for an execution that would like `wanted`: between smallest_window (or `wanted`, if
    // less) and `wanted`, half of what is to be had at most, so that others find some too. What an older
    // execution may still need, once it is the oldest, to widen to all its messages is not to be had. 0: try
    // again after others have left. Executions get their turn in the order of their operations, which is the
    // same on all ranks, so the group's oldest operation holds slots everywhere and completes.
    std::uint32_t reserve(const Execution::Impl& execution, std::uint32_t wanted);
    // As many of `wanted` as are unreserved, for an execution that its window starves; 0 unless it is the
    // oldest.
    std::uint32_t widen(const Execution::Impl& execution, std::uint32_t wanted);
    void unreserve(std::uint32_t slots) { unreserved_ += slots; }

    // Pre: the execution has posted less than it reserved.
    Slot take(Execution::Impl& execution, StepId step, std::uint64_t mark) {
        const Slot slot = free_.back();
        free_.pop_back();
        owners_[slot] = {&execution, mark, step};
        return slot;
    }
    void release(Slot slot) { free_.push_back(slot); }

    // Whether the transport could tell this operation from the oldest that is alive.
    bool admits(std::uint32_t operation) const;

    // Messages, or parts of them, that have completed; of those that came or went by way of packets
    // (Transport::crosses), how many and their bytes at most.
    struct Moved {
        std::uint64_t messages = 0, crossed = 0, bytes = 0;
    };
    const Moved& moved(bool sent) const { return moved_[sent]; }
    void count(bool sent, bool crossed, std::uint64_t bytes) {
        Moved& moved = moved_[sent];
        ++moved.messages;
        if (!crossed) return;
        ++moved.crossed;
        moved.bytes += bytes;
    }

    // Polls the transport once and hands completions to the executions they belong to.
    Status poll();

  private:
    struct Owner {
        Execution::Impl* execution = nullptr;
        std::uint64_t mark = 0;  // for a synchronous send, what its completion acknowledges; else 0
        StepId step = 0;
    };

    Transport& transport_;
    Limits limits_;
    CreditLedger credits_;
    Status failure_ = Status::ok;
    std::uint32_t unreserved_;
    bool grows_ = true;
    std::vector<Slot> free_;
    std::vector<Owner> owners_;
    std::vector<Slot> done_;
    std::array<Moved, 2> moved_;        // received, sent
    Execution::Impl* alive_ = nullptr;  // a list through Impl::next_alive, oldest first
    std::unique_ptr<Waiter> spin_, timed_;
};

}  // namespace thalweg
