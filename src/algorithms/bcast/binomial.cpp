// Every rank that has the message sends it on to one that has not; the number of holders doubles every round.
//
//     0 ──────→ 4        place v receives from v with its lowest set bit cleared
//     0 ──→ 2   4 ──→ 6
//     0 → 1 2 → 3 4 → 5 6 → 7
//
// Rounds: ⌈log2 p⌉. Bytes: the root sends n ⌈log2 p⌉, a rank receives n. With chunk_bytes = c the pieces
// follow one another down the tree: ⌈log2 p⌉ n/c rounds of c bytes.
#include "algorithms/patterns/tree.h"

namespace thalweg::bcast::binomial {

enum : std::size_t { chunk_bytes };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

Schedule build(const Problem& problem, const Topology&, const Choice& choice) {
    const int v = patterns::Group(problem).place_of(problem.rank);
    return patterns::build_tree(problem, patterns::knomial_place(v, problem.size, 2),
                                patterns::cut(problem, choice.values[chunk_bytes]));
}

Claim claim(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::claim_tree(problem, patterns::knomial_shape(problem.size, 2),
                                patterns::cut(problem, choice.values[chunk_bytes]));
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::price_tree(problem, patterns::knomial_shape(problem.size, 2),
                                patterns::cut(problem, choice.values[chunk_bytes]));
}

}  // namespace thalweg::bcast::binomial
