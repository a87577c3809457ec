#include "plan/neighbours.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "plan/set_up.h"
#include "schedule/step.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// Dimension by dimension, the neighbour downwards first: MPI's order of blocks.
bool read_grid(MPI_Comm comm, Neighbourhood& found) {
    const Host& mpi = *host();
    int dimensions = 0;
    if (mpi.Cartdim_get(comm, &dimensions) != MPI_SUCCESS) return false;
    for (int dimension = 0; dimension < dimensions; ++dimension) {
        int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
        if (mpi.Cart_shift(comm, dimension, 1, &below, &above) != MPI_SUCCESS) return false;
        found.sources.push_back(below);
        found.sources.push_back(above);
    }
    found.destinations = found.sources;
    found.cartesian = true;
    return true;
}

bool read_graph(MPI_Comm comm, Neighbourhood& found) {
    const Host& mpi = *host();
    int rank = 0, count = 0;
    if (mpi.Comm_rank(comm, &rank) != MPI_SUCCESS ||
        mpi.Graph_neighbors_count(comm, rank, &count) != MPI_SUCCESS)
        return false;
    // At least one entry, so that there is an address.
    found.sources.resize(static_cast<std::size_t>(std::max(count, 1)));
    if (mpi.Graph_neighbors(comm, rank, count, found.sources.data()) != MPI_SUCCESS) return false;
    found.sources.resize(static_cast<std::size_t>(count));
    found.destinations = found.sources;
    return true;
}

// Weights are asked for where there are none too: MPI_UNWEIGHTED is data of some libraries, to which nothing
// of ours may refer.
bool read_distributed_graph(MPI_Comm comm, Neighbourhood& found) {
    const Host& mpi = *host();
    int in = 0, out = 0, weighted = 0;
    if (mpi.Dist_graph_neighbors_count(comm, &in, &out, &weighted) != MPI_SUCCESS) return false;
    const auto room = [](int count) { return static_cast<std::size_t>(std::max(count, 1)); };
    std::vector<int> weights_in(room(in)), weights_out(room(out));
    found.sources.resize(room(in));
    found.destinations.resize(room(out));
    if (mpi.Dist_graph_neighbors(comm, in, found.sources.data(), weights_in.data(), out,
                                 found.destinations.data(), weights_out.data()) != MPI_SUCCESS)
        return false;
    found.sources.resize(static_cast<std::size_t>(in));
    found.destinations.resize(static_cast<std::size_t>(out));
    return true;
}

// The block whose turn it is among what is received, in the order in which senders number it: of a grid, what
// a neighbour sends upwards (its block 2d + 1) is what comes from below (block 2d here).
std::size_t block_in_turn(const Neighbourhood& neighbourhood, std::size_t turn) {
    return neighbourhood.cartesian ? turn ^ 1 : turn;
}

void count_edges(Neighbourhood& found) {
    std::unordered_map<int, int> met;
    found.destination_edges.reserve(found.destinations.size());
    for (int peer : found.destinations) found.destination_edges.push_back(met[peer]++);
    met.clear();
    found.source_edges.resize(found.sources.size());
    for (std::size_t turn = 0; turn < found.sources.size(); ++turn) {
        const std::size_t block = block_in_turn(found, turn);
        found.source_edges[block] = met[found.sources[block]]++;
    }
}

bool read_block(const NeighbourSide& side, int block, int peer, std::vector<Letter>& letters,
                LetterType& last) {
    if (side.arrays.given()) return read_letter(side.arrays, block, peer, letters, last);
    const MPI_Count count = side.count;
    MPI_Aint place = 0;
    if (!side.same_for_all && __builtin_mul_overflow(static_cast<MPI_Aint>(block), count, &place))
        return false;
    LetterArrays alike;
    alike.large_counts = &count;
    alike.large_displacements = &place;
    alike.type = side.type;
    return read_letter(alike, 0, peer, letters, last);
}

// A word with each neighbour, natively.
bool exchange_words(const std::uint64_t* sent, std::uint64_t* received, MPI_Comm comm, bool blocking) {
    const Host& mpi = *host();
    if (blocking)
        return mpi.Neighbor_alltoall(sent, 1, mpi.uint64, received, 1, mpi.uint64, comm) == MPI_SUCCESS;
    MPI_Request request;
    if (mpi.Ineighbor_alltoall(sent, 1, mpi.uint64, received, 1, mpi.uint64, comm, &request) != MPI_SUCCESS)
        return false;
    return complete(request) == MPI_SUCCESS;
}

}  // namespace

