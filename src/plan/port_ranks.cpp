#include "plan/port_ranks.h"

#include <algorithm>
#include <utility>

#include "topology/rails.h"

namespace thalweg {

PortRanks::PortRanks(const Topology& topology, int rank, const RankMap& places, std::size_t rails)
    : topology_(topology), rank_(rank), processes_end_(static_cast<std::uint32_t>(topology.size())) {
    const auto ranks = static_cast<std::size_t>(topology.size());
    if (!places.is_identity()) {
        processes_.resize(ranks);
        for (std::size_t member = 0; member < ranks; ++member)
            processes_[member] = static_cast<std::uint32_t>(places[static_cast<int>(member)]);
        processes_end_ = *std::max_element(processes_.begin(), processes_.end()) + 1;
    }
    std::vector<bool> is_near(ranks);
    for (const int member : near()) is_near[static_cast<std::size_t>(member)] = true;
    is_near_ = std::make_shared<const std::vector<bool>>(std::move(is_near));
    if (rails > 1) rails_ = rails_of_neighbours(topology, rank, rails);
}

}  // namespace thalweg
