#include "explain_range.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace thalweg::tool {
namespace {

// `moved`: bytes that may go through one port, one after another.
std::string judge(double moved, const Topology& topology, const Machine& machine) {
    constexpr double most_seconds = 4e6;  // a quarter of 2^64 ps: sums of a few stay in range
    constexpr double seconds_per_picosecond = 1e-12, most_pieces = 1 << 16;
    const double ranks = topology.size();
    const auto slowest =
        static_cast<double>(std::min(machine.inter.bytes_per_second, machine.intra.bytes_per_second));
    // A latency for every message of a pipeline.
    const double latencies = (ranks + most_pieces) * static_cast<double>(machine.inter.latency);
    if (moved / slowest + latencies * seconds_per_picosecond <= most_seconds) return {};
    return fmt::format(
        "that much among {} ranks may take longer than the model can count, {:.0f} days: ask for less", ranks,
        most_seconds / 86400);
}

}  // namespace

std::string beyond_the_model(std::uint64_t bytes, const Topology& topology, const Machine& machine) {
    // All to all through one rank of the host that has most.
    const double ranks = topology.size();
    return judge(ranks * topology.max_ranks_per_node() * static_cast<double>(bytes), topology, machine);
}

std::string beyond_the_model(std::span<const std::uint64_t> matrix, const Topology& topology,
                             const Machine& machine) {
    // Round after round, each as long as the host needs that has most to do in it: no way is slower.
    const int ranks = topology.size();
    const auto hosts = static_cast<std::size_t>(topology.nodes());
    double moved = 0;
    for (int round = 1; round < ranks; ++round) {
        std::vector<double> out(hosts), in(hosts);
        for (int from = 0; from < ranks; ++from) {
            const int to = (from + round) % ranks;
            const auto bytes = static_cast<double>(matrix[static_cast<std::size_t>(from * ranks + to)]);
            out[static_cast<std::size_t>(topology.node_of(from))] += bytes;
            in[static_cast<std::size_t>(topology.node_of(to))] += bytes;
        }
        moved += std::max(*std::max_element(out.begin(), out.end()), *std::max_element(in.begin(), in.end()));
    }
    return judge(moved, topology, machine);
}

}  // namespace thalweg::tool
