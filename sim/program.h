// What the program of a rank does: operations that it starts, computes beside, and waits for.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/step.h"

namespace thalweg::sim {

enum class ActKind : std::uint8_t { start, compute, wait };

struct Act {
    ActKind kind = ActKind::start;
    StepId begin = 0, end = 0;  // start, wait: the operation's steps in the rank's schedule
    double seconds = 0;         // compute: with nobody else on the core
    bool left = false;          // start: to the MPI library, of whose messages no credits know
};

// In order. A rank posts what an operation is ready for before its next act. Operations are consecutive steps
// that depend on none of another operation.
using Program = std::vector<Act>;

}  // namespace thalweg::sim
