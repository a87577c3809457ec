#include "sim/halo.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "select/exchanges.h"
#include "select/neighbours.h"

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

void look_at(Faces& faces, const Topology& topology) {
    TraitWords words{};
    const int ranks = faces.grid.size();
    for (int rank = 0; rank < ranks; ++rank) {
        const Exchange own = exchange_of(faces, rank);
        count_exchange(words, own.outgoing, own.incoming, rank, ranks, topology);
    }
    faces.traits = traits_of(words, ranks);
}

Faces Faces::alike(const std::array<int, 3>& ranks, std::uint64_t bytes) {
    Faces faces;
    faces.grid.ranks.assign(ranks.begin(), ranks.end());
    faces.bytes = bytes;
    return faces;
}

Faces Faces::of_cells(HaloGrid grid) {
    Faces faces;
    faces.grid = std::move(grid);
    for (int rank = 0; rank < faces.grid.size(); ++rank)
        for (const HaloMessage& message : halo_part(faces.grid, rank).outgoing)
            faces.bytes = std::max(faces.bytes, message.bytes);
    return faces;
}

Exchange exchange_of(const Faces& faces, int rank) {
    if (faces.grid.cells.empty())
        return faces_of(rank, {faces.grid.ranks[0], faces.grid.ranks[1], faces.grid.ranks[2]}, faces.bytes);
    Exchange exchange;
    const auto lay = [](const std::vector<HaloMessage>& messages, std::vector<Parcel>& parcels) {
        std::uint64_t offset = 0;
        for (const HaloMessage& message : messages) {
            parcels.push_back({message.peer, offset, message.bytes});
            offset += message.bytes;
        }
    };
    const HaloPart part = halo_part(faces.grid, rank);
    lay(part.outgoing, exchange.outgoing);
    lay(part.incoming, exchange.incoming);
    return exchange;
}

void inform_leader(const Faces& faces, int rank, const Topology& topology, Exchange& exchange) {
    exchange.hosts_informed = true;
    const int host = topology.node_of(rank);
    if (topology.ranks_on(host).front() != rank) return;
    std::map<std::pair<int, int>, std::uint64_t> crossing;  // by sender and receiver
    for (const int own : topology.ranks_on(host)) {
        const Exchange all = exchange_of(faces, own);
        for (const Parcel& face : all.outgoing)
            if (topology.node_of(face.peer) != host) crossing[{own, face.peer}] += face.bytes;
        for (const Parcel& face : all.incoming)
            if (topology.node_of(face.peer) != host) crossing[{face.peer, own}] += face.bytes;
    }
    for (const auto& [pair, bytes] : crossing)
        if (bytes != 0) exchange.crossing.push_back({pair.first, pair.second, bytes});
}

std::uint64_t moved_bytes(const Faces& faces, int from, int to, std::uint64_t bytes) {
    if (faces.grid.cells.empty()) return bytes;
    constexpr std::uint64_t line_bytes = 64;
    std::uint64_t most = bytes;
    for (const HaloMessage& message : halo_part(faces.grid, from).outgoing) {
        if (message.peer != to || message.bytes != bytes || !message.strided) continue;
        // Of a run that begins anywhere, a cell at a time: on average.
        const std::uint64_t cell = faces.grid.cell_bytes;
        const std::uint64_t run =
            cell * static_cast<std::uint64_t>(message.box.count[faces.grid.cells.size() - 1]);
        most = std::max(most, bytes / run * (run + line_bytes - std::min(cell, line_bytes)));
    }
    return most;
}

void as_planned(bool in_pairs, Exchange& faces) {
    faces.sizes_agree = true;
    as_neighbours(faces);
    faces.in_pairs = in_pairs;
}

double halo_limit(const Topology& topology, const Faces& faces, const SimMachine& machine) {
    const auto hosts = static_cast<std::size_t>(topology.nodes());
    std::vector<std::uint64_t> leaving(hosts, 0), entering(hosts, 0);
    for (int rank = 0; rank < topology.size(); ++rank)
        for (const Parcel& face : exchange_of(faces, rank).outgoing) {
            const int from = topology.node_of(rank), to = topology.node_of(face.peer);
            if (from == to) continue;
            leaving[static_cast<std::size_t>(from)] += face.bytes;
            entering[static_cast<std::size_t>(to)] += face.bytes;
        }
    const auto most = static_cast<double>(std::max(*std::max_element(leaving.begin(), leaving.end()),
                                                   *std::max_element(entering.begin(), entering.end())));
    return most == 0 ? 0 : most / (machine.link_rate * machine.rails) + machine.inter_latency;
}

}  // namespace thalweg::sim
