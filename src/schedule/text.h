// Schedules as text that other tools read. schedules[r] belongs to rank r.
#pragma once

#include <ostream>
#include <span>

#include "schedule/schedule.h"

namespace thalweg {

// GOAL, the format of LogGOPSim (its grammar: txt2bin.re in https://github.com/spcl/LogGOPSim): one "rank"
// block per schedule. A message is a send or recv of its bytes, tagged with its number; a copy or reduction
// is "calc", one unit per byte.
void print_goal(std::ostream& to, std::span<const Schedule> schedules);

// Graphviz: one cluster per rank, a solid edge for every dependency and a dashed one for every message.
void print_graphviz(std::ostream& to, std::span<const Schedule> schedules);

}  // namespace thalweg
