#include "plan/neighbour_leaders.h"

#include <cstddef>
#include <new>

#include "plan/exchange.h"
#include "plan/quiet_errors.h"
#include "plan/set_up.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// An edge as a message of one byte.
std::vector<Letter> letters_of(const std::vector<int>& peers, const std::vector<int>& edges) {
    std::vector<Letter> letters;
    letters.reserve(peers.size());
    for (std::size_t block = 0; block < peers.size(); ++block)
        if (peers[block] != MPI_PROC_NULL) letters.push_back({peers[block], edges[block], {}, 1});
    return letters;
}

}  // namespace

void NeighbourLeaders::agree(MPI_Comm comm, const EdgeNotes::Noted& noted, const Neighbourhood* neighbourhood,
                             int rank, const Topology& topology) {
    const QuietErrors quiet(comm);
    Letters edges;
    bool known = neighbourhood != nullptr;
    if (known) try {
            edges.outgoing = letters_of(neighbourhood->destinations, neighbourhood->destination_edges);
            edges.incoming = letters_of(neighbourhood->sources, neighbourhood->source_edges);
        } catch (const std::bad_alloc&) {
            known = false;
        }
    // [differences in size, in edges, ranks that do not know theirs]
    std::uint64_t sums[3] = {noted.difference, difference_of(edges, rank), !known};
    agree_on(comm, host()->sum, sums);
    std::uint64_t most[1] = {noted.largest};
    agree_on(comm, host()->max, most);
    agreed_ = true;
    conforms_ = conforms_ && sums[0] == 0 && (sums[1] == 0 || sums[2] != 0);
    if (most[0] != 0) largest_ = most[0];
    if (asked_ || !conforms_ || sums[2] != 0) return;
    asked_ = true;
    Exchange told;
    informed_ = inform_leaders(comm, edges, rank, topology, told);
    edges_ = std::move(told.crossing);
}

void NeighbourLeaders::tell(Exchange& exchange) const {
    exchange.crossing = edges_;
    for (Traffic& pair : exchange.crossing) pair.bytes *= exchange.slot_bytes;
}

}  // namespace thalweg
