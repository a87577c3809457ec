// Exchanges between all ranks whose pairs differ, or of which most have no message.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/exchange.h"
#include "select/exchanges.h"
#include "sim/machine.h"
#include "topology/topology.h"

namespace thalweg::sim {

struct Pattern {
    int ranks = 0;
    std::vector<std::uint64_t> matrix;  // bytes from i to j at i * ranks + j (apps/common/patterns.h)
    Traits traits;                      // what ranks that plan it agree on

    std::uint64_t bytes(int from, int to) const {
        return matrix[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
                      static_cast<std::size_t>(to)];
    }
};

// The matrix of all pairs is in memory.
inline constexpr int most_ranks_of_pattern = 4096;

// What `rank` exchanges, in the order of its peers. `all_travel`: also those messages that have no bytes.
Exchange exchange_of(const Pattern& pattern, int rank, bool all_travel);
// As Thalweg's plans by `choice` have it: both ends know the bytes of every message, and where most pairs
// have none, or messages go straight and a pair has none, hosts and ranks meet in pairs.
void as_planned(const Pattern& pattern, const Choice& choice, const Topology& topology, Exchange& exchange);
// What messages that travel together need of `rank`'s exchange, as of faces (halo.h).
void inform_leader(const Pattern& pattern, int rank, const Topology& topology, Exchange& exchange);
// Fills in `traits`.
void look_at(Pattern& pattern, const Topology& topology);

// What the busiest link needs for what crosses hosts, and one latency; 0 where nothing does. Seconds.
double pattern_limit(const Topology& topology, const Pattern& pattern, const SimMachine& machine);

// A sentence where a rank has more than `most` bytes to send or to receive; else an empty text.
std::string refuse(const Pattern& pattern, std::uint64_t most);

}  // namespace thalweg::sim
