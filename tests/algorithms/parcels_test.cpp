// In which order neighbours exchange: patterns::Parcels.
#include "algorithms/patterns/parcels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "topology/topology.h"

namespace thalweg::patterns {
namespace {

using Edge = std::pair<int, int>;

Topology hosts_of(int hosts, int ranks_each) {
    std::vector<std::uint64_t> host_of_rank;
    for (int rank = 0; rank < hosts * ranks_each; ++rank)
        host_of_rank.push_back(static_cast<std::uint64_t>(rank / ranks_each));
    return Topology::from_table(host_of_rank);
}

// Ranks of a grid that is not closed, the last dimension fastest; every rank has a message for each neighbour,
// in the order of the dimensions, down before up.
struct Grid {
    std::array<int, 3> extent;

    int size() const { return extent[0] * extent[1] * extent[2]; }
    std::vector<int> neighbours(int rank) const {
        const std::array<int, 3> stride{extent[1] * extent[2], extent[2], 1};
        std::vector<int> found;
        for (std::size_t d = 0; d < 3; ++d) {
            const int at = rank / stride[d] % extent[d];
            if (at > 0) found.push_back(rank - stride[d]);
            if (at + 1 < extent[d]) found.push_back(rank + stride[d]);
        }
        return found;
    }
};

struct Ordered {
    std::vector<Parcels::Placed> outgoing, incoming;
};

std::vector<Ordered> order_of(const Grid& grid, const Topology& topology, bool in_pairs) {
    std::vector<Ordered> ranks;
    for (int rank = 0; rank < grid.size(); ++rank) {
        Exchange exchange;
        exchange.in_pairs = in_pairs;
        std::uint64_t at = 0;
        for (const int peer : grid.neighbours(rank)) {
            exchange.outgoing.push_back({peer, at, 8});
            exchange.incoming.push_back({peer, at, 8});
            at += 8;
        }
        Problem problem;
        problem.size = grid.size();
        problem.rank = rank;
        problem.exchange = &exchange;
        const Parcels parcels(problem, topology, true);
        ranks.push_back({{parcels.outgoing().begin(), parcels.outgoing().end()},
                         {parcels.incoming().begin(), parcels.incoming().end()}});
    }
    return ranks;
}

// Messages that do not leave and enter as the i-th of both ends' messages: two of them meet at one rank while
// another waits.
int out_of_step(const std::vector<Ordered>& ranks) {
    std::map<Edge, std::size_t> sent;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        for (std::size_t i = 0; i < ranks[rank].outgoing.size(); ++i)
            sent[{static_cast<int>(rank), ranks[rank].outgoing[i].parcel.peer}] = i;
    int count = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        for (std::size_t i = 0; i < ranks[rank].incoming.size(); ++i)
            count += sent.at({ranks[rank].incoming[i].parcel.peer, static_cast<int>(rank)}) != i;
    return count;
}

TEST(Parcels, ASquareOfFourMeetsInPairsWhereByDistanceTwoSendToOne) {
    const Grid square{{2, 2, 1}};
    const Topology apart = hosts_of(4, 1);
    EXPECT_EQ(out_of_step(order_of(square, apart, true)), 0);
    EXPECT_GT(out_of_step(order_of(square, apart, false)), 0);
}

TEST(Parcels, InPairsNobodyIsOutOfStepOnGridsOfTwoInEachDimension) {
    for (const Grid& grid : {Grid{{2, 2, 2}}, Grid{{2, 1, 2}}, Grid{{4, 1, 1}}, Grid{{1, 4, 2}}})
        EXPECT_EQ(out_of_step(order_of(grid, hosts_of(grid.size(), 1), true)), 0)
            << grid.extent[0] << 'x' << grid.extent[1] << 'x' << grid.extent[2];
}

TEST(Parcels, InPairsBothEndsGiveAMessageTheSamePlaceAndHostsMeetBeforeRanksOfOne) {
    const Grid grid{{3, 4, 2}};
    const Topology topology = hosts_of(6, 4);
    const std::vector<Ordered> ranks = order_of(grid, topology, true);
    std::map<Edge, std::uint64_t> sent;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const auto from = static_cast<int>(rank);
        bool stayed = false;
        std::uint64_t before = 0;
        for (const Parcels::Placed& message : ranks[rank].outgoing) {
            sent[{from, message.parcel.peer}] = message.place;
            EXPECT_GE(message.place, before);
            before = message.place;
            const bool stays = topology.node_of(from) == topology.node_of(message.parcel.peer);
            EXPECT_TRUE(stays || !stayed) << "what leaves the host comes first";
            stayed = stays;
        }
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        for (const Parcels::Placed& message : ranks[rank].incoming)
            EXPECT_EQ(message.place, (sent.at({message.parcel.peer, static_cast<int>(rank)})));
    // All messages between two hosts have places next to each other, the same at both hosts.
    for (const auto& [edge, place] : sent) EXPECT_EQ(place, (sent.at({edge.second, edge.first})));
}

}  // namespace
}  // namespace thalweg::patterns
