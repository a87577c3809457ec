// Pieces of the message pass from rank to rank; all links of the chain are busy at once.
//
//     0 → 1 → 2 → 3        piece 0 is at 3 when piece 2 leaves 0
//
//     with chains = 2:   0 → 1 → 2 → 3
//                        0 → 4 → 5 → 6
//
// Rounds: n/c + p - 2 for one chain. Bytes: a rank sends and receives n (the root sends n per chain).
// The chain costs n + (p-2) c bytes of time, so the best chunk is c = sqrt(n α / ((p-2) β)).
#include "algorithms/patterns/tree.h"

namespace thalweg::bcast::chain {

enum : std::size_t { chunk_bytes, chains };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

namespace {

// The ranks after the root in `count` runs of neighbours; the first `longer` runs have one rank more.
struct Runs {
    int count, shortest, longer;

    Runs(int size, std::uint64_t chains) {
        const int others = size - 1;
        count = static_cast<int>(
            std::min<std::uint64_t>(chains, static_cast<std::uint64_t>(std::max(others, 1))));
        shortest = others / count;
        longer = others % count;
    }
    int length(int run) const { return shortest + (run < longer); }
    int first(int run) const { return 1 + run * shortest + std::min(run, longer); }
    int run_of(int v) const {
        const int in_longer = longer * (shortest + 1);
        return v - 1 < in_longer ? (v - 1) / (shortest + 1) : longer + (v - 1 - in_longer) / shortest;
    }
};

patterns::TreeShape shape(int size, std::uint64_t chains) {
    if (size == 1) return {};
    const Runs runs(size, chains);
    patterns::TreeShape shape;
    shape.depth = static_cast<std::uint64_t>(runs.length(0));
    // The run that is served last among the longest, or the very last one.
    const int last_longer = runs.longer > 0 ? runs.longer - 1 : 0;
    shape.port_rounds = static_cast<std::uint64_t>(
        std::max(last_longer + runs.length(last_longer), runs.count - 1 + runs.length(runs.count - 1)));
    shape.root_degree = static_cast<std::uint64_t>(runs.count);
    return shape;
}

}  // namespace

Schedule build(const Problem& problem, const Topology&, const Choice& choice) {
    const int v = patterns::Group(problem).place_of(problem.rank);
    patterns::TreePlace place;
    if (problem.size > 1) {
        const Runs runs(problem.size, choice.values[chains]);
        if (v == 0) {
            for (int run = 0; run < runs.count; ++run) place.children.push_back(runs.first(run));
        } else {
            const int run = runs.run_of(v);
            place.parent = v == runs.first(run) ? 0 : v - 1;
            if (v + 1 < runs.first(run) + runs.length(run)) place.children.push_back(v + 1);
        }
    }
    return patterns::build_tree(problem, place, patterns::cut(problem, choice.values[chunk_bytes]));
}

Claim claim(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::claim_tree(problem, shape(problem.size, choice.values[chains]),
                                patterns::cut(problem, choice.values[chunk_bytes]));
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::price_tree(problem, shape(problem.size, choice.values[chains]),
                                patterns::cut(problem, choice.values[chunk_bytes]));
}

}  // namespace thalweg::bcast::chain
