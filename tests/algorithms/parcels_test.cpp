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

// Ranks of a grid that is not closed, the last dimension fastest; every rank has a message for each
// neighbour, in the order of the dimensions, down before up.
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

// When the last message is there, where each rank sends one after another at rate 1 and those that send to
// one rank share its link.
double seconds_of(const std::vector<Ordered>& ranks) {
    constexpr double over = 1e-9;
    std::vector<std::size_t> next(ranks.size(), 0);
    std::vector<double> left(ranks.size(), 1);
    for (double time = 0;;) {
        std::map<int, int> senders;
        const auto receiver = [&](std::size_t rank) { return ranks[rank].outgoing[next[rank]].parcel.peer; };
        const auto sends = [&](std::size_t rank) { return next[rank] < ranks[rank].outgoing.size(); };
        for (std::size_t rank = 0; rank < ranks.size(); ++rank)
            if (sends(rank)) ++senders[receiver(rank)];
        if (senders.empty()) return time;
        double least = 1e9;
        for (std::size_t rank = 0; rank < ranks.size(); ++rank)
            if (sends(rank)) least = std::min(least, left[rank] * senders[receiver(rank)]);
        time += least;
        for (std::size_t rank = 0; rank < ranks.size(); ++rank)
            if (sends(rank) && (left[rank] -= least / senders[receiver(rank)]) < over) {
                ++next[rank];
                left[rank] = 1;
            }
    }
}

// As the program lists them.
std::vector<Ordered> listed(const Grid& grid) {
    std::vector<Ordered> ranks(static_cast<std::size_t>(grid.size()));
    for (int rank = 0; rank < grid.size(); ++rank)
        for (const int peer : grid.neighbours(rank))
            ranks[static_cast<std::size_t>(rank)].outgoing.push_back({0, {peer, 0, 8}});
    return ranks;
}

// By the exclusive or of their numbers a cube of 3 took 10 in the place of 6, longer than the program's
// order.
TEST(Parcels, InPairsMostGridsTakeWhatTheirLinksNeedAndFewTakeLongerThanInTheProgramsOrder) {
    int grids = 0, best = 0, slower = 0;
    for (int x = 1; x <= 7; ++x)
        for (int y = 1; y <= 6; ++y)
            for (int z = 1; z <= 4; ++z) {
                const Grid grid{{x, y, z}};
                if (grid.size() < 2) continue;
                const double taken = seconds_of(order_of(grid, hosts_of(grid.size(), 1), true));
                slower += taken > seconds_of(listed(grid)) + 1e-6;
                std::size_t most = 0;
                for (int rank = 0; rank < grid.size(); ++rank)
                    most = std::max(most, grid.neighbours(rank).size());
                ++grids;
                best += taken < static_cast<double>(most) + 1e-6;
            }
    EXPECT_GE(best, 99) << "of " << grids;
    EXPECT_LE(slower, 3) << "of " << grids;  // 47 by the exclusive or
    EXPECT_DOUBLE_EQ(seconds_of(order_of({{3, 3, 3}}, hosts_of(27, 1), true)), 6);
    EXPECT_DOUBLE_EQ(seconds_of(order_of({{6, 4, 3}}, hosts_of(72, 1), true)), 6);
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
