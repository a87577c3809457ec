// The ring and its k-port form: rings of the strides 1 … k that share their messages.
//
//     k = 2, round t: every place v passes the block of place v - 2t on to v+1 and v+2. The one at v+2 passes
//     it on in round t+1.
//
//     block 0:   0 ─→ 1, 2      2 ─→ 3, 4      4 ─→ 5, 6      …
#pragma once

#include "algorithms/patterns/contributions.h"

namespace thalweg::patterns {

struct StridedRing {
    std::uint64_t ports = 1;
    std::uint64_t chunk_bytes = 0;  // of a piece of a block, 0: the whole block
};

std::string_view refuse_strided_ring(const Problem& problem, const StridedRing& ring);
Schedule build_strided_ring(const Problem& problem, const StridedRing& ring);
// ⌈(p-1)/ports⌉ rounds; every rank receives every block once.
Claim claim_strided_ring(const Problem& problem, const StridedRing& ring);
// ⌈(p-1)/ports⌉ rounds of a block, the last one as long as the others also where it has fewer messages; in
// pieces ⌈(p-1) pieces/ports⌉. Where blocks differ, the largest one sets the pace, unless it goes in pieces.
Price price_strided_ring(const Problem& problem, const StridedRing& ring);

}  // namespace thalweg::patterns
