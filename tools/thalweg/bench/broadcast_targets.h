// What broadcasts, and blocking allgathers and allreduces, between hosts shall reach, and whether the rows
// do.
#pragma once

#include <string>
#include <vector>

#include "bench/table.h"

namespace thalweg::bench {

// One target under one MPI, over all shapes. Of a mean there is one point.
struct BroadcastTarget {
    std::string target, mpi;
    int points = 0, reached = 0;
    std::string worst;    // the point that is furthest from it, or the value over all of them
    std::string carried;  // what carried the points' calls: "mpi"; "not said" where a row does not tell

    bool met() const { return points > 0 && reached == points; }
};
// Of points that were decided; what was screened only counts as not reached.
std::vector<BroadcastTarget> judge_broadcasts(const std::vector<Summary>& lines);
// The same of blocking allgathers and allreduces.
std::vector<BroadcastTarget> judge_blocking(const std::vector<Summary>& lines);
// Empty where there are none.
std::string format_broadcast_targets(const std::vector<BroadcastTarget>& targets, bool markdown);

}  // namespace thalweg::bench
