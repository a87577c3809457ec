// The root sends the whole message to every other rank.
//
//     0 → 1   0 → 2   0 → 3   …
//
// Rounds: p-1 (one after another through the root's port; no message depends on another).
// Bytes: the root sends n (p-1), a rank receives n.
#include "algorithms/patterns/tree.h"

namespace thalweg::bcast::linear {

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

Schedule build(const Problem& problem, const Topology&, const Choice&) {
    const int v = patterns::Group(problem).place_of(problem.rank);
    patterns::TreePlace place;
    if (v == 0)
        for (int child = 1; child < problem.size; ++child) place.children.push_back(child);
    else
        place.parent = 0;
    return patterns::build_tree(problem, place, patterns::cut(problem, 0));
}

static patterns::TreeShape shape(int size) {
    const auto others = static_cast<std::uint64_t>(size - 1);
    return {1, others, others};
}

Claim claim(const Problem& problem, const Topology&, const Choice&) {
    return patterns::claim_tree(problem, shape(problem.size), patterns::cut(problem, 0));
}

Price price(const Problem& problem, const Topology&, const Choice&) {
    return patterns::price_tree(problem, shape(problem.size), patterns::cut(problem, 0));
}

}  // namespace thalweg::bcast::linear
