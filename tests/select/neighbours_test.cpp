// Which algorithm runs between neighbours.
#include "select/neighbours.h"

#include "algorithms/cases.h"
#include "select/table.h"

namespace thalweg {
namespace {

TEST(Neighbours, TablesSpeakElseEverythingGoesStraight) {
    Selection selection{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    const auto at = [&](const char* hosts, std::uint64_t bytes) {
        const Decision decision = NeighbourSelector(topology_of(hosts), selection).decide(bytes);
        return decision.choice ? to_text(*decision.choice) : "native";
    };
    // What the built-in tables know of links of 100 Gbit/s.
    selection.machine = Machine::from_options(2, 12e9);
    EXPECT_EQ(at("node:4 core:2", NeighbourSelector::unknown), "spread");
    EXPECT_FALSE(NeighbourSelector(topology_of("node:4 core:2"), selection).by_size());
    EXPECT_EQ(at("node:1 core:4", NeighbourSelector::unknown), "native");
    EXPECT_EQ(at("node:1 core:1", NeighbourSelector::unknown), "native");
    selection.table =
        R"({"collective": "alltoallv", "rows": [
            {"calls": "neighbours", "hosts": [2, null], "bytes": [0, 4095], "choice": "native"},
            {"calls": "neighbours", "hosts": [2, null], "choice": "pairwise:ahead=3"},
            {"calls": "overlapped", "choice": "pairwise"}]})";
    std::string why;
    ASSERT_EQ(check_table(selection.table, why), Status::ok) << why;
    EXPECT_TRUE(NeighbourSelector(topology_of("node:4 core:2"), selection).by_size());
    EXPECT_EQ(at("node:4 core:2", 4095), "native");
    EXPECT_EQ(at("node:4 core:2", 4096), "pairwise:ahead=3");
    EXPECT_EQ(at("node:4 core:2", NeighbourSelector::unknown), "pairwise:ahead=3");
    EXPECT_EQ(at("node:1 core:4", 4096), "native");
    // Its other rows are not for neighbours, nor these for others.
    selection.overlapped = true;
    EXPECT_EQ(to_text(*decide(Collective::alltoallv, 4096, topology_of("node:4 core:2"), selection).choice),
              "pairwise");
}

// They would have had no effect, and nobody would have known.
TEST(Neighbours, RowsThatCannotSpeakOfThemAreRefused) {
    const auto fault = [](const std::string& collective, const std::string& choice) {
        std::string why;
        const std::string table = R"({"collective":")" + collective +
                                  R"(","rows":[{"calls":"neighbours","choice":")" + choice + R"("}]})";
        const bool refused = failed(check_table(table, why));
        EXPECT_EQ(refused, !why.empty());
        return why;
    };
    for (const char* choice : {"native", "spread:in_flight=2", "pairwise:chunk_bytes=32K", "notify"})
        EXPECT_EQ(fault("alltoallv", choice), "") << choice;
    EXPECT_EQ(
        fault("alltoallv", "node_leader"),
        "row 1: \"calls\" must be not neighbours but of alltoallv by spread, pairwise, notify or natively");
    EXPECT_NE(fault("bcast", "linear").find("not neighbours but of alltoallv"), std::string::npos);
    EXPECT_NE(fault("allgather", "native").find("not neighbours but of alltoallv"), std::string::npos);
}

TEST(Neighbours, WhatWasAskedForRuns) {
    Selection selection{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    const auto asked = [&](const char* text) {
        selection.forced = choice_of(text, Collective::alltoallv);
        const NeighbourSelector neighbours(topology_of("node:4 core:2"), selection);
        const Decision decision = neighbours.decide(NeighbourSelector::unknown);
        EXPECT_EQ(decision.reason, "asked for");
        EXPECT_EQ(neighbours.bundles(), std::string_view(text) == "node_leader");
        return to_text(*decision.choice);
    };
    EXPECT_EQ(asked("pairwise:chunk_bytes=4K"), "pairwise:chunk_bytes=4K");
    EXPECT_EQ(asked("notify"), "notify");
    EXPECT_EQ(asked("node_leader"), "node_leader");
    const NeighbourSelector one_host(topology_of("node:1 core:4"), selection);
    EXPECT_FALSE(one_host.bundles());
    EXPECT_EQ(to_text(*one_host.decide(NeighbourSelector::unknown).choice), "spread");
}

// Nobody need set anything up for them on one host, unless some row speaks of it: to that of alltoalls, or of
// overlapped ones, they do not listen.
TEST(Neighbours, WhetherARowSpeaksOfOneHostIsKnownBeforehand) {
    constexpr std::uint64_t nothing = ~std::uint64_t{0};
    const auto from = [](const char* row, bool neighbours) {
        Selection selection;
        selection.family = "none";
        selection.overlapped = true;
        selection.neighbours = neighbours;
        selection.table = std::string(R"({"collective":"alltoallv","machine":"test","date":"2025-01-01",)") +
                          R"("method":"made up","commit":"0","rows":[)" + row + "]}";
        std::string why;
        EXPECT_EQ(check_table(selection.table, why), Status::ok) << why;
        return smallest_on_one_host(Collective::alltoallv, selection, 4);
    };
    const char* const any = R"({"calls":"neighbours","bytes":[1000,null],"choice":"spread"})";
    EXPECT_EQ(from(any, true), 1000u);
    EXPECT_EQ(from(any, false), nothing);
    EXPECT_EQ(from(R"({"calls":"neighbours","hosts":[2,9],"choice":"spread"})", true), nothing);
    EXPECT_EQ(from(R"({"calls":"neighbours","hosts":[1,1],"choice":"native"})", true), nothing);
    EXPECT_EQ(from(R"({"calls":"neighbours","hosts":[1,1],"ppn":[8,8],"choice":"spread"})", true), nothing);
    const char* const other = R"({"calls":"overlapped","hosts":[1,1],"bytes":[2000,null],"choice":"spread"})";
    EXPECT_EQ(from(other, true), nothing);
    EXPECT_EQ(from(other, false), 2000u);
}

}  // namespace
}  // namespace thalweg
