// The ranks of a communicator as the ports of this process know them: made once, and shared by all its lanes
// over ports. So a persistent operation, which has a lane of its own, costs what its messages need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "topology/topology.h"
#include "transport/mpi/rank_map.h"

namespace thalweg {

class PortRanks {
  public:
    // `places`: the ranks in the world. `rails`: over which messages between neighbours are spread; below 2:
    // they are not. O(ranks). Throws std::bad_alloc.
    PortRanks(const Topology& topology, int rank, const RankMap& places, std::size_t rails);

    int rank() const { return rank_; }
    int size() const { return topology_.size(); }
    // The process of each rank; null: rank r is process r. And a number above all of them.
    const std::uint32_t* processes() const { return processes_.empty() ? nullptr : processes_.data(); }
    std::uint32_t processes_end() const { return processes_end_; }
    // The ranks of this host, ascending.
    std::span<const int> near() const { return topology_.ranks_on(topology_.node_of(rank_)); }
    // By rank, whether it is one of them.
    const std::shared_ptr<const std::vector<bool>>& is_near() const { return is_near_; }
    // The rail of what each rank and this one exchange between neighbours; null: those are not spread.
    const std::uint8_t* rails() const { return rails_.empty() ? nullptr : rails_.data(); }

  private:
    Topology topology_;
    int rank_;
    std::vector<std::uint32_t> processes_;
    std::uint32_t processes_end_ = 0;
    std::shared_ptr<const std::vector<bool>> is_near_;
    std::vector<std::uint8_t> rails_;
};

}  // namespace thalweg
