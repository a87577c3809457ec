// One run of `thalweg bench iallgather|ibcast|iallreduce --overlap`: what of a nonblocking collective hides
// behind computation, and what that costs. bench/driver/overlap.h says how it is measured.
#pragma once

#include <string>
#include <vector>

#include "bench/launch.h"

namespace thalweg::bench {

inline constexpr const char* overlap_phase = "overlap";

struct OverlapRequest {
    std::string collective = "iallgather";
    Shape shape;
    std::vector<std::string> sizes{"16K", "64K", "256K", "1M"};
    // arithmetic, memory, sleep; the first one overlaps. Empty: arithmetic and memory where each rank has a
    // core, else sleep.
    std::vector<std::string> computes;
    std::vector<std::string> ours;                                // choices besides the automatic one
    std::vector<std::string> agents{"sleep", "sibling", "core"};  // values of THALWEG_AGENT besides auto
    std::string out;                                              // what is in it is not measured again
    int samples = 30, samples_large = 10;                         // large: a limit of large_seconds or more
    bool force = false;
    bool apart = true;  // also what needs a launch of its own
};

// Measures and prints the tables. The exit status: 0; 1: the main launch failed or wrong words were received;
// 2: the request cannot be read.
int run_overlap(OverlapRequest request);

}  // namespace thalweg::bench
