// The oracle: runs the schedules of all ranks of one problem in one process, and compares what they leave
// behind with the collective's definition in the MPI standard.
//
// It trusts nothing: buffers start poisoned (every byte of `out` that the collective does not define at the
// start holds the complement of the right answer), each stands between guard bytes, steps run in a random
// order among those that are ready, a send reads its data at a random moment between ready and complete, a
// posted receive may scribble over its target before the message arrives (MPI allows it), and a message is
// eager or rendezvous by chance. A run is a function of its seed. Header only; no MPI, no GoogleTest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "algorithms/algorithm.h"
#include "oracle/definition.h"
#include "schedule/schedule.h"

namespace thalweg::oracle {

// Every rank's schedule of one problem; build(rank) makes one.
template <class Build>
std::vector<Schedule> all_ranks(int size, Build build) {
    std::vector<Schedule> schedules;
    schedules.reserve(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) schedules.push_back(build(rank));
    return schedules;
}

namespace detail {

inline const char* name_of(StepKind kind) {
    static constexpr const char* names[] = {"send", "recv", "copy", "reduce"};
    return names[static_cast<int>(kind)];
}

inline const char* name_of(Buffer buffer) {
    static constexpr const char* names[] = {"in", "out", "scratch"};
    return names[static_cast<int>(buffer)];
}

// A buffer between guards. Writes may reach into the guards, where they are found at the end; anything
// further out is refused at once.
class Memory {
  public:
    static constexpr std::uint64_t guard_bytes = 64;

    void make(std::uint64_t bytes, Random& random) {
        bytes_ = bytes;
        cells_.resize(bytes + 2 * guard_bytes);
        for (auto& cell : cells_) cell = static_cast<std::uint8_t>(random.next());
        std::copy_n(cells_.begin(), guard_bytes, guard_);
        std::copy_n(cells_.begin(), guard_bytes, cells_.end() - guard_bytes);
    }

    std::uint8_t* at(std::uint64_t offset) { return cells_.data() + guard_bytes + offset; }
    std::uint64_t bytes() const { return bytes_; }

    bool may_read(const Slice& slice) const {
        return slice.offset <= bytes_ && slice.bytes <= bytes_ - slice.offset;
    }
    bool may_write(const Slice& slice) const {
        return slice.offset <= bytes_ && slice.bytes <= bytes_ - slice.offset + guard_bytes;
    }

    // The offset, from the buffer's start, of the first damaged guard byte.
    bool damaged(std::int64_t& offset) const {
        const auto guard = static_cast<std::int64_t>(guard_bytes), end = static_cast<std::int64_t>(bytes_);
        for (std::int64_t i = 0; i < guard; ++i) {
            if (cells_[i] != guard_[i]) return offset = i - guard, true;
            if (cells_[guard + end + i] != guard_[i]) return offset = end + i, true;
        }
        return false;
    }

  private:
    std::uint64_t bytes_ = 0;
    std::vector<std::uint8_t> cells_;
    std::uint8_t guard_[guard_bytes] = {};
};

class Run {
  public:
    // `absent`: a rank that never begins; -1: all do.
    Run(std::span<const Schedule> schedules, const Definition& definition, std::uint64_t seed,
        int absent = -1)
        : schedules_(schedules), definition_(definition), random_(seed), absent_(absent) {
        // Who is slow and what comes first differs from seed to seed, so that extreme orders appear too.
        style_ = random_.below(4);
        scribble_ = random_.below(2) != 0;
    }

    std::string verdict() {
        play();
        if (why_.empty()) find_stuck_step();
        if (why_.empty()) compare();
        return why_;
    }

    // One rank never begins: empty when no other one ends.
    std::string verdict_without_one() {
        play();
        for (std::size_t r = 0; why_.empty() && r < ranks_.size(); ++r)
            if (static_cast<int>(r) != absent_ && ranks_[r].left == 0)
                why_ = "rank " + std::to_string(r) + " ends before rank " + std::to_string(absent_) +
                       " has begun";
        return why_;
    }

  private:
    struct Event {
        std::uint64_t order;  // small comes first
        std::uint32_t rank;
        StepId step;
        bool finish;  // a send whose data has left may now complete
        bool operator<(const Event& other) const { return order > other.order; }
    };

    struct Rank {
        Memory buffers[3];
        std::vector<std::uint32_t> waits_for;        // per step: dependencies that are not complete
        std::vector<std::vector<StepId>> followers;  // per step
        std::vector<bool> complete;
        std::uint64_t left = 0;
        std::uint64_t bias = 0;
    };

    // One end of a message that waits for the other.
    struct Half {
        bool is_send = false;
        bool rendezvous = false;
        StepId step = 0;
        std::uint64_t bytes = 0;
        std::vector<std::uint8_t> data;  // of an eager send
    };

    void play() {
        make_ranks();
        while (why_.empty() && !events_.empty()) {
            const Event event = events_.top();
            events_.pop();
            handle(event);
        }
    }

