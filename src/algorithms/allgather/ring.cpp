// Every block goes once round the ring of ranks.
//
//     size 4, round 1:  0 →0→ 1   1 →1→ 2   2 →2→ 3   3 →3→ 0
//             round 2:  0 →3→ 1   1 →0→ 2   2 →1→ 3   3 →2→ 0      round 3:  0 →2→ 1   …
//
// Rounds: p - 1. Bytes: a rank receives every block once, (p-1) m. Only neighbours talk, so that ranks placed
// host by host use each link between hosts for one message at a time. Where blocks differ, the largest one
// holds every rank up, unless it goes in pieces (chunk_bytes): then it flows.
#include "algorithms/patterns/strided_ring.h"

namespace thalweg::allgather::ring {

enum : std::size_t { chunk_bytes };

std::string_view refuse(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::refuse_strided_ring(problem, {1, choice.values[chunk_bytes]});
}
Schedule build(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::build_strided_ring(problem, {1, choice.values[chunk_bytes]});
}
Claim claim(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::claim_strided_ring(problem, {1, choice.values[chunk_bytes]});
}
Price price(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::price_strided_ring(problem, {1, choice.values[chunk_bytes]});
}

}  // namespace thalweg::allgather::ring
