// What an alltoallv would cost by each way there is, what a plan for it would cost, and after how many calls
// that has paid: before anything is made, from who sends how much to whom.
//
// The port model of cost.h: a host's messages to other hosts take turns on its link, in each direction;
// inside a host each rank has a port of its own. Everybody meeting takes as many latencies as the ranks have
// binary digits. Closed forms in whole numbers, for all ranks together: O(ranks²) time.
#pragma once

#include <cstdint>
#include <optional>
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

// What is known of an exchange on a communicator before a plan for it is made: from its first calls.
struct ExchangeSeen {
    double once_seconds = 0;   // the native call
    double small_seconds = 0;  // the native call where the bytes take no time
    std::uint64_t message_bytes = 0;
    double link_bytes = 0;        // that must cross the busiest link, of either direction
    double bytes_per_second = 0;  // of that link: payload, one way, while nothing comes back
    double burst_bytes = 0;       // with all headers: what it lets through before it is that slow
};

struct PlanForecast {
    double init_seconds = 0, call_seconds = 0;
    double calls = 0;  // N* against the native call; `never`
};

// What the bytes of a link take, behind those that it lets through at once, with the acknowledgements of as
// many that come the other way.
double wire_seconds(double link_bytes, double bytes_per_second, double burst_bytes);

// A plan's costs out of what was seen. `way`: "native", "rma_fence" and so on, or an algorithm as to_text
// writes it. `native`: a plan that makes the native call, which never pays. Nothing where no bytes cross a
// link, its rate or one of the times is not known, or there is no such way.
std::optional<PlanForecast> forecast_plan(std::string_view way, const ExchangeSeen& seen);

// Bytes that must cross the busiest link, of either direction; 0 on one host.
std::uint64_t exchange_link_bytes(std::span<const std::uint64_t> bytes, const Topology& topology);

// What the busiest link needs for the bytes that must cross it, and one latency; inside one host the busiest
// rank's port.
Picoseconds exchange_limit(std::span<const std::uint64_t> bytes, const Topology& topology,
                           const Machine& machine);

}  // namespace thalweg
