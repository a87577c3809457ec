// One run of a schedule: which steps wait, are ready, are posted. Private to the engine.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "engine/arrivals.h"
#include "engine/channel.h"
#include "engine/ready_set.h"
#include "engine/window.h"

namespace thalweg {

struct Execution::Impl {
    Impl(std::shared_ptr<const Schedule> schedule, std::shared_ptr<Channel> channel);

    Status start(const Bindings& bindings, std::uint32_t operation, const FloatModes& modes);
    void expect_unequal();
    Status advance();
    // advance() in two halves, so that several executions share the channel's poll in between: issues what is
    // ready; given what the poll said, goes on with what became ready.
    Status prepare();
    Status settle(Status polled);
    // Copies or reductions are left over for the next advance: no reason to sleep.
    bool has_local_work() const { return !ready_locals_.empty(); }
    // A ready message waits for the window to widen, which takes polls in vain.
    bool starved() const { return starved_; }
    Awaited awaited() const {
        const StepId recv = awaited_of(recvs_), send = awaited_of(sends_);
        if (recv != ReadySet::none && (crosses(recv) || send == ReadySet::none || !crosses(send)))
            return {true, true, crosses(recv), steps_[recv].target.bytes};
        if (send != ReadySet::none) return {true, false, crosses(send), steps_[send].source.bytes};
        return {};
    }
    // Messages beyond the window: more than these slots it can never use.
    std::uint32_t may_widen_by() const { return messages() - std::min(messages(), window_.limit()); }
    // Has messages to post and no slots reserved for them yet.
    bool wants_slots() const { return window_.limit() == 0 && !(sends_.ids.empty() && recvs_.ids.empty()); }
    // Called by the channel when a request of ours is complete.
    Status complete_request(Slot slot, StepId step, std::uint64_t mark);

    std::shared_ptr<const Schedule> schedule;
    std::shared_ptr<Channel> channel;
    std::vector<Aim> aims;  // by step; empty: nothing is put
    bool aimed = false;
    bool running = false;
    bool unequal = false;     // both ends of a message may give it different sizes
    std::vector<Slice> gaps;  // of this run; room for one per receive where `unequal`
    std::uint32_t operation = 0;
    std::uint64_t events = 0;  // requests of ours that completed, ever
    std::uint64_t puts = 0;    // messages put, ever
    Impl* next_alive = nullptr;

  private:
    std::uint32_t messages() const {
        return static_cast<std::uint32_t>(sends_.ids.size() + recvs_.ids.size());
    }

    enum class State : std::uint8_t { waiting, ready, posted, done };

    // The sends, or the receives, in id order; steps before `oldest` are done.
    struct Lane {
        std::vector<StepId> ids;
        std::uint32_t oldest = 0;
    };

    StepId oldest_of(const Lane& lane) const {
        return lane.oldest < lane.ids.size() ? lane.ids[lane.oldest] : ReadySet::none;
    }
    bool crosses(StepId step) const { return channel->transport().crosses(steps_[step].peer); }
    // The oldest that is not done and comes in packets; the oldest of all where that is not near.
    StepId awaited_of(const Lane& lane) const {
        constexpr std::uint32_t looks = 16;
        const auto end = std::min<std::size_t>(lane.ids.size(), std::size_t{lane.oldest} + looks);
        for (std::size_t i = lane.oldest; i < end; ++i) {
            const StepId step = lane.ids[i];
            if (states_[step] != State::done && crosses(step)) return step;
        }
        return oldest_of(lane);
    }
    // An oldest step exists that is not `step` and not posted: a place must be kept for it.
    bool keeps(const Lane& lane, StepId step) const {
        const StepId oldest = oldest_of(lane);
        return oldest != ReadySet::none && oldest != step && states_[oldest] != State::posted;
    }

