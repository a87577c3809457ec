// How many steps a rank's part of a broadcast, an allgather or an allreduce may have, whichever rank it is:
// what a plan needs in memory, known on all ranks alike before any of them builds its own.
#pragma once

#include <cstdint>

#include "algorithms/algorithm.h"

namespace thalweg {

// An upper bound, at most about three times the part of the busiest rank; for a scatter inside hosts more.
// From the prices, in time that grows with the ranks only where blocks differ. Pre: a choice that refuse()
// lets pass.
std::uint64_t most_steps(const Choice& choice, const Problem& problem, const Topology& topology);

}  // namespace thalweg
