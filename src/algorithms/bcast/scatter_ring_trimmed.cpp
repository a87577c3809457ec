// Binomial scatter, then a ring that leaves out every block its receiver kept from the scatter.
//
//     size 4, after the scatter:    0: 0123   1: 1   2: 23   3: 3
//     ring round 1:  0 →0→ 1   1 →1→ 2   2 →2→ 3   ·            2 holds 3, 0 holds everything:
//          round 2:  0 →3→ 1   1 →0→ 2   2 →1→ 3   ·            the ring is an open chain from 0 to 3, with
//          round 3:  0 →2→ 1      ·      2 →0→ 3   ·            gaps before the heads of subtrees
//
// Place v holds blocks [v, v+kept(v)) after the scatter, kept(v) = min(lowest set bit of v, p-v), kept(0) =
// p. The ring would bring it block v-i in round i, which it holds exactly in its last kept(v)-1 rounds.
//
// Rounds: ⌈log2 p⌉ + p - 1. Messages in the ring: p(p-1) - sum of (kept(v) - 1); 44 of 56 for p = 8. Bytes: a
// rank receives every byte once. H. Zhou, V. Marjanović, C. Niethammer, J. Gracia: A Bandwidth-saving
// Optimization for MPI Broadcast Collective Operation, arXiv 1603.06809.
#include "algorithms/patterns/scatter.h"

namespace thalweg::bcast::scatter_ring_trimmed {

std::string_view refuse(const Problem& problem, const Topology&, const Choice&) {
    return patterns::refuse_scatter_ring(problem);
}

Schedule build(const Problem& problem, const Topology&, const Choice&) {
    Builder builder(problem.rank, problem.size);
    patterns::add_scatter(builder, problem);
    patterns::add_ring(builder, problem, true);
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology&, const Choice&) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const patterns::Blocks blocks(problem);
    const auto receivers = static_cast<std::uint64_t>(problem.size - 1);
    Claim claim = patterns::claim_scatter(problem);
    claim.rounds = receivers;  // block 0 goes down the whole chain, nothing is longer under way
    claim.messages += static_cast<std::uint64_t>(blocks.not_empty()) * receivers;
    for (int v = 0; v < blocks.not_empty(); ++v)
        claim.messages -= static_cast<std::uint64_t>(std::min(blocks.kept(v), blocks.not_empty() - v) - 1);
    claim.bytes = problem.bytes * receivers;
    return claim;
}

Price price(const Problem& problem, const Topology&, const Choice&) {
    return patterns::price_scatter_ring(problem);
}

}  // namespace thalweg::bcast::scatter_ring_trimmed
