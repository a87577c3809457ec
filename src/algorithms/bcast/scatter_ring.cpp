// Binomial scatter, then every block once around the closed ring: MPICH's broadcast for long messages.
//
//     size 4, after the scatter:    0: 0123   1: 1   2: 23   3: 3
//     ring round 1:  0 →0→ 1   1 →1→ 2   2 →2→ 3   3 →3→ 0
//          round 2:  0 →3→ 1   1 →0→ 2   2 →1→ 3   3 →2→ 0      round 3:  0 →2→ 1   …
//
// Rounds: ⌈log2 p⌉ + p - 1. Bytes: a rank receives n (p-1)/p in the ring whatever it already holds, so that
// the sum over v of the (kept(v) - 1) blocks it kept from the scatter crosses twice: (p/2) log2 p blocks for
// p = 2^k. R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
// MPICH, 2005.
#include "algorithms/patterns/scatter.h"

namespace thalweg::bcast::scatter_ring {

std::string_view refuse(const Problem& problem, const Topology&, const Choice&) {
    return patterns::refuse_scatter_ring(problem);
}

Schedule build(const Problem& problem, const Topology&, const Choice&) {
    Builder builder(problem.rank, problem.size);
    patterns::add_scatter(builder, problem);
    patterns::add_ring(builder, problem, false);
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology&, const Choice&) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const patterns::Blocks blocks(problem);
    const auto hops = static_cast<std::uint64_t>(problem.size - 1);
    Claim claim = patterns::claim_scatter(problem);
    // The block of the deepest place goes all the way round.
    claim.rounds += hops;
    claim.messages += static_cast<std::uint64_t>(blocks.not_empty()) * hops;
    claim.bytes += problem.bytes * hops;
    claim.redundant_bytes = patterns::kept_twice_bytes(blocks);
    return claim;
}

Price price(const Problem& problem, const Topology&, const Choice&) {
    return patterns::price_scatter_ring(problem);
}

}  // namespace thalweg::bcast::scatter_ring
