// The faces that ranks of a 3D grid exchange: six neighbours, fewer at the borders.
#pragma once

#include <array>
#include <cstdint>

#include "algorithms/exchange.h"
#include "sim/machine.h"
#include "topology/topology.h"

namespace thalweg::sim {

// Ranks in x, y and z, as near to a cube as their number allows, the longest side first (as MPI_Dims_create).
std::array<int, 3> grid_of(int ranks);

// What `rank` exchanges, every face of `bytes`. Ranks are in row-major order, z fastest; no wrap-around.
Exchange faces_of(int rank, const std::array<int, 3>& grid, std::uint64_t bytes);

// What the busiest link needs for the faces that cross hosts, and one latency; 0 where none does. Seconds.
double halo_limit(const Topology& topology, std::uint64_t bytes, const SimMachine& machine);

}  // namespace thalweg::sim
