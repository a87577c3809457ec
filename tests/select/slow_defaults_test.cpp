// Rows of the built-in tables that speak of blocking calls whose native defaults are slow.
#include "directions.h"
#include "select/broadcast_at.h"

namespace thalweg {
namespace {

// Where the number of hosts is no power of two, or hosts have several ranks, defaults take up to three times
// as long.
TEST(Decide, BlockingSumsAreTakenWhereDefaultsAreSlow) {
    Selection selection{Machine::from_options(60, 11.95e6), "", {}, {}};
    const auto at = [&](const char* family, const char* hosts, std::uint64_t bytes) {
        selection.family = family;
        selection.library = selection.family == "openmpi" ? "Open MPI v5.0.11" : "";
        const Decision decision = decide(Collective::allreduce, bytes, topology_of(hosts), selection);
        if (!decision.choice) return std::string("native");
        const std::string text = to_text(*decision.choice);
        return text.substr(0, text.rfind(":chunk_bytes=64K"));  // of the copies, as everywhere
    };
    const std::string leaders_ring = "node_leader(intra=linear,inter=ring:chunk_bytes=32K)";
    const std::string two_leaders = "node_leader(intra=linear,inter=ring:chunk_bytes=64K)";
    for (const char* family : {"mpich", "openmpi", "impi"}) {
        const bool intel = std::string_view(family) == "impi", open = std::string_view(family) == "openmpi";
        for (std::uint64_t bytes = 32 << 10; bytes <= 1 << 20; bytes *= 2) {
            EXPECT_EQ(at(family, "node:3 core:3", bytes), leaders_ring) << family << bytes;
            EXPECT_TRUE(intel || at(family, "node:4 core:2", bytes) == leaders_ring) << family << bytes;
        }
        EXPECT_EQ(at(family, "node:4 core:2", 1 << 20), leaders_ring) << family;
        for (const char* hosts : {"node:5 core:1", "node:7 core:1", "node:9 core:1"})
            EXPECT_EQ(at(family, hosts, 32 << 10), "ring") << family << hosts;
        EXPECT_EQ(at(family, "node:8 core:1", 32 << 10), "native") << family;
        EXPECT_EQ(at(family, "node:3 core:1", 16 << 10), intel || open ? "native" : "ring");
    }
    EXPECT_EQ(at("impi", "node:4 core:2", 32 << 10), "native");
    EXPECT_EQ(at("mpich", "node:2 core:4", 32 << 10), two_leaders);
    EXPECT_EQ(at("openmpi", "node:2 core:2", 128 << 10), two_leaders);
    EXPECT_EQ(at("openmpi", "node:2 core:2", 256 << 10), "native");
    EXPECT_EQ(at("openmpi", "node:2 core:2", 1 << 20), "node_leader(intra=linear,inter=recursive_doubling)");
    EXPECT_EQ(at("openmpi", "node:2 core:4", 64 << 10), "node_leader(intra=linear,inter=recursive_doubling)");
}

TEST(Decide, BlockingAllgathersOfSingleRanksAreTakenWhereDefaultsAreSlow) {
    Selection selection{Machine::from_options(60, 11.95e6), "", {}, {}};
    const auto at = [&](const char* family, const char* hosts, std::uint64_t bytes) {
        selection.family = family;
        const Decision decision = decide(Collective::allgather, bytes, topology_of(hosts), selection);
        return decision.choice ? to_text(*decision.choice) : "native";
    };
    for (const char* hosts : {"node:5 core:1", "node:6 core:1", "node:9 core:1"})
        for (const char* family : {"openmpi", "impi"}) {
            EXPECT_EQ(at(family, hosts, 12 << 10), "ring:chunk_bytes=8K") << family << hosts;
            EXPECT_EQ(at(family, hosts, 48 << 10), "ring:chunk_bytes=32K") << family << hosts;
        }
    EXPECT_EQ(at("openmpi", "node:4 core:1", 32 << 10), "ring:chunk_bytes=8K");
}

}  // namespace
}  // namespace thalweg
