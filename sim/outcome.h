// What a replay came to. Private to it.
#pragma once

#include <span>

#include "schedule/schedule.h"
#include "sim/dependencies.h"
#include "sim/matching.h"
#include "sim/rank.h"
#include "sim/replay.h"
#include "topology/topology.h"

namespace thalweg::sim {

// When nothing more happens. `why` names the first step that is not complete, if there is one; then no time
// has a meaning.
Outcome outcome_of(std::span<const Schedule> schedules, const Topology& topology, const Matching& matching,
                   const Dependencies& dependencies, std::span<const Rank> ranks);

}  // namespace thalweg::sim
