// Where the ranks of a simulated run live.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "topology/topology.h"

namespace thalweg::sim {

// block: hosts are filled one after another, `per_host` ranks each (the last one with what is left). cyclic:
// rank r is on host r mod hosts. permuted: block, then ranks shuffled by `seed`. ragged: block with hosts of
// per_host, then a half, then three quarters of it, over and over.
//
// invalid_argument: unknown mapping, or more hosts needed than `most_hosts`; `why` is one sentence.
Status map_ranks(std::string_view mapping, int ranks, int per_host, int most_hosts, std::uint64_t seed,
                 Topology& topology, std::string& why);

}  // namespace thalweg::sim
