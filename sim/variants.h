// Schedules as programs run them in other ways than Thalweg's engine: again and again, and in turn.
#pragma once

#include "schedule/schedule.h"

namespace thalweg::sim {

// `times` runs of a schedule as one: a rank's part of a run starts when its part of the last one is complete.
Schedule repeated(const Schedule& schedule, unsigned times);

// The same messages as blocking calls send them: each waits for the one before. A send and a receive that are
// neighbours in the schedule's order, neither of which needs the other, count as one MPI_Sendrecv.
Schedule in_turn(const Schedule& schedule);

}  // namespace thalweg::sim
