// What an alltoallv would cost by each way there is, what a plan for it would cost, and after how many calls
// that has paid: before anything is made, from who sends how much to whom.
//
// The port model of cost.h: a host's messages to other hosts take turns on its link, in each direction;
// inside a host each rank has a port of its own. Everybody meeting takes as many latencies as the ranks have
// binary digits. Closed forms in whole numbers, for all ranks together: O(ranks²) time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/machine.h"
#include "topology/topology.h"

namespace thalweg {

struct ExchangePrediction {
    std::string_view name;    // as a column of `thalweg bench alltoallv` is called
    Picoseconds init = 0;     // making and freeing the plan; 0: this way has none
    Picoseconds call = 0;     // one exchange
    double calls_native = 0;  // N* against the native call; `never` (break_even.h) where it does not pay
    double calls_window = 0;  // N* against a window made in every call
    bool plan = false;        // has a plan at all
};

// bytes: from rank i to rank j at i * ranks + j. All ways, the native call first.
std::vector<ExchangePrediction> predict_exchange(std::span<const std::uint64_t> bytes,
                                                 const Topology& topology, const Machine& machine);

// What the busiest link needs for the bytes that must cross it, and one latency; inside one host the busiest
// rank's port.
Picoseconds exchange_limit(std::span<const std::uint64_t> bytes, const Topology& topology,
                           const Machine& machine);

}  // namespace thalweg
