// Allgather by hosts: what the hierarchical forms share.
#pragma once

#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/patterns/contributions.h"
#include "topology/topology.h"

namespace thalweg::patterns {

// When the ranks of a host that do not lead it get what comes from the others.
enum class HandOut { piece_by_piece, at_the_end };

// parts[intra] hands out inside a host, parts[inter] exchanges among the hosts' lowest ranks.
//
// piece_by_piece: the ranks of a host exchange their blocks directly; what arrives from other hosts is handed
// out as it arrives, while the next piece is on the wire. Every rank receives every block once. at_the_end:
// the ranks of a host send their blocks to the leader, which hands out everything at last.
std::string_view refuse_by_hosts(const Problem& problem, const Topology& topology, const Choice& choice);
Schedule build_by_hosts(const Problem& problem, const Topology& topology, const Choice& choice, HandOut how);
Claim claim_by_hosts(const Problem& problem, const Topology& topology, const Choice& choice, HandOut how);
Price price_by_hosts(const Problem& problem, const Topology& topology, const Choice& choice, HandOut how);

}  // namespace thalweg::patterns