    void make_ranks() {
        ranks_.resize(schedules_.size());
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            const Schedule& schedule = schedules_[r];
            Rank& rank = ranks_[r];
            if (schedule.rank() != static_cast<int>(r) ||
                schedule.size() != static_cast<int>(ranks_.size())) {
                why_ = "rank " + std::to_string(r) + ": the schedule is another rank's";
                return;
            }
            rank.buffers[0].make(definition_.in_bytes(static_cast<int>(r)), random_);
            rank.buffers[1].make(definition_.out_bytes(static_cast<int>(r)), random_);
            rank.buffers[2].make(schedule.scratch_bytes(), random_);
            definition_.fill(static_cast<int>(r), rank.buffers[0].at(0), rank.buffers[1].at(0));
            rank.bias = style_ == 0 ? 0 : random_.below(style_ == 1 ? 4 : 64) << 14;
            const auto steps = schedule.steps().size();
            rank.left = steps;
            rank.waits_for.resize(steps);
            rank.followers.resize(steps);
            rank.complete.resize(steps);
            for (StepId step = 0; step < steps; ++step) {
                rank.waits_for[step] = static_cast<std::uint32_t>(schedule.after(step).size());
                for (StepId on : schedule.after(step)) rank.followers[on].push_back(step);
            }
            for (StepId step = 0; static_cast<int>(r) != absent_ && step < steps; ++step)
                if (rank.waits_for[step] == 0) become_ready(static_cast<std::uint32_t>(r), step);
        }
    }

    void become_ready(std::uint32_t r, StepId step) {
        if (scribble_ && schedules_[r].steps()[step].kind == StepKind::recv) scribble(r, step);
        schedule_event(r, step, false);
    }

    void schedule_event(std::uint32_t r, StepId step, bool finish) {
        const std::uint64_t now = style_ == 3 ? (1ull << 40) - 4 * ++made_ : 4 * ++made_;  // 3: newest first
        events_.push({now + ranks_[r].bias + random_.below(1u << 14), r, step, finish});
    }

    void fail(std::uint32_t r, StepId step, const std::string& what) {
        const Step& it = schedules_[r].steps()[step];
        why_ = "rank " + std::to_string(r) + " step " + std::to_string(step) + " (" + name_of(it.kind);
        if (is_message(it.kind))
            why_ += (it.kind == StepKind::send ? " to " : " from ") + std::to_string(it.peer) + ", message " +
                    std::to_string(it.message);
        why_ += "): " + what;
    }

    bool in_bounds(std::uint32_t r, StepId step) {
        const Step& it = schedules_[r].steps()[step];
        if (it.kind != StepKind::recv && !memory(r, it.source).may_read(it.source))
            return fail(r, step, outside(r, "reads", it.source)), false;
        if (it.kind != StepKind::send && !memory(r, it.target).may_write(it.target))
            return fail(r, step, outside(r, "writes", it.target)), false;
        return true;
    }

    std::string outside(std::uint32_t r, const char* verb, const Slice& slice) {
        return std::string(verb) + " bytes " + std::to_string(slice.offset) + " to " +
               std::to_string(slice.end()) + " of " + name_of(slice.buffer) + ", which has " +
               std::to_string(memory(r, slice).bytes());
    }

    Memory& memory(std::uint32_t r, const Slice& slice) {
        return ranks_[r].buffers[static_cast<int>(slice.buffer)];
    }

    void scribble(std::uint32_t r, StepId step) {
        if (!in_bounds(r, step)) return;
        const Slice& target = schedules_[r].steps()[step].target;
        std::uint8_t* to = memory(r, target).at(target.offset);
        for (std::uint64_t i = 0; i < target.bytes; ++i) to[i] = static_cast<std::uint8_t>(to[i] ^ 0x35);
    }

    void handle(const Event& event) {
        const Step& step = schedules_[event.rank].steps()[event.step];
        if (event.finish) return complete(event.rank, event.step);
        if (!in_bounds(event.rank, event.step)) return;
        if (is_message(step.kind)) return meet(event.rank, event.step);
        std::uint8_t* to = memory(event.rank, step.target).at(step.target.offset);
        const std::uint8_t* from = memory(event.rank, step.source).at(step.source.offset);
        if (step.kind == StepKind::copy)
            std::memmove(to, from, step.source.bytes);
        else
            definition_.combine(step.source_side == Side::left ? from : to,
                                step.source_side == Side::left ? to : from, to, step.source.bytes,
                                const_cast<Definition*>(&definition_));
        complete(event.rank, event.step);
    }

