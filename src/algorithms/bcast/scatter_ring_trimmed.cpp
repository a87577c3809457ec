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
    const bool too_many = static_cast<std::uint64_t>(problem.size) > problem.messages_per_pair;
    return too_many ? "a ring of so many ranks exceeds the messages that two ranks may exchange" : "";
}

Schedule build(const Problem& problem, const Topology&, const Choice&) {
    Builder builder(problem.rank, problem.size);
    patterns::add_scatter(builder, problem);
    const patterns::Group group(problem);
    const patterns::Blocks blocks(problem);
    const int p = problem.size, v = group.place_of(problem.rank), right = (v + 1) % p;
    StepId last_receive = 0;
    bool has_received = false;
    for (int i = 1; i < p; ++i) {
        const Slice sent = blocks.range((v - i + 1 + p) % p, 1), received = blocks.range((v - i + p) % p, 1);
        // In its last rounds a rank sends what it kept from the scatter. It could do so at once, but then the
        // blocks that others wait for would queue behind: the round's place is kept by following the last
        // receive.
        const std::span<const StepId> order(&last_receive, has_received ? 1 : 0);
        if (sent.bytes != 0 && i <= p - blocks.kept(right)) builder.send(group.rank_at(right), sent, order);
        if (received.bytes != 0 && i <= p - blocks.kept(v)) {
            last_receive = builder.recv(group.rank_at((v - 1 + p) % p), received);
            has_received = true;
        }
    }
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
    if (problem.size == 1 || problem.bytes == 0) return {};
    const Price scatter = patterns::price_scatter(problem);
    const auto hops = static_cast<std::uint64_t>(problem.size - 1);
    const patterns::Blocks blocks(problem);
    const int half = 1 << patterns::floor_log2(static_cast<std::uint64_t>(problem.size - 1));
    return {scatter.rounds + hops, scatter.bytes + hops * blocks.block, blocks.range(0, half).bytes, 2};
}

}  // namespace thalweg::bcast::scatter_ring_trimmed
