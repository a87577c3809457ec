// One run of `thalweg bench COLLECTIVE`: which launches it takes, in which order, and what is there already.
#pragma once

#include <string>
#include <vector>

#include "bench/launch.h"

namespace thalweg::bench {

struct Request {
    std::string collective = "bcast";  // or "allgather", "allreduce"
    Shape shape;
    std::vector<std::string> sizes{"64K", "256K", "1M", "4M", "16M"};
    std::vector<std::string> ours{"scatter_ring",
                                  "scatter_ring_trimmed",
                                  "scatter_recursive_doubling",
                                  "binomial",
                                  "linear",
                                  "knomial",
                                  "circulant",
                                  "chain:chunk_bytes=64K",
                                  "node_leader(intra=linear,inter=chain:chunk_bytes=16K)",
                                  "node_leader(intra=linear,inter=circulant)"};
    std::string out;  // JSON lines; what is in it is not measured again
    int screen_samples = 5, decide_samples = 30, decide_samples_large = 10;
    int small_calls = 1'000'000;
    bool screen_only = false, again = false, force = false, demo = false, rings = false, small = false;
};

// The request of a collective with the sizes and algorithms of ours that are measured when none are given.
Request standard_request(const std::string& collective);

// Measures and prints the table. The exit status: 0; 1: a launch failed or wrong words were received; 2: the
// request cannot be read.
int run_sweep(Request request);

}  // namespace thalweg::bench
