// Schedules as text that other tools read.
#pragma once

#include <ostream>
#include <span>

#include "schedule/schedule.h"

namespace thalweg {

// GOAL, the format of LogGOPSim: one "rank" block per schedule, bytes per message, "requires" lines.
void print_goal(std::ostream& to, std::span<const Schedule> schedules);
// Graphviz: one cluster per rank, dashed edges for messages.
void print_graphviz(std::ostream& to, std::span<const Schedule> schedules);

}  // namespace thalweg
