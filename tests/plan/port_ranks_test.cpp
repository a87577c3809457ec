// What lanes over ports know of a communicator's ranks.
#include "plan/port_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../cpu_time.h"

namespace thalweg {
namespace {

using Ints = std::vector<int>;

Topology from(const std::string& text) {
    Topology topology;
    std::string why;
    EXPECT_EQ(Topology::from_text(text, topology, why), Status::ok) << why;
    return topology;
}

RankMap placed(const Ints& places) {
    RankMap map;
    for (const int place : places) map.append(place);
    return map;
}

TEST(port_ranks, those_of_the_world_need_no_table) {
    EXPECT_TRUE(RankMap().is_identity());
    EXPECT_TRUE(placed({0}).is_identity());
    EXPECT_TRUE(placed({0, 1, 2}).is_identity());
    for (const Ints& places : {Ints{1}, Ints{0, 2}, Ints{1, 2, 3}, Ints{0, 1, 3}, Ints{2, 1, 0}})
        EXPECT_FALSE(placed(places).is_identity()) << places.back();
    const PortRanks ranks(from("node:2 core:2"), 1, placed({0, 1, 2, 3}), 1);
    EXPECT_EQ(ranks.processes(), nullptr);
    EXPECT_EQ(ranks.processes_end(), 4u);
    EXPECT_EQ(ranks.rails(), nullptr);
}

// A lane over MPI has a copy.
TEST(port_ranks, copies_of_a_map_share_its_table) {
    RankMap map;
    for (int rank = 0; rank < 1 << 20; ++rank) map.append(rank ^ 1);
    const double begin = test::thread_cpu_seconds();
    long sum = 0;
    for (int i = 0; i < 3000; ++i) {
        const RankMap copy = map;
        sum += copy[i] - (i ^ 1);
    }
    EXPECT_LT(test::thread_cpu_seconds() - begin, 0.5);
    EXPECT_EQ(sum, 0);
}

TEST(port_ranks, know_processes_and_who_is_near) {
    const PortRanks ranks(from("node:2 core:3 map:cyclic"), 3, placed({4, 9, 1, 0, 12, 7}), 2);
    ASSERT_EQ(ranks.size(), 6);
    EXPECT_EQ(ranks.rank(), 3);
    ASSERT_NE(ranks.processes(), nullptr);
    EXPECT_EQ(Ints(ranks.processes(), ranks.processes() + 6), (Ints{4, 9, 1, 0, 12, 7}));
    EXPECT_EQ(ranks.processes_end(), 13u);
    EXPECT_EQ(Ints(ranks.near().begin(), ranks.near().end()), (Ints{1, 3, 5}));
    EXPECT_EQ(*ranks.is_near(), (std::vector<bool>{false, true, false, true, false, true}));
    ASSERT_NE(ranks.rails(), nullptr);
    EXPECT_TRUE(std::all_of(ranks.rails(), ranks.rails() + 6, [](int rail) { return rail < 2; }));
}

}  // namespace
}  // namespace thalweg
