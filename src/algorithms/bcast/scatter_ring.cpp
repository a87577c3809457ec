// Binomial scatter, then every block once around the closed ring: MPICH's broadcast for long messages.
//
//     size 4, after the scatter:    0: 0123   1: 1   2: 23   3: 3
//     ring round 1:  0 →0→ 1   1 →1→ 2   2 →2→ 3   3 →3→ 0      round 2:  0 →3→ 1   1 →0→ 2   2 →1→ 3   3 →2→
//     0   …
//
// Rounds: ⌈log2 p⌉ + p - 1. Bytes: a rank receives n (p-1)/p in the ring whatever it already holds, so that
// the sum over v of the (kept(v) - 1) blocks it kept from the scatter crosses twice: (p/2) log2 p blocks for
// p = 2^k. R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
// MPICH, 2005.
#include "algorithms/patterns/scatter.h"

namespace thalweg::bcast::scatter_ring {

std::string_view refuse(const Problem& problem, const Topology&, const Choice&) {
    const bool too_many = static_cast<std::uint64_t>(problem.size) > problem.messages_per_pair;
    return too_many ? "a ring of so many ranks exceeds the messages that two ranks may exchange" : "";
}

Schedule build(const Problem& problem, const Topology&, const Choice&) {
    Builder builder(problem.rank, problem.size);
    patterns::add_scatter(builder, problem);
    const patterns::Group group(problem);
    const patterns::Blocks blocks(problem);
    const int p = problem.size, v = group.place_of(problem.rank);
    for (int i = 1; i < p; ++i) {
        const Slice sent = blocks.range((v - i + 1 + p) % p, 1), received = blocks.range((v - i + p) % p, 1);
        if (sent.bytes != 0) builder.send(group.rank_at((v + 1) % p), sent);
        if (received.bytes != 0) builder.recv(group.rank_at((v - 1 + p) % p), received);
    }
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
    if (problem.size == 1 || problem.bytes == 0) return {};
    const Price scatter = patterns::price_scatter(problem);
    const auto hops = static_cast<std::uint64_t>(problem.size - 1);
    const patterns::Blocks blocks(problem);
    const int half = 1 << patterns::floor_log2(static_cast<std::uint64_t>(problem.size - 1));
    return {scatter.rounds + hops, scatter.bytes + hops * blocks.block, blocks.range(0, half).bytes, 2};
}

}  // namespace thalweg::bcast::scatter_ring
