// What the network between two hosts does, measured where nobody said (THALWEG_RATE, THALWEG_LATENCY_US): the
// cost model chooses piece sizes from it, and a guess that is off by a thousand chooses badly.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "plan/measured_link.h"
#include "topology/topology.h"
#include "transport/mpi/rank_map.h"

namespace thalweg {

class World;

struct Network {
    std::uint64_t latency_ns = 0;        // one way, of an empty message
    std::uint64_t bytes_per_second = 0;  // one direction of one link, payload; or a LinkTrouble
    // Of a communicator: nothing was to be found out, and nothing more will be; a guess stands for it.
    bool in_vain = false;
    bool known() const { return bytes_per_second > static_cast<std::uint64_t>(LinkTrouble::failed); }
    // It was tried in vain, because of trouble(), and is not tried again. Of several that ranks bring, the
    // largest counts: one that is known.
    bool declined() const { return bytes_per_second != 0 && !known(); }
    LinkTrouble trouble() const {
        return declined() ? static_cast<LinkTrouble>(bytes_per_second) : LinkTrouble::none;
    }
    bool operator==(const Network&) const = default;
};
// "a call of the MPI library failed at one end"
const char* text_of(LinkTrouble trouble);

// What the ranks of `comm`, whose places in the world are `places`, know of the network between their hosts;
// `network`: what any of them knew, agreed on. Where nobody did, where settings do not say it and there are
// two hosts, it is measured, between the first ranks of the first two hosts of `topology`: a few empty
// messages there and back, then streams of a quarter of a megabyte, or of four on a network that makes that
// too short to time: two that agree, or three of which the median counts. Collective over `comm`; every rank
// gets the same answer, and the world learns it. Values are rounded to three significant bits, so that small
// differences between two runs choose the same schedule. Both ends wait as the world's ranks do, and the
// latency has what that adds.
//
// `network` stays unknown where no number of the pool was left or nothing could be timed, which the next
// communicator tries again; and where an end gave up (MeasuredLink), which no communicator of these ranks
// does: the log says so, and what chooses without the measurement serves. It is in_vain then. Takes about the
// time of the streams; 20 s and the wait for the other ranks at most. Throws AgreementFailed.
void learn_network(MPI_Comm comm, World& world, int rank, const Topology& topology, const RankMap& places,
                   Network& network);

}  // namespace thalweg
