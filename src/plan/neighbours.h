// Who the ranks of a communicator with a topology exchange messages with, in the order in which a program's
// arguments name them; and the messages of a neighbourhood collective, as the MPI standard defines them.
//
// Edges that join the same two ranks more than once: of graphs, the k-th edge from A to B, as A lists its
// destinations, is the k-th that B lists as coming from A. Of Cartesian topologies, what goes one way along a
// dimension arrives as what comes from there: a periodic dimension of one or two ranks too.
#pragma once

#include <mpi.h>

#include <optional>
#include <vector>

#include "plan/exchange.h"

namespace thalweg {

struct Neighbourhood {
    // By the number of the block in the program's buffers; MPI_PROC_NULL beyond a border.
    std::vector<int> sources, destinations;
    // The same order: which of the edges with that rank it is, counted as above.
    std::vector<int> source_edges, destination_edges;
    bool cartesian = false;
};

// Whether `comm` has a topology. Local, equal on all ranks.
bool has_neighbours(MPI_Comm comm);
// Which, in words of the report; empty: none. Local.
const char* topology_of(MPI_Comm comm);

// Local; some microseconds. Null: `comm` has no topology, or MPI does not tell. Throws std::bad_alloc.
std::optional<Neighbourhood> find_neighbourhood(MPI_Comm comm);

// Whether a schedule has numbers for all messages between this rank and each other one (schedule/step.h),
// whatever its algorithm adds to those of the edges that join the two. Both ends of an edge find the same.
bool numbers_suffice(const Neighbourhood& neighbourhood);

// Whether the native library, too, gives blocks of a grid the places that the standard does. Some do not
// where both neighbours of a rank are the same rank, in periodic dimensions of one or two: they exchange the
// two blocks; and of one library the blocking calls may be right and the others wrong. Collective: where
// `comm` has such a dimension, an exchange of a word with each neighbour. What this rank found; true where
// there is nothing to find. Grids of more than 16 dimensions are not tried: false.
bool native_blocks_in_order(MPI_Comm comm, bool blocking);

// One side of a call: arrays with an entry per neighbour, or blocks that are alike.
struct NeighbourSide {
    LetterArrays arrays;
    MPI_Count count = 0;        // where there are no arrays: elements of each block,
    MPI_Datatype type{};        // of this type
    bool same_for_all = false;  // and one block goes to everybody; else one lies behind the other
};

// False: arguments that the native library judges. Throws std::bad_alloc.
bool read_neighbours(const Neighbourhood& neighbourhood, const NeighbourSide& sent,
                     const NeighbourSide& received, Letters& letters);

}  // namespace thalweg
