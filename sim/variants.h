// Schedules as programs run them in other ways than Thalweg's engine: again and again, and in turn.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace thalweg::sim {

// `times` runs of a schedule as one: a rank's part of a run starts when its part of the last one is complete.
Schedule repeated(const Schedule& schedule, unsigned times);

// The same messages as blocking calls send them: each waits for the one before. A send and a receive that are
// neighbours in the schedule's order, neither of which needs the other, count as one MPI_Sendrecv.
Schedule in_turn(const Schedule& schedule);

// Operations of one rank in a row as one schedule: none depends on another, each has memory of its own.
class Succession {
  public:
    // The steps that `schedule` is from now on: [first, second).
    std::pair<StepId, StepId> append(const Schedule& schedule);
    Schedule finish(int rank, int size) &&;

  private:
    std::vector<Step> steps_;
    std::vector<StepId> after_;
    std::vector<std::uint32_t> begin_{0};
    std::map<std::pair<std::int32_t, StepKind>, std::uint32_t> messages_;
    std::uint64_t operations_ = 0;
};

}  // namespace thalweg::sim
