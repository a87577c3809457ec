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

}  // namespace thalweg::patterns
