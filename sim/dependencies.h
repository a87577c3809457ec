// What every step of a replay still waits for. Private to the replay.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "sim/matching.h"

namespace thalweg::sim {

class Dependencies {
  public:
    // `first`: Matching::first of these schedules.
    Dependencies(std::span<const Schedule> schedules, std::span<const GlobalStep> first);

    // One thing less to wait for: a step that it needs is complete or, where it needs none, its operation was
    // started. True: it waits for nothing more.
    bool met(GlobalStep step) { return --left_[step] == 0; }
    bool is_complete(GlobalStep step) const { return left_[step] == none; }
    // Marks a step complete. The ids of its own rank's steps that need it; valid as long as this object.
    std::span<const StepId> complete(GlobalStep step) {
        left_[step] = none;
        return std::span(next_).subspan(next_begin_[step], next_begin_[step + 1] - next_begin_[step]);
    }

    // The first send of a rank from step `id` on that is not complete. `first`: the number of its step 0.
    StepId incomplete_send(const Schedule& schedule, GlobalStep first, StepId id) const;

    // A sentence about the first step of a rank that is not complete, and what it waits for. Pre: there is
    // one. `first`: the number of the rank's step 0.
    std::string first_incomplete(const Schedule& schedule, GlobalStep first) const;

  private:
    std::vector<std::uint32_t> left_;        // per step: things that it waits for; `none`: it is complete
    std::vector<std::uint64_t> next_begin_;  // the steps that wait for step g are
    std::vector<StepId> next_;               // next_[next_begin_[g] … next_begin_[g + 1])
};

}  // namespace thalweg::sim
