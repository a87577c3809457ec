// Reductions among a power of two of the ranks: the others are folded in first.
//
//     size 6:  0 → 1   2 → 3      1 and 3 combine; 1, 3, 4, 5 are places 0, 1, 2, 3
//              1 → 0   3 → 2      at the end
//
// Neighbours are folded, so that places ascend with ranks: operands stay in the order of ranks.
#pragma once

#include "algorithms/patterns/group.h"

namespace thalweg::patterns {

struct Fold {
    int places;  // the largest power of two up to the number of ranks
    int folded;  // pairs of which the even rank is folded into the odd one

    explicit Fold(int size)
        : places(1 << floor_log2(static_cast<std::uint64_t>(size))), folded(size - places) {}

    bool pairs(int rank) const { return rank < 2 * folded; }
    bool gives(int rank) const { return pairs(rank) && rank % 2 == 0; }
    bool takes(int rank) const { return pairs(rank) && rank % 2 == 1; }
    // Pre: not gives(rank).
    int place_of(int rank) const { return pairs(rank) ? rank / 2 : rank - folded; }
    int rank_at(int place) const { return place < folded ? 2 * place + 1 : place + folded; }
    std::uint64_t levels() const {
        return static_cast<std::uint64_t>(floor_log2(static_cast<std::uint64_t>(places)));
    }
};

}  // namespace thalweg::patterns
