// Topologies from tables and from text: any order of ranks, any number of ranks per host.
#include "topology/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

using namespace thalweg;

namespace {

Topology from(std::string_view text) {
    Topology topology;
    std::string why;
    EXPECT_EQ(Topology::from_text(text, topology, why), Status::ok) << why;
    EXPECT_TRUE(why.empty());
    return topology;
}

std::vector<int> nodes_of(const Topology& topology) {
    std::vector<int> nodes;
    for (int rank = 0; rank < topology.size(); ++rank) nodes.push_back(topology.node_of(rank));
    return nodes;
}

using Ints = std::vector<int>;

TEST(topology, text_forms) {
    EXPECT_EQ(nodes_of(from("node:3 core:2")), (Ints{0, 0, 1, 1, 2, 2}));
    EXPECT_EQ(nodes_of(from("node:3 core:2 map:block")), (Ints{0, 0, 1, 1, 2, 2}));
    EXPECT_EQ(nodes_of(from("node:3 core:2 map:cyclic")), (Ints{0, 1, 2, 0, 1, 2}));
    EXPECT_EQ(nodes_of(from("node:3 core:1,2,4")), (Ints{0, 1, 1, 2, 2, 2, 2}));
    EXPECT_EQ(nodes_of(from("node:3 core:1,2,4 map:cyclic")), (Ints{0, 1, 2, 1, 2, 2, 2}));
    EXPECT_EQ(nodes_of(from("node:2")), (Ints{0, 1}));
    EXPECT_EQ(nodes_of(from("ranks:7,3,7,5")), (Ints{0, 1, 0, 2}))
        << "hosts are numbered by their lowest rank";
    EXPECT_EQ(nodes_of(from("  core:2 \t node:1 ")), (Ints{0, 0}));
    EXPECT_EQ(nodes_of(Topology::single_node(3)), (Ints{0, 0, 0}));
}

TEST(topology, copies_share_what_they_take) {
    const Topology made = from("node:512 core:8");
    const Topology copy = made;
    EXPECT_EQ(copy.ranks_on(3).data(), made.ranks_on(3).data());
    EXPECT_TRUE(made == from("node:512 core:8"));
    EXPECT_FALSE(made == from("node:512 core:8 map:cyclic"));
    EXPECT_FALSE(made == from("node:512 core:7"));
    Topology from_there = made;
    const Topology moved = std::move(from_there);
    EXPECT_EQ(from_there.size(), 4096);
    EXPECT_EQ(Topology().size(), 0);
    EXPECT_EQ(Topology().nodes(), 0);
}

TEST(topology, bad_text_is_one_sentence_with_the_accepted_form) {
    for (std::string_view text : {"",
                                  "node",
                                  "node:",
                                  "node:0",
                                  "node:x",
                                  "node:-1",
                                  "node:2 core:0",
                                  "node:2 core:1,0",
                                  "node:2 core:1,2,3",
                                  "core:2",
                                  "node:2 node:2",
                                  "node:2 core:2,",
                                  "node:2 core:,2",
                                  "node:2 cores:2",
                                  "map:cyclic",
                                  "node:2 map:random",
                                  "node:2 map:block map:block",
                                  "ranks:",
                                  "ranks:0,,1",
                                  "ranks:0,1 node:2",
                                  "ranks:0 map:block",
                                  "ranks:a",
                                  "node:2;core:2",
                                  "node:99999999999999999999",
                                  "node:16777217",
                                  "node:4096 core:4097",
                                  "node:2 core:18446744073709551615",
                                  "node:1.5"}) {
        Topology topology = Topology::single_node(5);
        std::string why;
        EXPECT_EQ(Topology::from_text(text, topology, why), Status::invalid_argument) << text;
        EXPECT_EQ(topology.size(), 5) << "unchanged";
        EXPECT_NE(why.find("\"" + std::string(text) + "\""), std::string::npos) << why;
        EXPECT_NE(why.find("node:4 core:2"), std::string::npos) << why;
        EXPECT_EQ(why.find('\n'), std::string::npos);
    }
}

void expect_consistent(const Topology& topology, std::span<const std::uint64_t> keys) {
    ASSERT_EQ(topology.size(), static_cast<int>(keys.size()));
    int total = 0, most = 0, least = topology.size(), lowest_before = -1;
    for (int node = 0; node < topology.nodes(); ++node) {
        const auto ranks = topology.ranks_on(node);
        ASSERT_FALSE(ranks.empty());
        EXPECT_TRUE(std::is_sorted(ranks.begin(), ranks.end()));
        EXPECT_GT(ranks[0], lowest_before) << "hosts are numbered by their lowest rank";
        lowest_before = ranks[0];
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            EXPECT_EQ(topology.node_of(ranks[i]), node);
            EXPECT_EQ(topology.local_rank(ranks[i]), static_cast<int>(i));
            EXPECT_EQ(keys[ranks[i]], keys[ranks[0]]);
        }
        total += static_cast<int>(ranks.size());
        most = std::max(most, static_cast<int>(ranks.size()));
        least = std::min(least, static_cast<int>(ranks.size()));
    }
    EXPECT_EQ(total, topology.size());
    EXPECT_EQ(most, topology.max_ranks_per_node());
    EXPECT_EQ(least, topology.min_ranks_per_node());
    for (int a = 0; a < topology.size(); ++a)
        for (int b = 0; b < topology.size(); ++b)
            EXPECT_EQ(topology.node_of(a) == topology.node_of(b), keys[a] == keys[b]);
}

