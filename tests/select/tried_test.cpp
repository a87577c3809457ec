// Rows of tuning tables that want their choice tried in turns with the native call.
#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

#include "select/broadcast_at.h"
#include "select/neighbours.h"
#include "select/table.h"

namespace thalweg {
namespace {

std::string table_of(const std::string& rows, const std::string& collective = "bcast") {
    return R"({"collective":")" + collective + R"(","machine":"test","date":"2025-01-01",)" +
           R"("method":"made up","commit":"0","rows":[)" + rows + "]}";
}

Selection with(const std::string& rows) {
    Selection selection;
    selection.family = "none";
    selection.table = table_of(rows);
    std::string why;
    EXPECT_EQ(check_table(selection.table, why), Status::ok) << why;
    return selection;
}

constexpr const char* large =
    R"({"calls":"blocking","hosts":[1,1],"bytes":[1000,null],"choice":"linear","tried":true})";

TEST(Tried, ARowMayWantItsChoiceTried) {
    const Selection selection = with(large);
    const Topology topology = topology_of("node:1 core:4");
    const Selector selector(Collective::bcast, topology, selection);
    EXPECT_FALSE(selector.tries(999));
    EXPECT_TRUE(selector.tries(1000));
    EXPECT_FALSE(selector.decide(999).choice.has_value());
    const Decision decision = selector.decide(1000);
    EXPECT_TRUE(decision.tried);
    ASSERT_TRUE(decision.choice.has_value());
    EXPECT_EQ(to_text(*decision.choice), "linear");
    EXPECT_EQ(decision.reason, "tuning table, in turns with the MPI library");
    EXPECT_EQ(selector.native_below(), 1000u);
    EXPECT_EQ(smallest_on_one_host(Collective::bcast, selection, 2), 1000u);
    EXPECT_FALSE(Selector(Collective::bcast, topology_of("node:2 core:2"), selection).tries(1000));
}

TEST(Tried, TheFirstRowThatFitsSaysWhether) {
    const std::string sure = R"({"hosts":[1,1],"bytes":[2000,3000],"choice":"linear"},)";
    const std::string native = R"({"hosts":[1,1],"bytes":[4000,5000],"choice":"native"},)";
    const Selector selector(Collective::bcast, topology_of("node:1 core:4"), with(sure + native + large));
    EXPECT_TRUE(selector.tries(1999));
    EXPECT_FALSE(selector.tries(2000));
    EXPECT_TRUE(selector.decide(2000).choice.has_value());
    EXPECT_FALSE(selector.decide(2000).tried);
    EXPECT_TRUE(selector.tries(3001));
    EXPECT_FALSE(selector.tries(4000));
    EXPECT_FALSE(selector.decide(4000).choice.has_value());
}

TEST(Tried, WhatIsAskedForIsNotTried) {
    Selection selection = with(large);
    Choice asked;
    std::string why;
    ASSERT_EQ(parse_choice(Collective::bcast, "linear", asked, why), Status::ok);
    selection.forced = asked;
    const Selector selector(Collective::bcast, topology_of("node:1 core:4"), selection);
    EXPECT_FALSE(selector.tries(1000));
    EXPECT_FALSE(selector.decide(1000).tried);
}

// Broadcasts that are tried on one host, where the table wants the library's messages to carry them.
TEST(Tried, OverTheLibrary) {
    const char* const rows =
        R"({"calls":"blocking","bytes":[1000,null],"choice":"linear","tried":true,"over":"mpi"})";
    const Selector over(Collective::bcast, topology_of("node:1 core:4"), with(rows));
    EXPECT_TRUE(over.decide(1000).tried && over.decide(1000).over_library);
    EXPECT_FALSE(over.decide(999).over_library);
    const Selector memory(Collective::bcast, topology_of("node:1 core:4"), with(large));
    EXPECT_TRUE(memory.decide(1000).tried);
    EXPECT_FALSE(memory.decide(1000).over_library);
    const Selector only(Collective::bcast, topology_of("node:1 core:4"),
                        with(R"({"calls":"blocking","choice":"linear","tried":true,"over":"shm"})"));
    EXPECT_TRUE(only.decide(1000).only_in_memory && !only.decide(1000).over_library);
    EXPECT_FALSE(over.decide(1000).only_in_memory || memory.decide(1000).only_in_memory);
    for (const char* row : {R"("tried":true,"over":"ucx"})", R"("tried":true,"over":""})", R"("over":"mpi"})",
                            R"("over":"shm"})"}) {
        std::string why;
        const bool good = std::string(row).find(R"("over":"")") != std::string::npos;
        const Status status =
            check_table(table_of(std::string(R"({"calls":"blocking","choice":"linear",)") + row), why);
        EXPECT_EQ(failed(status), !good) << row;
        EXPECT_EQ(why.find("\"over\"") == std::string::npos, good) << why;
    }
}

// Only broadcasts and exchanges that block have a native call to take turns with.
TEST(Tried, IsRefusedWhereNothingTakesTurns) {
    const auto fault = [](const std::string& row, const std::string& collective = "bcast") {
        std::string why;
        EXPECT_EQ(check_table(table_of(row, collective), why), Status::invalid_argument) << row;
        return why;
    };
    for (const char* calls : {"", R"("calls":"overlapped",)"})
        EXPECT_EQ(fault("{" + std::string(calls) + R"("choice":"linear","tried":true})"),
                  "row 1: \"tried\" must be left out but where calls is blocking, of bcast or alltoallv, or "
                  "blocking neighbours, and the choice not native");
    EXPECT_NE(fault(R"({"calls":"blocking","choice":"native","tried":true})").find("tried"),
              std::string::npos);
    EXPECT_NE(fault(R"({"calls":"blocking","choice":"ring","tried":true})", "allgather").find("tried"),
              std::string::npos);
    EXPECT_NE(fault(R"({"calls":"blocking","choice":"linear","tried":1})").find("true or false"),
              std::string::npos);
    std::string why;
    EXPECT_EQ(check_table(table_of(R"({"choice":"linear","tried":false})"), why), Status::ok) << why;
    EXPECT_EQ(
        check_table(table_of(R"({"calls":"blocking","choice":"spread","tried":true})", "alltoallv"), why),
        Status::ok)
        << why;
}

// For two ranks of one host that have a core each.
TEST(Tried, BuiltInRowsDo) {
    struct First {
        Collective collective;
        const char* family;
        std::uint64_t bytes;
    };
    constexpr std::uint64_t mega = 1 << 20;
    for (const auto& [collective, family, first] : {First{Collective::bcast, "mpich", mega},
                                                    {Collective::bcast, "impi", mega},
                                                    {Collective::bcast, "openmpi", mega / 2},
                                                    {Collective::bcast, "another", 4 * mega},
                                                    {Collective::alltoallv, "mpich", mega / 128},
                                                    {Collective::alltoallv, "openmpi", 4 * mega},
                                                    {Collective::alltoallv, "impi", mega}}) {
        const auto tries = [&](const char* hosts, bool sleeps, std::uint64_t bytes) {
            Selection selection;
            selection.family = family;
            selection.sleeps = sleeps;
            return Selector(collective, topology_of(hosts), selection).tries(bytes);
        };
        EXPECT_TRUE(tries("node:1 core:2", false, first)) << family;
        EXPECT_FALSE(tries("node:1 core:2", false, first - 1)) << family;
        EXPECT_FALSE(tries("node:1 core:2", true, first)) << family;
        EXPECT_FALSE(tries("node:2 core:1", false, first)) << family;
    }
    Selection selection;
    selection.family = "openmpi";
    EXPECT_EQ(smallest_on_one_host(Collective::bcast, selection, 2), mega / 2);
    EXPECT_EQ(smallest_on_one_host(Collective::bcast, selection, 3), mega / 4);
    for (const auto& [hosts, bytes, algorithm] :
         {std::tuple{"node:1 core:3", mega / 4, "circulant"}, {"node:1 core:16", 64 * mega, "circulant"}}) {
        const Decision decision = decide(Collective::bcast, bytes, topology_of(hosts), selection);
        ASSERT_TRUE(decision.choice && decision.tried) << hosts;
        EXPECT_TRUE(decision.over_library && to_text(*decision.choice).starts_with(algorithm)) << hosts;
        EXPECT_FALSE(Selector(Collective::bcast, topology_of(hosts), selection).tries(mega / 4 - 1)) << hosts;
    }
    selection.family = "mpich";
    EXPECT_FALSE(Selector(Collective::bcast, topology_of("node:1 core:4"), selection).tries(mega));
    EXPECT_TRUE(Selector(Collective::bcast, topology_of("node:1 core:4"), selection).tries(4 * mega));
    EXPECT_TRUE(Selector(Collective::bcast, topology_of("node:1 core:8"), selection).tries(mega));
    EXPECT_TRUE(Selector(Collective::alltoallv, topology_of("node:1 core:8"), selection).tries(mega / 8));
    EXPECT_FALSE(Selector(Collective::alltoallv, topology_of("node:1 core:8"), selection).tries(mega));
    EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 2), 8192u)
        << "in one piece, up to 16 KiB";
    selection.persistent = true;
    EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 2), 8192u);
    for (const char* family : {"openmpi", "impi"}) {
        selection.family = family;
        EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 2), ~std::uint64_t{0}) << family;
    }
    selection.persistent = false;
    selection.family = "another";
    EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 2), ~std::uint64_t{0})
        << "nobody need look at what gains nothing";
}

