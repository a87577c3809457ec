// Which of several links between hosts carries what two ranks exchange in one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "topology/topology.h"

namespace thalweg {

// By rank: which of `rails` links carries what `rank` and that one exchange, either way. Both ends find the
// same. Made for exchanges between neighbours: what a host exchanges with those on its two sides along a
// dimension, and what several of its ranks exchange with one host, is on different links. Where hosts are a
// ring of an odd number, one of them has both sides on one link. Pre: 1 <= rails <= 256. Throws
// std::bad_alloc.
std::vector<std::uint8_t> rails_of_neighbours(const Topology& topology, int rank, std::size_t rails);

}  // namespace thalweg
