// One rank's part of a collective, as data: a DAG of steps. Immutable, relocatable (buffers are bound at
// start) and restartable. Made by Builder or by a pass; O(steps) memory.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "schedule/step.h"

namespace thalweg {

class Schedule {
  public:
    // A schedule without steps, for a group of one.
    Schedule() = default;

    // From raw parts, unchecked: validate() is what tells whether they make sense. The dependencies of step s
    // are after[after_begin[s]] … after[after_begin[s + 1] - 1]; after_begin has steps.size() + 1 entries.
    // Algorithms use Builder; this is for passes, and for tests that plant faults.
    Schedule(int rank, int size, std::vector<Step> steps, std::vector<StepId> after,
             std::vector<std::uint32_t> after_begin, std::uint64_t scratch_bytes)
        : rank_(rank),
          size_(size),
          steps_(std::move(steps)),
          after_(std::move(after)),
          after_begin_(std::move(after_begin)),
          scratch_bytes_(scratch_bytes) {}

    int rank() const { return rank_; }
    int size() const { return size_; }
    std::span<const Step> steps() const { return steps_; }

    // The steps that must be complete before `step` may start. Every one has a smaller id: ids are a
    // topological order, and also the order in which an interpreter issues steps that are ready at the same
    // time.
    std::span<const StepId> after(StepId step) const {
        return {after_.data() + after_begin_[step], after_.data() + after_begin_[step + 1]};
    }

    std::uint64_t scratch_bytes() const { return scratch_bytes_; }

  private:
    int rank_ = 0;
    int size_ = 1;
    std::vector<Step> steps_;
    std::vector<StepId> after_;                  // dependencies of all steps, one after another
    std::vector<std::uint32_t> after_begin_{0};  // steps + 1 entries into after_
    std::uint64_t scratch_bytes_ = 0;
};

}  // namespace thalweg