// Their sizes are known at two ends only: such a row is for what the ranks have agreed that calls are like.
TEST(Tried, CallsBetweenNeighboursHaveRowsOfTheirOwn) {
    Selection selection;
    selection.family = "none";
    selection.table =
        table_of(R"({"calls":"blocking neighbours","waits":"spin","hosts":[1,1],"ppn":[2,2],)"
                 R"("bytes":[1000,1999],"choice":"spread","tried":true},)"
                 R"({"calls":"blocking","hosts":[1,1],"bytes":[3000,null],"choice":"spread","tried":true})",
                 "alltoallv");
    std::string why;
    ASSERT_EQ(check_table(selection.table, why), Status::ok) << why;
    const auto tries = [&](const char* hosts, std::uint64_t bytes) {
        return Selector(Collective::alltoallv, topology_of(hosts), selection).tries(bytes);
    };
    EXPECT_FALSE(tries("node:1 core:2", 1000));
    EXPECT_TRUE(tries("node:1 core:2", 3000));
    EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 2), 3000u);
    EXPECT_FALSE(NeighbourSelector(topology_of("node:1 core:2"), selection).by_size());
    selection.neighbours = true;
    EXPECT_TRUE(tries("node:1 core:2", 1000));
    EXPECT_FALSE(tries("node:1 core:2", 999));
    EXPECT_FALSE(tries("node:1 core:2", 3000));
    EXPECT_FALSE(tries("node:1 core:3", 1000));
    EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 2), 1000u);
    EXPECT_EQ(Selector(Collective::alltoallv, topology_of("node:1 core:3"), selection).native_below(),
              ~std::uint64_t{0});
    selection.sleeps = true;
    EXPECT_FALSE(tries("node:1 core:2", 1000));
    EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 2), ~std::uint64_t{0});
    selection.sleeps = false;
    selection.persistent = true;
    EXPECT_FALSE(decide(Collective::alltoallv, 1000, topology_of("node:1 core:2"), selection).choice);
    // No row is sure of them.
    for (const auto& [row, names] :
         {std::pair{R"("hosts":[1,1],"choice":"spread")", "\"tried\" must be true"},
          {R"("choice":"spread","tried":true)", "not blocking neighbours but of alltoallv on one host"},
          {R"("hosts":[1,1],"choice":"native","tried":true)", "\"tried\" must be left out"},
          {R"("hosts":[1,1],"choice":"node_leader","tried":true)", "by spread, pairwise"}}) {
        const std::string rows = R"({"calls":"blocking neighbours",)" + std::string(row) + "}";
        EXPECT_EQ(check_table(table_of(rows, "alltoallv"), why), Status::invalid_argument) << row;
        EXPECT_NE(why.find(names), std::string::npos) << why;
    }
    const std::string native = R"({"calls":"blocking neighbours","hosts":[1,1],"choice":"native"})";
    EXPECT_EQ(check_table(table_of(native, "alltoallv"), why), Status::ok) << why;
}

