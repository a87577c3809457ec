// Finds two steps of one rank that touch the same bytes in no order.
#pragma once

#include <cstdint>

#include "schedule/schedule.h"

namespace thalweg {

// Both steps touch `byte` of `buffer`, at least one of them writes, and neither follows the other.
struct Race {
    StepId earlier = 0, later = 0;
    Buffer buffer = Buffer::out;
    std::uint64_t byte = 0;
};

// True, and sets `race`, when `schedule` has a race. Order by way of other ranks does not count: a posted
// receive may write at any time. Pre: slices do not wrap around, dependencies are on earlier steps.
//
// Only pairs that are adjacent in the history of a byte need a look, because order is transitive, and almost
// all of them are named as dependencies: O(steps × log) then. For the others the ancestors of the later step
// are searched, no further back than the earlier one.
bool find_race(const Schedule& schedule, Race& race);

}  // namespace thalweg