bool has_neighbours(MPI_Comm comm) {
    int kind = MPI_UNDEFINED;
    return host()->Topo_test(comm, &kind) == MPI_SUCCESS && kind != MPI_UNDEFINED;
}

const char* topology_of(MPI_Comm comm) {
    int kind = MPI_UNDEFINED;
    if (host()->Topo_test(comm, &kind) != MPI_SUCCESS) return "";
    return kind == MPI_CART         ? "grid"
           : kind == MPI_GRAPH      ? "graph"
           : kind == MPI_DIST_GRAPH ? "distributed graph"
                                    : "";
}

std::optional<Neighbourhood> find_neighbourhood(MPI_Comm comm) {
    int kind = MPI_UNDEFINED;
    if (host()->Topo_test(comm, &kind) != MPI_SUCCESS) return std::nullopt;
    std::optional<Neighbourhood> found(std::in_place);
    const bool told = kind == MPI_CART         ? read_grid(comm, *found)
                      : kind == MPI_GRAPH      ? read_graph(comm, *found)
                      : kind == MPI_DIST_GRAPH ? read_distributed_graph(comm, *found)
                                               : false;
    if (told)
        count_edges(*found);
    else
        found.reset();
    return found;
}

// To one rank go, at most, what it is sent, word for each message from it that its memory is ready, and a
// bundle.
bool numbers_suffice(const Neighbourhood& neighbourhood) {
    std::unordered_map<int, std::uint32_t> edges;
    for (const auto* side : {&neighbourhood.destinations, &neighbourhood.sources})
        for (const int peer : *side)
            if (peer != MPI_PROC_NULL && ++edges[peer] >= max_messages_per_pair) return false;
    return true;
}

bool native_blocks_in_order(MPI_Comm comm, bool blocking) {
    constexpr int most_dimensions = 16;
    const Host& mpi = *host();
    int kind = MPI_UNDEFINED, dimensions = 0;
    if (mpi.Topo_test(comm, &kind) != MPI_SUCCESS || kind != MPI_CART) return true;
    if (mpi.Cartdim_get(comm, &dimensions) != MPI_SUCCESS) return true;
    std::uint64_t sent[2 * most_dimensions], received[2 * most_dimensions];
    bool present[2 * most_dimensions] = {};
    bool doubled = false;
    for (int dimension = 0; dimension < dimensions; ++dimension) {
        int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
        if (mpi.Cart_shift(comm, dimension, 1, &below, &above) != MPI_SUCCESS) return true;
        doubled |= below == above && below != MPI_PROC_NULL;
        if (dimension >= most_dimensions) continue;
        present[2 * dimension] = below != MPI_PROC_NULL;
        present[2 * dimension + 1] = above != MPI_PROC_NULL;
    }
    if (!doubled) return true;
    if (mpi.Neighbor_alltoall == nullptr || mpi.Ineighbor_alltoall == nullptr || dimensions > most_dimensions)
        return false;
    const int blocks = 2 * dimensions;
    for (int block = 0; block < blocks; ++block) {
        sent[block] = static_cast<std::uint64_t>(block);
        received[block] = static_cast<std::uint64_t>(blocks);
    }
    if (!exchange_words(sent, received, comm, blocking)) return false;
    for (int block = 0; block < blocks; ++block)
        if (present[block] && received[block] != static_cast<std::uint64_t>(block ^ 1)) return false;
    return true;
}

bool read_neighbours(const Neighbourhood& neighbourhood, const NeighbourSide& sent,
                     const NeighbourSide& received, Letters& letters) {
    const std::vector<int>& to = neighbourhood.destinations;
    const std::vector<int>& from = neighbourhood.sources;
    letters.outgoing.reserve(to.size());
    letters.incoming.reserve(from.size());
    LetterType last_sent, last_received;
    for (std::size_t block = 0; block < to.size(); ++block) {
        if (to[block] == MPI_PROC_NULL) continue;
        if (!read_block(sent, static_cast<int>(block), to[block], letters.outgoing, last_sent)) return false;
        letters.outgoing.back().edge = neighbourhood.destination_edges[block];
    }
    for (std::size_t turn = 0; turn < from.size(); ++turn) {
        const std::size_t block = block_in_turn(neighbourhood, turn);
        if (from[block] == MPI_PROC_NULL) continue;
        if (!read_block(received, static_cast<int>(block), from[block], letters.incoming, last_received))
            return false;
        letters.incoming.back().edge = neighbourhood.source_edges[block];
    }
    return true;
}

}  // namespace thalweg