// As measured: large faces take half the native time in the memory of the host, and no less under Open MPI.
TEST(Tried, LargeFacesOfTwoRanksAre) {
    const struct {
        const char* family;
        std::uint64_t from;
    } cases[] = {{"mpich", 63 << 10}, {"impi", 5 << 20}, {"openmpi", 0}};
    for (const auto& [family, from] : cases) {
        Selection selection;
        selection.family = family;
        selection.neighbours = true;
        const auto tries = [&](const char* hosts, std::uint64_t bytes) {
            return Selector(Collective::alltoallv, topology_of(hosts), selection).tries(bytes);
        };
        EXPECT_EQ(tries("node:1 core:2", 8 << 20), from != 0) << family;
        EXPECT_FALSE(tries("node:1 core:3", 8 << 20)) << family;
        EXPECT_FALSE(tries("node:2 core:1", 8 << 20)) << family;
        EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 2),
                  from != 0 ? from : ~std::uint64_t{0})
            << family;
        EXPECT_FALSE(tries("node:1 core:2", from - 1)) << family;
        selection.sleeps = true;
        EXPECT_FALSE(tries("node:1 core:2", 8 << 20)) << family;
    }
}

TEST(Tried, WhereOnlyTheModelSpeaksTheCallsThemselvesTell) {
    constexpr std::uint64_t mega = 1 << 20;
    Selection selection{Machine::from_options(2, 12e9), "mpich", {}, {}};
    const auto looked_at = [&](Collective collective, const char* hosts, std::uint64_t bytes) {
        const Selector selector(collective, topology_of(hosts), selection);
        const Decision decision = selector.decide(bytes);
        EXPECT_EQ(decision.tried, selector.tries(bytes)) << hosts << " " << bytes;
        EXPECT_TRUE(!decision.tried || (decision.choice && decision.over_library)) << hosts << " " << bytes;
        return decision.tried;
    };
    for (const Collective collective : {Collective::bcast, Collective::allgather, Collective::allreduce}) {
        selection.tries_model = false;  // the network is not known yet
        EXPECT_FALSE(looked_at(collective, "node:4 core:1", mega));
        selection.tries_model = true;
        for (const char* hosts : {"node:4 core:1", "node:4 core:2", "node:3 core:1"})
            EXPECT_TRUE(looked_at(collective, hosts, mega)) << hosts;
        for (const char* hosts : {"node:2 core:1", "node:1 core:1", "node:1 core:4"})
            EXPECT_FALSE(looked_at(collective, hosts, mega)) << hosts;
        EXPECT_FALSE(looked_at(collective, "node:4 core:1", 1000));
        selection.overlapped = true;
        EXPECT_FALSE(looked_at(collective, "node:4 core:1", mega));
        selection.overlapped = false;
        // What was measured is not asked again.
        selection.machine = Machine::from_options(60, 11.95e6);
        EXPECT_FALSE(looked_at(collective, "node:4 core:1", mega));
        selection.machine = Machine::from_options(2, 12e9);
    }
    // From some KiB on; what nobody tries, from more on.
    for (const auto& [collective, least] : {std::pair{Collective::bcast, 16u << 10},
                                            {Collective::allgather, 4u << 10},
                                            {Collective::allreduce, 64u << 10}}) {
        EXPECT_TRUE(looked_at(collective, "node:4 core:2", least));
        EXPECT_FALSE(looked_at(collective, "node:4 core:2", least - 1));
        EXPECT_LE(smallest_taken(collective, "", false), least);
        selection.tries_model = false;
        EXPECT_EQ(Selector(collective, topology_of("node:4 core:2"), selection).native_below(),
                  collective == Collective::allgather ? 16u << 10 : 64u << 10);
        selection.unknown = true;  // whoever may be tried measures the network
        EXPECT_EQ(Selector(collective, topology_of("node:4 core:2"), selection).native_below(), least);
        selection.unknown = false;
        selection.tries_model = true;
    }
    // They have trials of their own, which no table and no model turns off; or nothing to try.
    for (const Collective collective : {Collective::alltoallv, Collective::barrier})
        EXPECT_FALSE(looked_at(collective, "node:4 core:1", mega));
    // Nor what was asked for.
    selection.forced = choice_of("chain:chunk_bytes=16K");
    EXPECT_FALSE(looked_at(Collective::bcast, "node:4 core:1", mega));
}

}  // namespace
}  // namespace thalweg
