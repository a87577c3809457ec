#include "model/cost.h"

#include <algorithm>

namespace thalweg {
namespace {

Picoseconds time_of(const Price& price, const Level& level) {
    return price.rounds * level.latency + level.transfer(price.bytes);
}

// From one piece to the next, on the busiest rank.
Picoseconds period_of(const Price& price, std::uint64_t piece_bytes, const Level& level) {
    return price.degree * (level.latency + level.transfer(piece_bytes));
}

Price price_of(const Choice& choice, const Problem& problem) {
    return choice.algorithm->price(problem, Topology{}, choice);
}

constexpr std::size_t intra = 0, inter = 1;  // the parts of node_leader, in the order of its row

}  // namespace

Picoseconds predict(const Choice& choice, const Problem& problem, const Topology& topology,
                    const Machine& machine) {
    const bool one_host = topology.nodes() <= 1;
    if (problem.size <= 1 || problem.bytes == 0) return 0;
    if (choice.parts.empty()) {
        const Price price = price_of(choice, problem);
        if (one_host) return time_of(price, machine.intra);
        const auto sharing = static_cast<std::uint64_t>(topology.max_ranks_per_node());
        return price.rounds * machine.inter.latency + sharing * machine.inter.transfer(price.bytes);
    }

    Problem between = problem, inside = problem;
    between.size = topology.nodes();
    between.root = topology.node_of(problem.root);
    inside.size = topology.max_ranks_per_node();
    inside.root = 0;
    if (one_host) return time_of(price_of(choice.parts[intra], inside), machine.intra);
    const Price outer = price_of(choice.parts[inter], between);
    const Picoseconds total = time_of(outer, machine.inter);
    if (inside.size == 1) return total;

    // The last piece goes through its host after everything else; before that, a host that needs longer for a
    // piece than the network holds the network up.
    inside.bytes = std::min(std::max<std::uint64_t>(outer.piece_bytes, 1), problem.bytes);
    const std::uint64_t pieces = problem.bytes / inside.bytes + (problem.bytes % inside.bytes != 0);
    const Price inner = price_of(choice.parts[intra], inside);
    const std::uint64_t cuts = inner.piece_bytes < inside.bytes ? inside.bytes / inner.piece_bytes : 1;
    const Picoseconds inner_period = cuts * period_of(inner, inner.piece_bytes, machine.intra);
    const Picoseconds outer_period = period_of(outer, inside.bytes, machine.inter);
    const Picoseconds held_up =
        inner_period > outer_period ? (pieces - 1) * (inner_period - outer_period) : 0;
    return total + held_up + time_of(inner, machine.intra);
}

Picoseconds wire_limit(std::uint64_t bytes, const Topology& topology, const Machine& machine) {
    if (topology.size() <= 1 || bytes == 0) return 0;
    const Level& level = topology.nodes() > 1 ? machine.inter : machine.intra;
    return level.latency + level.transfer(bytes);
}

}  // namespace thalweg
