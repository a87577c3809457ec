// Ranks of a host exchange directly, one rank per host exchanges with the others, and passes on what comes.
//
//     3 hosts of 2 ranks, inter = ring:
//
//     0 ⇄ 1     2 ⇄ 3     4 ⇄ 5              inside hosts, all at once
//     0 →01→ 2 →23→ 4 →45→ 0 →45→ 2 …        among leaders, a host's blocks together
//     0 →45→ 1   2 →01→ 3   4 →23→ 5         inside, while the next piece travels
//
// Each link between hosts carries the blocks of the other hosts once, whatever the order of ranks is. Blocks
// that do not lie host by host in `out` go through scratch. Rounds: those of inter, one before and intra's
// after. Bytes: a rank receives every block once. All phases are steps of one schedule: whoever advances it,
// the caller or an agent, advances those inside hosts too. The hierarchy of G. Inozemtsev, A. Afsahi, CLUSTER
// 2012, with pieces that flow.
#include "algorithms/patterns/hosts.h"

namespace thalweg::allgather::node_leader {

constexpr auto how = patterns::HandOut::piece_by_piece;

std::string_view refuse(const Problem& problem, const Topology& topology, const Choice& choice) {
    return patterns::refuse_by_hosts(problem, topology, choice);
}
Schedule build(const Problem& problem, const Topology& topology, const Choice& choice) {
    return patterns::build_by_hosts(problem, topology, choice, how);
}
Claim claim(const Problem& problem, const Topology& topology, const Choice& choice) {
    return patterns::claim_by_hosts(problem, topology, choice, how);
}
Price price(const Problem& problem, const Topology& topology, const Choice& choice) {
    return patterns::price_by_hosts(problem, topology, choice, how);
}

}  // namespace thalweg::allgather::node_leader
