// The ranks of a job as hwloc sees them: a Topology, and each rank's place inside its host. What a job itself
// does, and why, is in docs/decisions/0106-where-a-topology-comes-from.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "topology/machine/machine.h"
#include "topology/topology.h"

namespace thalweg {

// What one rank says of itself.
struct RankMachine {
    // Equal keys are the same host; as for Topology::from_table.
    std::uint64_t host_key = 0;
    // The whole host, with the hardware threads that this rank may use. The caller's, unused after the call.
    const LocalMachine* machine = nullptr;
};

// The smallest part of each kind that holds all the hardware threads a rank may use, numbered as in its
// machine; -1: they lie in several, or the machine does not say.
struct RankPlace {
    int package = -1;
    int numa = -1;
    int core = -1;
    int hardware_thread = -1;  // os_index, where the rank may use one alone

    bool operator==(const RankPlace&) const = default;
};

// ranks[r] is what rank r said. Pure: every rank that passes the same table gets the same. O(ranks x threads
// of a host). invalid_argument: a rank may use no hardware thread, or two ranks of one host describe
// different machines; `why` is one sentence, `topology` and `places` are unchanged.
Status topology_of(std::span<const RankMachine> ranks, Topology& topology, std::vector<RankPlace>& places,
                   std::string& why);

}  // namespace thalweg
