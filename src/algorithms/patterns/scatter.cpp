#include "algorithms/patterns/scatter.h"

namespace thalweg::patterns {

void add_scatter(Builder& builder, const Problem& problem) {
    const Group group(problem);
    const Blocks blocks(problem);
    const int v = group.place_of(problem.rank);
    int reach = 1;  // children are v + reach/2, v + reach/4, … 1
    if (v == 0)
        while (reach < problem.size) reach *= 2;
    else
        reach = v & -v;
    if (v != 0) {
        const Slice mine = blocks.range(v, blocks.kept(v));
        if (mine.bytes != 0) builder.recv(group.rank_at(v - reach), mine);
    }
    while ((reach /= 2) >= 1) {
        if (v + reach >= problem.size) continue;
        const Slice theirs = blocks.range(v + reach, blocks.kept(v + reach));
        if (theirs.bytes != 0) builder.send(group.rank_at(v + reach), theirs);
    }
}

Claim claim_scatter(const Problem& problem) {
    const Blocks blocks(problem);
    Claim claim;
    for (int v = 1; v < blocks.not_empty(); ++v) {
        ++claim.messages;
        claim.bytes += blocks.range(v, blocks.kept(v)).bytes;
    }
    claim.rounds = static_cast<std::uint64_t>(floor_log2(static_cast<std::uint64_t>(blocks.not_empty())));
    return claim;
}

Price price_scatter(const Problem& problem) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const Blocks blocks(problem);
    return {static_cast<std::uint64_t>(ceil_log2(static_cast<std::uint64_t>(problem.size))),
            problem.bytes - blocks.range(0, 1).bytes};
}

std::uint64_t kept_twice_bytes(const Blocks& blocks) {
    std::uint64_t bytes = 0;
    for (int v = 0; v < blocks.not_empty(); ++v) bytes += blocks.range(v + 1, blocks.kept(v) - 1).bytes;
    return bytes;
}

std::string_view refuse_scatter_ring(const Problem& problem) {
    const bool too_many = static_cast<std::uint64_t>(problem.size) > problem.messages_per_pair;
    return too_many ? "a ring of so many ranks exceeds the messages that two ranks may exchange" : "";
}

void add_ring(Builder& builder, const Problem& problem, bool trimmed) {
    const Group group(problem);
    const Blocks blocks(problem);
    const int p = problem.size, v = group.place_of(problem.rank), right = (v + 1) % p;
    const int rounds_sent = trimmed ? p - blocks.kept(right) : p - 1;
    const int rounds_received = trimmed ? p - blocks.kept(v) : p - 1;
    StepId last_receive = 0;
    bool has_received = false;
    for (int i = 1; i < p; ++i) {
        const Slice sent = blocks.range((v - i + 1 + p) % p, 1), received = blocks.range((v - i + p) % p, 1);
        // In the last rounds of a trimmed ring a rank sends what it kept from the scatter. It could do so at
        // once, but then the blocks that others wait for would queue behind: the round's place is kept by
        // following the last receive.
        const std::span<const StepId> order(&last_receive, trimmed && has_received ? 1 : 0);
        if (sent.bytes != 0 && i <= rounds_sent) builder.send(group.rank_at(right), sent, order);
        if (received.bytes != 0 && i <= rounds_received) {
            last_receive = builder.recv(group.rank_at((v - 1 + p) % p), received);
            has_received = true;
        }
    }
}

Price price_scatter_ring(const Problem& problem) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const Price scatter = price_scatter(problem);
    const auto hops = static_cast<std::uint64_t>(problem.size - 1);
    const Blocks blocks(problem);
    const int half = 1 << floor_log2(static_cast<std::uint64_t>(problem.size - 1));
    return {scatter.rounds + hops, scatter.bytes + hops * blocks.block, blocks.range(0, half).bytes, 2};
}

}  // namespace thalweg::patterns
