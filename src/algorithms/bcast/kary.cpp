// A complete k-ary tree through which pieces of the message flow.
//
//     k = 2:        0                place v receives from (v-1)/k and sends to kv+1 … kv+k
//                 /   \              .
//                1     2
//               / \   / \            .
//              3   4 5   6
//
// Rounds: k (n/c - 1) + at most k ⌈log_k p⌉. Bytes: an inner rank sends k n, a rank receives n.
#include <vector>

#include "algorithms/patterns/tree.h"

namespace thalweg::bcast::kary {

enum : std::size_t { fanout, chunk_bytes };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

Schedule build(const Problem& problem, const Topology&, const Choice& choice) {
    const auto v = static_cast<std::uint64_t>(patterns::Group(problem).place_of(problem.rank));
    const std::uint64_t k = choice.values[fanout], p = static_cast<std::uint64_t>(problem.size);
    patterns::TreePlace place;
    if (v != 0) place.parent = static_cast<int>((v - 1) / k);
    for (std::uint64_t i = 1; i <= k && k * v + i < p; ++i)
        place.children.push_back(static_cast<int>(k * v + i));
    return patterns::build_tree(problem, place, patterns::cut(problem, choice.values[chunk_bytes]));
}

// O(p): the slowest leaf of an incomplete tree need not be the last.
static patterns::TreeShape shape(int size, std::uint64_t k) {
    patterns::TreeShape shape;
    const auto p = static_cast<std::uint64_t>(size);
    std::vector<std::uint64_t> rounds(p, 0);
    for (std::uint64_t v = 1; v < p; ++v) {
        rounds[v] = rounds[(v - 1) / k] + (v - 1) % k + 1;
        shape.port_rounds = std::max(shape.port_rounds, rounds[v]);
    }
    for (std::uint64_t v = p - 1; v > 0; v = (v - 1) / k) ++shape.depth;
    shape.root_degree = std::min(k, p - 1);
    return shape;
}

Claim claim(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::claim_tree(problem, shape(problem.size, choice.values[fanout]),
                                patterns::cut(problem, choice.values[chunk_bytes]));
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::price_tree(problem, shape(problem.size, choice.values[fanout]),
                                patterns::cut(problem, choice.values[chunk_bytes]));
}

}  // namespace thalweg::bcast::kary
