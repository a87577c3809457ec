// What leaders, the ranks that send for their hosts, know of neighbourhoods in blocking and nonblocking
// calls.
//
// No such call may ask for the sizes of others. The edges stay what they are as long as the communicator
// lives: leaders are told them once. And the ranks agree now and then, in a blocking call, on how large
// messages have been: so much room each edge has in what a host sends together until the next time.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "algorithms/exchange.h"
#include "plan/neighbour_sizes.h"
#include "plan/neighbours.h"
#include "topology/topology.h"

namespace thalweg {

class NeighbourLeaders {
  public:
    // Collective. `noted`: of this rank's calls since the last time. Throws AgreementFailed (set_up.h).
    void agree(MPI_Comm comm, const EdgeNotes::Noted& noted, const Neighbourhood* neighbourhood, int rank,
               const Topology& topology);
    bool agreed() const { return agreed_; }

    // Of an edge in what travels together; 0: every message goes straight to its rank. So it is, for good,
    // where the ends of a message gave it different sizes in a call that was noted, or ranks know different
    // edges. Equal on all ranks.
    std::uint64_t slot_bytes() const { return informed_ && conforms_ ? largest_ : 0; }
    // Exchange::crossing, by exchange.slot_bytes. Throws std::bad_alloc.
    void tell(Exchange& exchange) const;

  private:
    bool agreed_ = false, asked_ = false, informed_ = false, conforms_ = true;
    std::uint64_t largest_ = 0;
    std::vector<Traffic> edges_;  // a leader's: `bytes` is how many join the two
};

}  // namespace thalweg
