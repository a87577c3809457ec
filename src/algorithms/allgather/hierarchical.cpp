// Three phases: gather inside hosts, allgather among one rank per host, broadcast of everything inside hosts.
//
//     3 hosts of 2 ranks:   1 → 0   3 → 2   5 → 4             inside hosts
//                           0, 2, 4 exchange 01, 23, 45       among one rank per host
//                           0 →012345→ 1   2 → 3   4 → 5      everything, inside hosts
//
// As published, for comparison: what node_leader hands out piece by piece comes here at the end, with every
// rank's own block again. Rounds: one, those of inter, those of intra. Bytes: p m to every rank that does not
// lead its host. All phases are steps of one schedule, so that those inside hosts progress without the caller
// too. G. Inozemtsev, A. Afsahi: Designing an Offloaded Nonblocking MPI_Allgather Collective Using
// CORE-Direct, CLUSTER 2012.
#include "algorithms/patterns/hosts.h"

namespace thalweg::allgather::hierarchical {

constexpr auto how = patterns::HandOut::at_the_end;

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

}  // namespace thalweg::allgather::hierarchical
