// What the network between two hosts does, measured where nobody said (THALWEG_RATE, THALWEG_LATENCY_US): the
// cost model chooses piece sizes from it, and a guess that is off by a thousand chooses badly.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "engine/engine.h"
#include "topology/topology.h"

namespace thalweg {

class MpiTransport;

struct Network {
    std::uint64_t latency_ns = 0;        // one way, of an empty message
    std::uint64_t bytes_per_second = 0;  // one direction of one link, payload
    bool known() const { return bytes_per_second != 0; }
    bool operator==(const Network&) const = default;
};

// Between the first ranks of the first two hosts of `topology` (there are at least two): a few empty
// messages there and back, then streams of a quarter of a megabyte, or of four on a network that makes
// that too short to time: two that agree, or three of which the median counts. Collective over `comm`,
// whose ranks are those of `channel`, on which nothing was started yet; every rank gets the same answer.
// Values are rounded to three significant bits, so that small differences between two runs choose the same
// schedule. Both ends wait by `policy`, and the latency has what that adds. Unknown when MPI failed or
// nothing could be timed. Takes about the time of the streams.
Network measure_network(MPI_Comm comm, const MpiTransport& channel, const Topology& topology,
                        WaitPolicy policy);

}  // namespace thalweg
