#include "topology/rails.h"

#include <utility>

namespace thalweg {

namespace {

// Hosts at a distance of d, around the ring of all of them where that is shorter, are chains along which the
// links take turns; those of other distances begin with another one, and so do the other ranks of a host.
//
//     4 hosts of 2 ranks, d = 1, links 0 and 1:   host 0 ─1─ 1 ─0─ 2 ─1─ 3 ─0─ 0     its local rank 0
//                                                 host 0 ─0─ 1 ─1─ 2 ─0─ 3 ─1─ 0     its local rank 1
std::size_t turn_of(const Topology& topology, int one, int other) {
    if (topology.node_of(one) > topology.node_of(other)) std::swap(one, other);
    int distance = topology.node_of(other) - topology.node_of(one);
    if (distance == 0)
        return static_cast<std::size_t>(topology.local_rank(one)) +
               static_cast<std::size_t>(topology.local_rank(other));
    if (topology.nodes() - distance < distance) {
        distance = topology.nodes() - distance;
        std::swap(one, other);
    }
    return static_cast<std::size_t>(topology.node_of(one) / distance) + static_cast<std::size_t>(distance) +
           static_cast<std::size_t>(topology.local_rank(one));
}

}  // namespace

std::vector<std::uint8_t> rails_of_neighbours(const Topology& topology, int rank, std::size_t rails) {
    std::vector<std::uint8_t> found(static_cast<std::size_t>(topology.size()));
    for (int peer = 0; peer < topology.size(); ++peer)
        found[static_cast<std::size_t>(peer)] =
            static_cast<std::uint8_t>(turn_of(topology, rank, peer) % rails);
    return found;
}

}  // namespace thalweg
