// What neighbours exchange in one piece, on hosts of several links.
#include "topology/rails.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace thalweg;

namespace {

Topology from(std::string_view text) {
    Topology topology;
    std::string why;
    EXPECT_EQ(Topology::from_text(text, topology, why), Status::ok) << why;
    return topology;
}

// By host: the messages that its ranks send to other hosts over each link.
using Loads = std::vector<std::vector<int>>;

// On a grid of `rows` by `columns`, whose last dimension changes fastest.
Loads loads_of(const Topology& topology, int rows, int columns, bool periodic, std::size_t rails) {
    Loads loads(static_cast<std::size_t>(topology.nodes()), std::vector<int>(rails));
    const auto count = [&](int rank, int row, int column) {
        if (periodic) row = (row + rows) % rows, column = (column + columns) % columns;
        if (row < 0 || row >= rows || column < 0 || column >= columns) return;
        const int peer = row * columns + column;
        if (topology.node_of(peer) == topology.node_of(rank)) return;
        ++loads[static_cast<std::size_t>(topology.node_of(rank))]
               [rails_of_neighbours(topology, rank, rails)[static_cast<std::size_t>(peer)]];
    };
    for (int rank = 0; rank < rows * columns; ++rank) {
        const int row = rank / columns, column = rank % columns;
        count(rank, row - 1, column), count(rank, row + 1, column);
        if (columns > 1) count(rank, row, column - 1), count(rank, row, column + 1);
    }
    return loads;
}

TEST(rails, both_ends_find_the_same) {
    for (const char* text : {"node:4 core:1", "node:5 core:3", "node:6 core:2 map:cyclic",
                             "node:3 core:1,2,4", "ranks:0,1,0,2,2,1,3"})
        for (std::size_t rails = 1; rails <= 8; ++rails) {
            const Topology topology = from(text);
            for (int one = 0; one < topology.size(); ++one) {
                const std::vector<std::uint8_t> found = rails_of_neighbours(topology, one, rails);
                ASSERT_EQ(found.size(), static_cast<std::size_t>(topology.size()));
                for (int other = 0; other < topology.size(); ++other) {
                    EXPECT_LT(found[static_cast<std::size_t>(other)], rails);
                    EXPECT_EQ(found[static_cast<std::size_t>(other)],
                              rails_of_neighbours(topology, other, rails)[static_cast<std::size_t>(one)])
                        << text << ": " << one << ", " << other;
                }
            }
        }
}

// By the sum of their numbers all of them were on one.
TEST(rails, a_host_of_a_row_sends_over_all_its_links) {
    for (const char* text :
         {"node:2 core:2", "node:3 core:2", "node:4 core:2", "node:4 core:4", "node:5 core:4"})
        for (const bool periodic : {false, true}) {
            const Topology topology = from(text);
            const int columns = topology.max_ranks_per_node();
            for (const std::vector<int>& host : loads_of(topology, topology.nodes(), columns, periodic, 2))
                EXPECT_EQ(host[0], host[1]) << text << (periodic ? ", periodic" : "");
        }
    const Topology four = from("node:4 core:4");
    for (const std::vector<int>& host : loads_of(four, 4, 4, true, 4))
        EXPECT_EQ(std::count(host.begin(), host.end(), 2), 4);
}

TEST(rails, a_chain_of_single_ranks_sends_over_both) {
    for (const bool periodic : {false, true}) {
        const Loads loads = loads_of(from("node:6 core:1"), 6, 1, periodic, 2);
        for (std::size_t host = 0; host < loads.size(); ++host) {
            if (!periodic && (host == 0 || host == 5)) continue;  // with one neighbour
            EXPECT_EQ(loads[host], (std::vector<int>{1, 1})) << host;
        }
    }
}

TEST(rails, a_square_of_hosts_sends_over_both) {
    for (const std::vector<int>& host : loads_of(from("node:4 core:1"), 2, 2, false, 2))
        EXPECT_EQ(host, (std::vector<int>{1, 1}));
    for (const std::vector<int>& host : loads_of(from("node:16 core:1"), 4, 4, true, 2))
        EXPECT_GT(*std::min_element(host.begin(), host.end()), 0);
}

}  // namespace
