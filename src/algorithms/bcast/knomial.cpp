// The binomial tree with a larger radix k: a rank's place in base k loses its lowest non-zero digit to give
// its parent.
//
//     k = 3, p = 9:   0 ─→ 3, 6        first the heads of the large subtrees
//                     0 ─→ 1, 2   3 ─→ 4, 5   6 ─→ 7, 8
//
// Rounds: (k-1) log_k p for p a power of k; the longest path has log_k p messages. Bytes: the root sends
// n (k-1) log_k p, a rank receives n.
#include "algorithms/patterns/tree.h"

namespace thalweg::bcast::knomial {

enum : std::size_t { radix, chunk_bytes };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

Schedule build(const Problem& problem, const Topology&, const Choice& choice) {
    const int v = patterns::Group(problem).place_of(problem.rank);
    return patterns::build_tree(problem, patterns::knomial_place(v, problem.size, choice.values[radix]),
                                patterns::cut(problem, choice.values[chunk_bytes]));
}

Claim claim(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::claim_tree(problem, patterns::knomial_shape(problem.size, choice.values[radix]),
                                patterns::cut(problem, choice.values[chunk_bytes]));
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::price_tree(problem, patterns::knomial_shape(problem.size, choice.values[radix]),
                                patterns::cut(problem, choice.values[chunk_bytes]));
}

}  // namespace thalweg::bcast::knomial