    bool is_put(StepId step) const { return aimed && steps_[step].direct; }
    void link_successors();
    void sort_messages();
    void make_ready(StepId step);
    void complete_step(StepId step);
    void advance_lane(Lane& lane);
    Status issue();
    Status issue_messages();
    Status post(StepId step, bool is_send);
    Status post_part(Slot slot, StepId step, SendMode mode);
    // Of messages whose ends may give them different sizes, and of pieces of these (unequal.cpp).
    bool takes_excess(Slot slot, StepId step, Status& status);
    void note_received(StepId step, std::uint64_t received);
    void link_pieces();
    StepId next_piece(StepId step) const { return pieces_.empty() ? ReadySet::none : pieces_[step].next; }
    bool never_comes(StepId step) const { return !pieces_.empty() && pieces_[step].never_comes; }
    bool goes_on(StepId step, std::uint64_t received) const;
    Status take_excess(Slot slot, StepId step, std::uint64_t received);
    void skip(StepId step);
    // What travels at a time of a message of which `done` bytes have.
    std::size_t part_of(std::uint64_t bytes, std::uint64_t done) const {
        return moved_.empty() ? bytes : std::min<std::uint64_t>(bytes - done, max_message_bytes_);
    }
    std::uint64_t run_local(std::uint64_t budget_bytes);
    void combine(const std::byte* source, Side source_side, std::byte* target, std::uint64_t bytes);
    void release_held();
    void relieve();
    void finish();
    std::byte* address(Slice slice) const { return base_[static_cast<int>(slice.buffer)] + slice.offset; }

    // Made once.
    std::span<const Step> steps_;
    std::vector<std::uint32_t> predecessors_;  // in-degrees
    std::vector<std::uint32_t> next_begin_;    // CSR: successors of step s are
    std::vector<StepId> next_;                 // next_[next_begin_[s] … next_begin_[s+1])
    std::vector<StepId> roots_;                // in-degree 0
    std::vector<Credit*> credit_of_;           // by step, sends only
    std::vector<Turn> turns_;                  // by step, sends only
    std::vector<std::uint64_t> moved_;         // bytes of a message in parts; empty where none has any
    std::unique_ptr<std::byte[]> scratch_;
    std::size_t max_message_bytes_;
    bool reduces_ = false;
    bool beyond_numbers_ = false;  // a transport would take some message for one of the next operation
    struct PieceState {
        StepId next = ReadySet::none;  // the receive of the piece behind this one; made once
        std::uint32_t excess = 0;      // pieces behind the last receive that have come or are waited for
        bool never_comes = false;      // the message has ended before
    };
    std::vector<PieceState> pieces_;  // by step; empty where no message is in pieces

    // The state of a run.
    std::vector<std::uint32_t> waiting_for_;
    std::vector<State> states_;
    ReadySet ready_sends_, ready_recvs_, ready_locals_, held_sends_;
    Lane sends_, recvs_;
    Window window_;
    std::array<std::byte*, 3> base_{};
    Reducer reducer_;
    FloatModes modes_;                    // that it computes in, where it rounds
    StepId local_step_ = 0;               // the local step in work, where local_done_ != 0
    std::uint64_t local_done_ = 0;        // bytes of it that are done
    std::uint64_t acknowledgements_ = 0;  // those that held_sends_ has been checked against
    std::uint32_t unfinished_ = 0;
    std::uint64_t events_before_ = 0;  // the poll of the advance in work
    std::uint32_t idle_ = 0;           // advances without an event
    bool starved_ = false;             // a ready message found no place in the window
    bool truncated_ = false;           // a message found no room
};

// A thread that is blocked in an operation of ours, as long as it lives. Where several of a process are, they
// yield instead of sleeping, at first: a host MPI's own wait gives way to threads that ask for its lock and
// to nobody else (MPICH), so that one thread in it keeps its core from others that sleep in ours. Who has
// waited for long, and sleeps, is no reason for others to yield.
class Blocked {
  public:
    // in_slices: the wait is one of many short ones that make up a long one, of which none would ever sleep.
    explicit Blocked(WaitPolicy policy, bool in_slices = false)
        : may_yield_(policy == WaitPolicy::sleep && !in_slices) {
        if (may_yield_) join();
    }
    ~Blocked() { leave(); }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;

    // After a poll in vain. True: it yielded, and it is time for the next one.
    bool yielded();
    void progressed() {
        idle_since_ns_ = 0;
        if (may_yield_ && !counted_) join();
    }

  private:
    void join() {
        threads_.fetch_add(1, std::memory_order_relaxed);
        counted_ = true;
    }
    void leave() {
        if (counted_) threads_.fetch_sub(1, std::memory_order_relaxed);
        counted_ = false;
    }

    static constinit std::atomic<std::uint32_t> threads_;  // that may yield, and have not waited for long
    const bool may_yield_;
    bool counted_ = false;
    std::uint64_t idle_since_ns_ = 0;  // 0: the last poll found something
};

}  // namespace thalweg
