#include "sim/halo.h"

#include <algorithm>
#include <vector>

namespace thalweg::sim {

std::array<int, 3> grid_of(int ranks) {
    std::array<int, 3> best = {ranks, 1, 1};
    for (int z = 1; z * z * z <= ranks; ++z) {
        if (ranks % z != 0) continue;
        for (int y = z; y * y <= ranks / z; ++y)
            if ((ranks / z) % y == 0) {
                const std::array<int, 3> grid = {ranks / z / y, y, z};
                if (grid[0] - grid[2] < best[0] - best[2]) best = grid;
            }
    }
    return best;
}

Exchange faces_of(int rank, const std::array<int, 3>& grid, std::uint64_t bytes) {
    const std::array<int, 3> stride = {grid[1] * grid[2], grid[2], 1};
    Exchange exchange;
    for (std::size_t side = 0; side < grid.size(); ++side) {
        const int at = rank / stride[side] % grid[side];
        for (const int step : {-1, 1}) {
            if (at + step < 0 || at + step >= grid[side]) continue;
            const Parcel face{rank + step * stride[side], exchange.outgoing.size() * bytes, bytes};
            exchange.outgoing.push_back(face);
            exchange.incoming.push_back(face);
        }
    }
    return exchange;
}

double halo_limit(const Topology& topology, std::uint64_t bytes, const SimMachine& machine) {
    const std::array<int, 3> grid = grid_of(topology.size());
    std::vector<std::uint64_t> leaving(static_cast<std::size_t>(topology.nodes()), 0);  // as many enter
    for (int rank = 0; rank < topology.size(); ++rank)
        for (const Parcel& face : faces_of(rank, grid, bytes).outgoing)
            if (topology.node_of(face.peer) != topology.node_of(rank))
                leaving[static_cast<std::size_t>(topology.node_of(rank))] += face.bytes;
    const auto most = static_cast<double>(*std::max_element(leaving.begin(), leaving.end()));
    return most == 0 ? 0 : most / (machine.link_rate * machine.rails) + machine.inter_latency;
}

}  // namespace thalweg::sim
