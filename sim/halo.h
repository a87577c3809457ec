// The faces that ranks of a grid exchange: in three dimensions with six neighbours, fewer at the borders.
#pragma once

#include <array>
#include <cstdint>

#include "algorithms/exchange.h"
#include "model/halo.h"
#include "select/exchanges.h"
#include "sim/machine.h"
#include "topology/topology.h"

namespace thalweg::sim {

// Ranks in x, y and z, as near to a cube as their number allows, the longest side first (as MPI_Dims_create).
std::array<int, 3> grid_of(int ranks);

// What `rank` exchanges, every face of `bytes`. Ranks are in row-major order, z fastest; no wrap-around.
Exchange faces_of(int rank, const std::array<int, 3>& grid, std::uint64_t bytes);

// One exchange of all ranks.
struct Faces {
    HaloGrid grid;            // its ranks; where it has cells, messages are their outermost ones
    std::uint64_t bytes = 0;  // of every face; of cells: of the largest message
    Traits traits{};          // what a plan of them is decided by besides, by look_at()

    static Faces alike(const std::array<int, 3>& ranks, std::uint64_t bytes);
    // Pre: refuse(grid) is empty.
    static Faces of_cells(HaloGrid grid);
};
Exchange exchange_of(const Faces& faces, int rank);
// Fills in `traits`.
void look_at(Faces& faces, const Topology& topology);
// What messages that travel together need of `rank`'s exchange (node_leader): whoever leads its host knows
// all that this exchanges with others. Packing cells that lie apart into such messages takes no lines beyond
// their bytes here.
void inform_leader(const Faces& faces, int rank, const Topology& topology, Exchange& exchange);
// Bytes that a copy of a message moves through memory, at most of those of `bytes` bytes between these two:
// the cache lines that its cells lie in, which are its bytes where they lie in long runs and eight times as
// many where each lies by itself. `bytes` where the faces have no cells.
std::uint64_t moved_bytes(const Faces& faces, int from, int to, std::uint64_t bytes);
// As Thalweg's schedules have them, of a plan: both ends know the bytes of every message.
void as_planned(bool in_pairs, Exchange& faces);

// What the busiest link needs for the faces that cross hosts, and one latency; 0 where none does. Seconds.
double halo_limit(const Topology& topology, const Faces& faces, const SimMachine& machine);

}  // namespace thalweg::sim
