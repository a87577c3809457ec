// Two levels, the hosts and the ranks inside them, whose messages share the numbers of a pair of ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>

#include "algorithms/algorithm.h"

namespace thalweg::patterns {

// Into how many pieces a message may be cut between hosts, if `inside` hands every piece on inside a host of
// up to `widest` ranks and a pair of ranks may exchange messages_per_pair messages. A pair exchanges one per
// piece where `inside` does not cut it; a scatter, or a chunk of its own, may take as many as there are
// ranks.
inline std::uint64_t most_pieces(const Choice& inside, int widest, std::uint64_t messages_per_pair) {
    Problem large;  // that whatever cuts will cut
    large.size = std::max(widest, 1);
    large.bytes = std::uint64_t{1} << 40;
    const bool cuts = inside.algorithm->price(large, Topology{}, inside).piece_bytes < large.bytes;
    const std::uint64_t of_a_piece = cuts ? static_cast<std::uint64_t>(large.size) : 1;
    return std::max<std::uint64_t>(messages_per_pair / of_a_piece, 1);
}

// How many ranks hosts have, each number once. Of hosts that are alike none is looked at.
inline std::set<std::size_t> sizes_of_hosts(const Topology& topology) {
    std::set<std::size_t> sizes{static_cast<std::size_t>(topology.max_ranks_per_node())};
    if (topology.min_ranks_per_node() == topology.max_ranks_per_node()) return sizes;
    for (int node = 0; node < topology.nodes(); ++node) sizes.insert(topology.ranks_on(node).size());
    return sizes;
}

}  // namespace thalweg::patterns