TEST(topology, random_tables_and_permutations) {
    std::mt19937_64 random(3);
    for (int trial = 0; trial < 200; ++trial) {
        const std::size_t size = 1 + random() % 40, hosts = 1 + random() % size;
        std::vector<std::uint64_t> keys(size);
        std::vector<std::uint64_t> names(hosts);
        for (auto& name : names) name = random();
        for (auto& key : keys) key = names[random() % hosts];
        const Topology topology = Topology::from_table(keys);
        expect_consistent(topology, keys);

        // The text leads back to the same topology.
        const Topology again = from(topology.to_text());
        EXPECT_EQ(nodes_of(again), nodes_of(topology)) << topology.to_text();
        EXPECT_EQ(again.digest(), topology.digest());

        // Other names for the same hosts are the same topology; another placement has another digest.
        auto renamed = keys;
        for (auto& key : renamed) key = ~key * 3;
        EXPECT_EQ(Topology::from_table(renamed).digest(), topology.digest());
        auto permuted = keys;
        std::shuffle(permuted.begin(), permuted.end(), random);
        const Topology other = Topology::from_table(permuted);
        expect_consistent(other, permuted);
        EXPECT_EQ(other.digest() == topology.digest(), nodes_of(other) == nodes_of(topology));
    }
}

TEST(topology, text_is_the_shortest_form_that_fits) {
    for (const char* text :
         {"node:1 core:1", "node:4 core:2", "node:4 core:2 map:cyclic", "node:3 core:1,2,4",
          "node:3 core:4,1,2 map:cyclic", "ranks:0,1,1,0", "ranks:0,1,0,2", "node:8 core:1"})
        EXPECT_EQ(from(text).to_text(), text);
    EXPECT_EQ(from("node:4 core:1 map:cyclic").to_text(), "node:4 core:1");
    EXPECT_EQ(from("node:2 core:3,3").to_text(), "node:2 core:3");
    EXPECT_EQ(from("ranks:5,5,9").to_text(), "node:2 core:2,1");
}

TEST(topology, digests_tell_sizes_apart) {
    EXPECT_NE(Topology::single_node(2).digest(), Topology::single_node(3).digest());
    EXPECT_NE(from("node:2 core:2").digest(), from("node:2 core:2 map:cyclic").digest());
    EXPECT_NE(from("node:4 core:1").digest(), Topology::single_node(4).digest());
}

TEST(topology, a_million_ranks) {
    const Topology topology = from("node:16384 core:64");
    EXPECT_EQ(topology.size(), 1 << 20);
    EXPECT_EQ(topology.node_of((1 << 20) - 1), 16383);
    EXPECT_EQ(topology.to_text(), "node:16384 core:64");
}

TEST(topology, ranks_are_counted_without_placing_them) {
    for (const char* text : {"node:1", "node:3 core:2", "node:3 core:1,2,4", "node:3 core:4,1,2 map:cyclic",
                             "ranks:5,5,9", "node:1 core:7", "node:16384 core:64"}) {
        int ranks = 0;
        std::string why;
        EXPECT_EQ(Topology::count_ranks(text, ranks, why), Status::ok) << why;
        EXPECT_EQ(ranks, from(text).size()) << text;
    }
    // What a job of a few ranks refuses costs it nothing: the largest text that is a topology at all.
    for (int i = 0; i < 10000; ++i) {
        int ranks = 0;
        std::string why;
        EXPECT_EQ(Topology::count_ranks("node:16777216 core:1", ranks, why), Status::ok);
        EXPECT_EQ(ranks, 1 << 24);
        EXPECT_EQ(Topology::count_ranks("node:16777216 core:16777216", ranks, why), Status::invalid_argument);
        EXPECT_EQ(Topology::count_ranks("node:999999999999 core:1", ranks, why), Status::invalid_argument);
    }
}

// One large host among many small ones was a turn around all of them for every rank of the large one: 10^11
// steps.
TEST(topology, cyclic_placement_of_very_uneven_hosts_ends) {
    std::string text = "node:100000 map:cyclic core:1000000";
    for (int host = 1; host < 100000; ++host) text += ",1";
    const Topology topology = from(text);
    EXPECT_EQ(topology.size(), 1099999);
    EXPECT_EQ(topology.node_of(99999), 99999);
    EXPECT_EQ(topology.node_of(100000), 0);
    EXPECT_EQ(topology.node_of(1099998), 0);
}

TEST(topology, a_refusal_shows_the_beginning_of_a_long_text) {
    Topology topology;
    std::string why, text = "node:3 core:1";
    for (int i = 0; i < 400; ++i) text += ",1";
    EXPECT_EQ(Topology::from_text(text, topology, why), Status::invalid_argument);
    EXPECT_NE(why.find("one for each"), std::string::npos) << why;
    EXPECT_LT(why.size(), 400u);
}

}  // namespace
