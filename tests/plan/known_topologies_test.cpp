// Communicators alike share the memory of their topology.
#include "plan/known_topologies.h"

#include <gtest/gtest.h>

#include <string>

namespace thalweg {
namespace {

Topology from(const std::string& text) {
    Topology topology;
    std::string why;
    EXPECT_EQ(Topology::from_text(text, topology, why), Status::ok) << why;
    return topology;
}

bool share(const Topology& a, const Topology& b) { return a.ranks_on(0).data() == b.ranks_on(0).data(); }

TEST(known_topologies, communicators_alike_share_one) {
    KnownTopologies known;
    const Topology world = known.same(from("node:512 core:8"));
    const Topology duplicate = known.same(from("node:512 core:8"));
    EXPECT_TRUE(share(world, duplicate));
    const Topology turned = known.same(from("node:512 core:8 map:cyclic"));
    EXPECT_FALSE(share(world, turned));
    EXPECT_EQ(turned.node_of(1), 1);
}

// What was known longest gives way, and lives on in those who have it.
TEST(known_topologies, they_are_few) {
    KnownTopologies known;
    const Topology first = known.same(from("node:2 core:4"));
    for (int hosts = 3; hosts < 20; ++hosts) known.same(from("node:" + std::to_string(hosts) + " core:4"));
    EXPECT_FALSE(share(first, known.same(from("node:2 core:4"))));
    EXPECT_EQ(first.nodes(), 2);
    const Topology last = known.same(from("node:19 core:4"));
    EXPECT_TRUE(share(last, known.same(from("node:19 core:4"))));
}

}  // namespace
}  // namespace thalweg
