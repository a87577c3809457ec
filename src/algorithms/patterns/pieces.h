// Messages of an exchange cut into pieces, so that a rank sends no further ahead of what it has received than
// a few of them.
#pragma once

#include <cstdint>
#include <span>

#include "algorithms/algorithm.h"
#include "algorithms/patterns/parcels.h"
#include "schedule/builder.h"

namespace thalweg::patterns {

// How a rank's messages travel: in pieces of chunk_bytes (0: whole), of which at most `ahead` are sent before
// as many of those before them are complete, sent and received. At least one.
struct Pacing {
    std::uint64_t chunk_bytes = 0;
    std::uint64_t ahead = 1;
};

// Where both ends of every message are known to give it the same bytes (Exchange::sizes_agree, or all pairs
// are alike), these say how many pieces it has. Elsewhere the last piece says that it is the last: it is
// shorter than the others (step.h), so behind a message of whole chunks comes one of no bytes.

struct PieceCount {
    std::uint64_t all = 0, empty = 0;
};
// Of messages in the order of their places (Parcels). O(pieces).
PieceCount count_pieces(const Problem& problem, std::span<const Parcels::Placed> messages,
                        const Pacing& pacing);

// Adds a rank's sends and receives in the order of all pieces, which is the same at both ends of each.
// Receives are posted for twice as many pieces as may be on their way: whatever comes finds its place.
// Throws std::bad_alloc.
void add_pieces(Builder& builder, const Problem& problem, std::span<const Parcels::Placed> outgoing,
                std::span<const Parcels::Placed> incoming, const Pacing& pacing);

}  // namespace thalweg::patterns
