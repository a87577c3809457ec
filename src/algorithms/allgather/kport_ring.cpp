// Each round every rank passes one block to its next k neighbours, and the farthest of them passes it on.
//
//     size 7, k = 2, round 1:  v →v→ v+1, v+2     round 2:  v →v-2→ v+1, v+2     round 3:  v →v-4→ v+1, v+2
//
// A rank gets k blocks per round, over k links of strides 1 … k, each of which carries one message per round.
// Rounds: ⌈(p-1)/k⌉. Bytes: a rank receives every block once. With k = 1 it is the ring, with k >= p-1 the
// spread. The k-port ring of G. Inozemtsev and A. Afsahi, CLUSTER 2012, made of rings of distinct strides.
#include "algorithms/patterns/strided_ring.h"

namespace thalweg::allgather::kport_ring {

enum : std::size_t { ports, chunk_bytes };

std::string_view refuse(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::refuse_strided_ring(problem, {choice.values[ports], choice.values[chunk_bytes]});
}
Schedule build(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::build_strided_ring(problem, {choice.values[ports], choice.values[chunk_bytes]});
}
Claim claim(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::claim_strided_ring(problem, {choice.values[ports], choice.values[chunk_bytes]});
}
Price price(const Problem& problem, const Topology&, const Choice& choice) {
    return patterns::price_strided_ring(problem, {choice.values[ports], choice.values[chunk_bytes]});
}

}  // namespace thalweg::allgather::kport_ring
