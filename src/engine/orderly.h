// Whether a group's schedules run in the smallest window (window.h says why that is so).
#pragma once

#include <span>
#include <string>

#include "schedule/schedule.h"

namespace thalweg {

// schedules[r] belongs to rank r; pre: every send has its receive (validate has passed). On false `why` names
// a message that takes part in a cycle. A schedule that is not orderly still runs, where the transport can
// grow, but its window may have to widen, which takes time. O(total steps) time and memory.
bool orderly(std::span<const Schedule> schedules, std::string& why);

}  // namespace thalweg