    // One end of a message takes part: it meets the other end, or waits for it.
    void meet(std::uint32_t r, StepId id) {
        const Step& step = schedules_[r].steps()[id];
        const bool send = step.kind == StepKind::send;
        if (step.peer < 0 || step.peer >= static_cast<int>(ranks_.size()) || step.peer == static_cast<int>(r))
            return fail(r, id, "no such peer");
        const auto peer = static_cast<std::uint32_t>(step.peer);
        const std::uint64_t pair = send ? (std::uint64_t{r} << 20 | peer) : (std::uint64_t{peer} << 20 | r);
        const std::uint64_t key = pair << 24 | step.message;
        const Slice& slice = send ? step.source : step.target;
        auto found = waiting_.find(key);
        if (found == waiting_.end()) {
            // Where a rank never comes, a send that waits for it would hide that nobody else does.
            const bool rendezvous = random_.below(2) != 0 && absent_ < 0;
            Half half{send, send && rendezvous, id, slice.bytes, {}};
            if (send && !half.rendezvous) {
                const std::uint8_t* from = memory(r, slice).at(slice.offset);
                half.data.assign(from, from + slice.bytes);
                schedule_event(r, id, true);
            }
            waiting_.emplace(key, std::move(half));
            return;
        }
        Half other = std::move(found->second);
        waiting_.erase(found);
        if (other.is_send == send)
            return fail(r, id, "another step of this rank has the same message number");
        if (other.bytes != slice.bytes)
            return fail(
                r, id,
                std::to_string(slice.bytes) + " bytes meet a message of " + std::to_string(other.bytes));
        deliver(send ? r : peer, send ? id : other.step, send ? peer : r, send ? other.step : id, other);
    }

    void deliver(std::uint32_t from, StepId send, std::uint32_t to, StepId recv, const Half& first) {
        const Slice& source = schedules_[from].steps()[send].source;
        const Slice& target = schedules_[to].steps()[recv].target;
        const bool eager = first.is_send && !first.rendezvous;
        const std::uint8_t* data = eager ? first.data.data() : memory(from, source).at(source.offset);
        if (target.bytes != 0) std::memcpy(memory(to, target).at(target.offset), data, target.bytes);
        complete(to, recv);
        if (!eager) schedule_event(from, send, true);
    }

    void complete(std::uint32_t r, StepId step) {
        Rank& rank = ranks_[r];
        rank.complete[step] = true;
        --rank.left;
        for (StepId next : rank.followers[step])
            if (--rank.waits_for[next] == 0) become_ready(r, next);
    }

    void find_stuck_step() {
        for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
            if (ranks_[r].left == 0) continue;
            for (StepId step = 0; step < ranks_[r].complete.size(); ++step)
                if (!ranks_[r].complete[step] && ranks_[r].waits_for[step] == 0)
                    return fail(r, step, "waits for ever, the other end never comes");
        }
        for (const auto& [key, half] : waiting_) {
            const auto sender = static_cast<std::uint32_t>(key >> 44);
            if (half.is_send) return fail(sender, half.step, "was sent and never received");
        }
    }

    void compare() {
        for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
            const std::string rank = "rank " + std::to_string(r) + ": ";
            for (int b = 0; b < 3; ++b) {
                std::int64_t offset = 0;
                if (ranks_[r].buffers[b].damaged(offset)) {
                    why_ = rank + "a step wrote byte " + std::to_string(offset) + " of " +
                           name_of(static_cast<Buffer>(b)) + ", which has " +
                           std::to_string(ranks_[r].buffers[b].bytes());
                    return;
                }
            }
            why_ = definition_.compare(static_cast<int>(r), ranks_[r].buffers[0].at(0),
                                       ranks_[r].buffers[1].at(0));
            if (!why_.empty()) return;
        }
    }

    std::span<const Schedule> schedules_;
    const Definition& definition_;
    Random random_;
    std::uint64_t style_ = 0, made_ = 0;
    bool scribble_ = false;
    int absent_;
    std::vector<Rank> ranks_;
    std::priority_queue<Event> events_;
    std::unordered_map<std::uint64_t, Half> waiting_;
    std::string why_;
};

inline std::string run(const Definition& definition, std::span<const Schedule> schedules,
                       std::uint64_t seed) {
    std::string why = Run(schedules, definition, seed).verdict();
    for (int rank = 0; definition.synchronises() && why.empty() && rank < static_cast<int>(schedules.size());
         ++rank)
        why = Run(schedules, definition, seed, rank).verdict_without_one();
    return why;
}

}  // namespace detail

// Empty when every rank ends with what the standard says; otherwise one sentence that names the rank and the
// byte (or the step). problem.rank does not matter. schedules[r] belongs to rank r.
inline std::string run(Collective collective, const Problem& problem, std::span<const Schedule> schedules,
                       std::uint64_t seed) {
    if (static_cast<int>(schedules.size()) != problem.size) return "there is not one schedule per rank";
    return detail::run(Definition(collective, problem, seed), schedules, seed);
}

// The same where places of blocks differ from rank to rank: problems[r] is rank r's.
inline std::string run(Collective collective, const std::vector<Problem>& problems,
                       std::span<const Schedule> schedules, std::uint64_t seed) {
    if (schedules.size() != problems.size()) return "there is not one schedule per rank";
    return detail::run(Definition(collective, problems, seed), schedules, seed);
}

}  // namespace thalweg::oracle
