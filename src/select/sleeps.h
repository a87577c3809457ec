// What is decided as of ranks that sleep while they wait, and what that changes.
#pragma once

#include <algorithm>

#include "select/select.h"

namespace thalweg {

// Whether what runs is chosen as of calls that something advances meanwhile: also of blocking alltoalls
// between hosts, which run as nonblocking ones do (plan/blocking_exchange.h). Whoever waits for them sleeps.
inline bool chosen_as_overlapped(Collective collective, const Topology& topology, bool overlapped) {
    return overlapped || (collective == Collective::alltoallv && topology.nodes() > 1);
}

// Of ranks that sleep. Not where somebody says what the latency is.
inline void count_sleep(Machine& machine) {
    machine.inter.latency = std::max(machine.inter.latency, sleeping_hop);
}

}  // namespace thalweg
