#include "explain_range.h"

#include <fmt/core.h>

#include <algorithm>

namespace thalweg::tool {

std::string beyond_the_model(std::uint64_t bytes, const Topology& topology, const Machine& machine) {
    constexpr double most_seconds = 4e6;  // a quarter of 2^64 ps: sums of a few stay in range
    constexpr double seconds_per_picosecond = 1e-12, most_pieces = 1 << 16;
    // All to all through one rank of the host that has most, and a latency for every message of a pipeline.
    const double ranks = topology.size();
    const double moved = ranks * topology.max_ranks_per_node() * static_cast<double>(bytes);
    const auto slowest =
        static_cast<double>(std::min(machine.inter.bytes_per_second, machine.intra.bytes_per_second));
    const double latencies = (ranks + most_pieces) * static_cast<double>(machine.inter.latency);
    if (moved / slowest + latencies * seconds_per_picosecond <= most_seconds) return {};
    return fmt::format(
        "that much among {} ranks may take longer than the model can count, {:.0f} days: ask for less", ranks,
        most_seconds / 86400);
}

}  // namespace thalweg::tool
