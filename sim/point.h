// One simulated operation: schedules of all ranks are built by production's own code and replayed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "algorithms/algorithm.h"
#include "sim/halo.h"
#include "sim/machine.h"
#include "sim/pattern.h"
#include "sim/replay.h"
#include "sim/variants.h"
#include "topology/topology.h"

namespace thalweg::sim {

struct Point {
    Choice choice;
    std::uint64_t bytes = 0;  // as Problem::bytes
    // An alltoallv of these alone; `bytes` has no meaning then.
    std::optional<Faces> faces;
    std::shared_ptr<const Pattern> pattern;  // or of these
    bool native = false;  // a native library's messages: its neighbours do not meet in pairs
    // Operations in a row without a barrier: a rank starts the next one when its own part of the last is
    // done. Times are then those of all of them, divided by their number.
    unsigned repeat = 1;
    // Messages one exchange after another, as blocking calls of MPI do: see in_turn().
    bool in_turn = false;
    Posting posting = Posting::as_built;
    ReplayOptions options;
    // A point that takes more is given up: seconds of a processor (0: no limit), and bytes of address space.
    unsigned most_seconds = 600;
    std::uint64_t most_memory = std::uint64_t{16} << 30;
};

struct PointResult {
    Outcome outcome;
    bool given_up = false;  // too dear; outcome.why says what it would have taken more of
    // What it took, on this machine and this time: processor seconds.
    double build_seconds = 0;          // of all ranks' schedules
    std::uint64_t schedule_bytes = 0;  // of all ranks together
    double replay_seconds = 0;
    std::uint64_t peak_bytes = 0;  // resident
};

// Runs `work` in a child process and hands its result back: SimGrid's engine and its clock are global, and
// its memory is not given back. given_up: it took more than `most_seconds` or `most_memory`, or died.
PointResult in_child(unsigned most_seconds, std::uint64_t most_memory,
                     const std::function<PointResult()>& work);

// In a child process. Pre: the choice is not refused. The outcome depends on the arguments alone.
PointResult simulate(const Point& point, const Topology& topology, const SimMachine& machine);

}  // namespace thalweg::sim
