// Schedules as programs run them in other ways than Thalweg's engine: again and again, in turn, and posted in
// another order.
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

// In which order a library posts the messages of an exchange, all receives before the first send. as_built:
// as the schedule has them. listed: as the caller names them, of an alltoallv by rank. falling: receives from
// the next rank upward, sends from the one before downward.
enum class Posting : std::uint8_t { as_built, listed, falling };

// The same messages in that order: the k-th send waits for what the k-th waited for. Pre: a schedule of one
// exchange, in which sends wait for sends alone and nothing else waits.
Schedule posted(const Schedule& schedule, Posting posting);

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
