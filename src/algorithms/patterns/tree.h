// Broadcast down a tree, piece by piece: an inner rank hands piece k to all its children, in order, before it
// waits for piece k + 1.
//
//     recv 0 → send 0 to each child → recv 1 → send 1 to each child → …
//
// That is the order of issue; of completion data is the only order.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/patterns/group.h"
#include "schedule/schedule.h"

namespace thalweg::patterns {

// One rank's neighbours in a tree, as places (place 0 is the root).
struct TreePlace {
    int parent = -1;            // -1: the root
    std::vector<int> children;  // in the order they are served
};

// The shape of the whole tree, for one piece.
struct TreeShape {
    std::uint64_t depth = 0;        // messages on the longest path from the root
    std::uint64_t port_rounds = 0;  // rounds until the last rank has the piece, one send a round
    std::uint64_t root_degree = 0;  // no rank has more children than the root
};

Schedule build_tree(const Problem& problem, const TreePlace& place, const Cut& cut);
Claim claim_tree(const Problem& problem, const TreeShape& shape, const Cut& cut);
// The root serves a piece in root_degree rounds and nobody is slower, so the last piece starts after all the
// others.
Price price_tree(const Problem& problem, const TreeShape& shape, const Cut& cut);

// The radix-k binomial tree: a rank's parent clears the lowest non-zero digit of its place (radix k), so a
// child at place v + i·k^j heads the subtree of the k^j places that follow. Largest subtrees are served
// first. O(k log p).
TreePlace knomial_place(int place, int size, std::uint64_t radix);
TreeShape knomial_shape(int size, std::uint64_t radix);

}  // namespace thalweg::patterns
