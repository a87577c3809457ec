#include "sim/outcome.h"

#include <algorithm>

namespace thalweg::sim {

Outcome outcome_of(std::span<const Schedule> schedules, const Topology& topology, const Matching& matching,
                   const Dependencies& dependencies, std::span<const Rank> ranks) {
    Outcome result;
    result.steps = matching.message.size();
    for (const Matched& m : matching.messages) {
        result.messages += m.bytes != 0;
        result.bytes += m.bytes;
        if (topology.node_of(m.from) != topology.node_of(m.to)) result.inter_bytes += m.bytes;
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const Rank& rank = ranks[r];
        if (rank.unfinished != 0) {
            result.why = dependencies.first_incomplete(schedules[r], matching.first[r]);
            return result;
        }
        result.seconds = std::max(result.seconds, result.by_rank.emplace_back(rank.done));
        result.own_seconds = std::max(result.own_seconds, rank.done - std::max(rank.began, 0.0));
        result.mean_seconds += rank.done / static_cast<double>(ranks.size());
    }
    result.root_seconds = ranks.front().done;
    return result;
}

}  // namespace thalweg::sim
