// Rows of tuning tables that speak of persistent alltoalls in the memory of one host.
#include <gtest/gtest.h>

#include <string>

#include "algorithms/over_windows.h"
#include "select/broadcast_at.h"
#include "select/neighbours.h"
#include "select/table.h"

namespace thalweg {
namespace {

std::string table_of(const std::string& row, const std::string& collective = "alltoallv") {
    return R"({"collective":")" + collective + R"(","machine":"test","date":"2025-01-01",)" +
           R"("method":"made up","commit":"0","rows":[)" + row + "]}";
}

TEST(Planned, RowsSpeakOfPersistentOnesAlone) {
    Selection selection;
    selection.family = "none";
    selection.table = table_of(
        R"({"calls":"persistent","waits":"spin","hosts":[1,1],"ppn":[2,2],"bytes":[1000,null],"choice":"spread"})");
    const Topology topology = topology_of("node:1 core:2");
    const auto taken = [&](std::uint64_t bytes) {
        return decide(Collective::alltoallv, bytes, topology, selection).choice.has_value();
    };
    EXPECT_FALSE(taken(1000));
    selection.overlapped = true;
    EXPECT_FALSE(taken(1000));
    EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 2), ~std::uint64_t{0});
    selection.overlapped = false;
    selection.persistent = true;
    EXPECT_TRUE(taken(1000));
    EXPECT_FALSE(taken(999));
    EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 2), 1000u);
    selection.sleeps = true;
    EXPECT_FALSE(taken(1000));
    EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 2), ~std::uint64_t{0});
    selection.sleeps = false;
    EXPECT_FALSE(decide(Collective::alltoallv, 1000, topology_of("node:1 core:3"), selection).choice);
}

TEST(Planned, NeighboursHaveRowsOfTheirOwn) {
    Selection selection;
    selection.family = "none";
    selection.persistent = true;
    selection.table =
        table_of(R"({"calls":"persistent neighbours","hosts":[1,1],"ppn":[2,2],"bytes":[1000,1999],)"
                 R"("choice":"spread"},)"
                 R"({"calls":"persistent","hosts":[1,1],"bytes":[3000,null],"choice":"spread"})");
    std::string why;
    ASSERT_EQ(check_table(selection.table, why), Status::ok) << why;
    const auto taken = [&](const char* hosts, std::uint64_t bytes) {
        return decide(Collective::alltoallv, bytes, topology_of(hosts), selection).choice.has_value();
    };
    EXPECT_FALSE(taken("node:1 core:2", 1000));
    EXPECT_TRUE(taken("node:1 core:2", 3000));
    EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 2), 3000u);
    selection.neighbours = true;
    EXPECT_TRUE(taken("node:1 core:2", 1000));
    EXPECT_FALSE(taken("node:1 core:2", 3000));
    EXPECT_FALSE(taken("node:1 core:3", 1000));
    EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 2), 1000u);
    EXPECT_EQ(Selector(Collective::alltoallv, topology_of("node:1 core:3"), selection).native_below(),
              ~std::uint64_t{0});
    // Those of other calls do not hear of it.
    selection.persistent = false;
    EXPECT_FALSE(taken("node:1 core:2", 1000));
    EXPECT_FALSE(NeighbourSelector(topology_of("node:1 core:2"), selection).by_size());
}

// As measured: through the memory of the host half the native time, and no gain under Open MPI.
TEST(Planned, LargeFacesOfTwoRanksGoThroughTheMemoryOfTheirHost) {
    const struct {
        const char* family;
        std::uint64_t from;
    } cases[] = {{"mpich", 63 << 10}, {"impi", 5 << 20}, {"openmpi", 0}};
    for (const auto& [family, from] : cases) {
        Selection selection;
        selection.family = family;
        selection.persistent = selection.neighbours = true;
        const auto taken = [&](const char* hosts, std::uint64_t bytes) {
            return decide(Collective::alltoallv, bytes, topology_of(hosts), selection).choice.has_value();
        };
        EXPECT_EQ(taken("node:1 core:2", 8 << 20), from != 0) << family;
        EXPECT_FALSE(taken("node:1 core:3", 8 << 20)) << family;
        if (from == 0) continue;
        EXPECT_FALSE(taken("node:1 core:2", from - 1)) << family;
        EXPECT_TRUE(taken("node:1 core:2", from)) << family;
        selection.sleeps = true;
        EXPECT_FALSE(taken("node:1 core:2", 8 << 20)) << family;
    }
}

TEST(Planned, RowsOfAnythingElseAreRefused) {
    const auto fault = [](const std::string& table) {
        std::string why;
        EXPECT_NE(check_table(table, why), Status::ok);
        return why;
    };
    for (const std::string calls : {"persistent", "persistent neighbours"}) {
        const std::string between = R"({"calls":")" + calls + R"(","choice":"spread"})";
        EXPECT_NE(fault(table_of(between)).find("one host"), std::string::npos) << calls;
    }
    const std::string leaders = R"({"calls":"persistent neighbours","hosts":[1,1],"choice":"node_leader"})";
    EXPECT_FALSE(fault(table_of(leaders)).empty());
    const std::string broadcasts = R"({"calls":"persistent","hosts":[1,1],"choice":"linear"})";
    EXPECT_NE(fault(table_of(broadcasts, "bcast")).find("alltoallv"), std::string::npos);
    const std::string tried = R"({"calls":"persistent","hosts":[1,1],"choice":"spread","tried":true})";
    EXPECT_NE(fault(table_of(tried)).find("tried"), std::string::npos);
}

// What synchronises by calls that block is had by name alone: no row can choose it, and what is no algorithm
// is no candidate.
TEST(Planned, WindowsAreNobodysChoice) {
    for (const std::string_view name : over_windows) {
        std::string why;
        EXPECT_NE(check_table(table_of(R"({"choice":")" + std::string(name) + R"("})"), why), Status::ok);
        EXPECT_NE(why.find(name), std::string::npos) << why;
        Choice choice;
        EXPECT_TRUE(failed(parse_choice(Collective::alltoallv, name, choice, why))) << name;
    }
}

}  // namespace
}  // namespace thalweg
