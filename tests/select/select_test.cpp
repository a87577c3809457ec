// Decisions: tables first, then the model, native where native is best, the same on every rank.
#include "select/select.h"

#include <set>

#include "algorithms/cases.h"
#include "model/cost.h"
#include "select/neighbours.h"
#include "select/table.h"

namespace thalweg {
namespace {

Decision at(const std::string& hosts, std::uint64_t bytes, const Selection& selection = {}) {
    return decide(Collective::bcast, bytes, topology_of(hosts), selection);
}

std::string table_of(const std::string& rows, const std::string& more = "") {
    return R"({"collective":"bcast","machine":"test","date":"2025-01-01","method":"made up","commit":"0",)" +
           more + R"("rows":[)" + rows + "]}";
}

TEST(Decide, LeavesToTheNativeLibraryWhatItDoesBest) {
    EXPECT_EQ(at("node:1 core:8", 16 << 20).reason, "one host");
    EXPECT_EQ(at("node:1 core:1", 16 << 20).reason, "one rank");
    EXPECT_EQ(at("node:2 core:1", 16 << 20).reason, "two ranks");
    EXPECT_EQ(at("node:4 core:2", 65535).reason, "small message");
    EXPECT_EQ(at("node:4 core:2", 0).reason, "no bytes");
    for (const char* hosts : {"node:1 core:8", "node:2 core:1"})
        EXPECT_FALSE(at(hosts, 16 << 20).choice) << hosts;
    EXPECT_EQ(Selector(Collective::bcast, topology_of("node:1 core:8"), {}).native_below(),
              ~std::uint64_t{0});
    EXPECT_EQ(Selector(Collective::bcast, topology_of("node:4 core:2"), {}).native_below(), 65536u);
}

TEST(Decide, LeavesOneHostAloneUnlessATableSpeaksForIt) {
    const auto row = [](const std::string& hosts, const std::string& choice) {
        return table_of(R"({"hosts":[)" + hosts + R"(],"bytes":[1048576,null],"choice":")" + choice + "\"}");
    };
    EXPECT_TRUE(native_on_one_host(Collective::bcast, ""));
    EXPECT_TRUE(native_on_one_host(Collective::bcast, row("2,null", "linear")));
    EXPECT_TRUE(native_on_one_host(Collective::bcast, row("1,1", "native")));
    EXPECT_TRUE(native_on_one_host(Collective::bcast, "not a table"));
    EXPECT_FALSE(native_on_one_host(Collective::bcast, row("1,1", "linear")));
    EXPECT_FALSE(native_on_one_host(Collective::bcast, row("0,null", "chain:chunk_bytes=8K")));
    // It says what every selector of one host would: the smallest message that ours would run is none.
    for (const char* hosts : {"node:1 core:1", "node:1 core:2", "node:1 core:48"})
        EXPECT_EQ(Selector(Collective::bcast, topology_of(hosts), {}).native_below(), ~std::uint64_t{0})
            << hosts;
}

TEST(Decide, PipelinesWithinTheTargetsOnTheLabs) {
    // hosts, latency and rate as the emulated clusters have them; the ratio of predicted time to limit.
    const Selection lab{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    for (const char* hosts :
         {"node:4 core:1", "node:4 core:2", "node:5 core:1", "node:3 core:3", "node:8 core:1"}) {
        const Topology topology = topology_of(hosts);
        for (auto [bytes, target] :
             {std::pair{256u << 10, 1.5}, {1u << 20, 1.20}, {4u << 20, 1.10}, {16u << 20, 1.10}}) {
            const Explanation explanation = explain(Collective::bcast, bytes, topology, lab);
            ASSERT_TRUE(explanation.decision.choice) << hosts << " " << bytes;
            for (const Candidate& candidate : explanation.candidates) {
                if (!candidate.chosen) continue;
                const double limit = static_cast<double>(explanation.limit);
                EXPECT_LE(static_cast<double>(candidate.predicted), target * limit) << hosts << " " << bytes;
                ASSERT_TRUE(candidate.evaluated);
                EXPECT_LE(static_cast<double>(*candidate.evaluated), target * limit) << hosts << " " << bytes;
                // Nothing in the list is cheaper by more than the quarter that robustness may cost.
                EXPECT_LE(static_cast<double>(candidate.predicted),
                          4.0 / 3 * static_cast<double>(explanation.candidates.front().predicted))
                    << hosts << " " << bytes << " " << to_text(explanation.candidates.front().choice);
            }
        }
    }
}

TEST(Decide, AReasonNamesWhatIsCheaperAndStandsALateRankWorse) {
    const Selection fast{Machine::from_options(2, 12e9), "mpich", {}, {}};  // no table speaks
    const std::string_view words = ", which stands a late rank better than the cheapest predicted, ";
    int robust = 0, cheapest = 0;
    for (const char* hosts : {"node:8 core:1", "node:32 core:2"})
        for (const std::uint64_t bytes : {64u << 10, 4u << 20}) {
            const Explanation explanation = explain(Collective::bcast, bytes, topology_of(hosts), fast);
            ASSERT_TRUE(explanation.decision.choice) << hosts << " " << bytes;
            const std::string& reason = explanation.decision.reason;
            const auto told = reason.find(words);
            if (told == std::string::npos) {
                ++cheapest;
                continue;
            }
            ++robust;
            Picoseconds own = 0, named = 0;
            for (const Candidate& candidate : explanation.candidates) {
                if (candidate.chosen) own = candidate.predicted;
                if (to_text(candidate.choice) == reason.substr(told + words.size()))
                    named = candidate.predicted;
            }
            EXPECT_GT(named, 0u) << reason;
            EXPECT_LT(named, own) << reason;
        }
    EXPECT_GT(robust, 0);
    EXPECT_GT(cheapest, 0);
    // A demand is no decision of the model.
    Selection asked = fast;
    asked.forced = decide(Collective::bcast, 4 << 20, topology_of("node:8 core:1"), fast).choice;
    ASSERT_TRUE(asked.forced);
    EXPECT_EQ(explain(Collective::bcast, 4 << 20, topology_of("node:8 core:1"), asked).decision.reason,
              "asked for");
}

TEST(Decide, ChunksFollowLatencyTimesRate) {
    const auto chunk = [](double latency_us, double rate) {
        Selection selection{Machine::from_options(latency_us, rate), "", {}, {}};
        const Decision decision = decide(Collective::bcast, 4 << 20, topology_of("node:8 core:1"), selection);
        EXPECT_TRUE(decision.choice);
        return decision.choice->values[0];
    };
    // Only the product counts: a slow-motion cluster takes the chunks of the fast one.
    EXPECT_EQ(chunk(2, 12e9), chunk(2000, 12e6));
    EXPECT_GT(chunk(20, 12e9), 2 * chunk(2, 12e9));
}

TEST(Decide, SizesThatVaryALittleShareOneChoice) {
    const Selection selection{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    const Topology topology = topology_of("node:4 core:2");
    const auto choice = [&](std::uint64_t bytes) {
        return to_text(*decide(Collective::bcast, bytes, topology, selection).choice);
    };
    EXPECT_EQ(choice(1000001), choice(1000100));
    EXPECT_EQ(choice(1048575), choice(1 << 20));
    std::set<std::string> choices;
    for (std::uint64_t bytes = 1 << 20; bytes < 2 << 20; bytes += 1013) choices.insert(choice(bytes));
    EXPECT_LE(choices.size(), 9u);
}

TEST(Decide, MemoryCountsOnlyWhereManyRanksShareIt) {
    // What was measured has at most four ranks per host: there the memory's rate must not change a choice.
    for (const char* hosts : {"node:4 core:1", "node:4 core:2", "node:3 core:3", "node:8 core:4"})
        for (const Collective collective :
             {Collective::bcast, Collective::allgather, Collective::allreduce, Collective::alltoallv})
            for (std::uint64_t bytes : {64u << 10, 1u << 20, 16u << 20})
                for (const bool overlapped : {false, true})
                    for (Machine machine : {Machine::from_options(60, 11.95e6), Machine{}}) {
                        Selection selection{machine, "mpich", {}, {}, overlapped};
                        const Topology topology = topology_of(hosts);
                        const Decision limited = decide(collective, bytes, topology, selection);
                        selection.machine.host_bytes_per_second = 0;
                        const Decision unlimited = decide(collective, bytes, topology, selection);
                        EXPECT_EQ(limited.choice, unlimited.choice) << hosts << " " << bytes;
                    }
    // On a full host it does: pieces are handed out in other ways, and nothing takes less than its copies.
    const Topology full = topology_of("node:4 core:112");
    const Decision decision = decide(Collective::bcast, 4 << 20, full, {});
    ASSERT_TRUE(decision.choice);
    const Machine machine;
    EXPECT_GE(predict(*decision.choice, {0, full.size(), 0, 4 << 20}, full, machine),
              machine.copies(111 * std::uint64_t{4 << 20}));
}

TEST(Decide, ForcedChoicesCount) {
    Selection selection;
    selection.forced = choice_of("chain:chunk_bytes=16K");
    EXPECT_EQ(at("node:1 core:3", 8, selection).choice, selection.forced);
    EXPECT_EQ(at("node:1 core:3", 8, selection).reason, "asked for");
    EXPECT_EQ(Selector(Collective::bcast, topology_of("node:1 core:3"), selection).native_below(), 0u);
    selection.forced = choice_of("node_leader(inter=node_leader)");
    EXPECT_FALSE(at("node:2 core:2", 8 << 20, selection).choice);
    EXPECT_NE(at("node:2 core:2", 8 << 20, selection).reason.find("asked for, but"), std::string::npos);
}

TEST(Decide, TheFirstRowThatFitsDecides) {
    Selection selection;
    selection.family = "mpich";
    selection.table = table_of(R"(
        {"family":"openmpi","choice":"linear"},
        {"hosts":[2,4],"ppn":[1,1],"bytes":[1024,4095],"choice":"binomial"},
        {"hosts":[2,4],"ppn":[1,1],"bytes":[4096,null],"choice":"circulant:chunk_bytes=8K"},
        {"hosts":[1,1],"choice":"native"},
        {"hosts":[6,6],"bytes":[0,8388608],"choice":"native"})");
    std::string why;
    ASSERT_EQ(check_table(selection.table, why), Status::ok) << why;
    const auto text = [&](const char* hosts, std::uint64_t bytes) {
        const Decision decision = at(hosts, bytes, selection);
        return decision.choice ? to_text(*decision.choice) : "native: " + decision.reason;
    };
    EXPECT_EQ(text("node:4 core:1", 1023), "native: small message");
    EXPECT_EQ(text("node:4 core:1", 1024), "binomial");
    EXPECT_EQ(text("node:4 core:1", 4095), "binomial");
    EXPECT_EQ(text("node:4 core:1", 4096), "circulant:chunk_bytes=8K");
    EXPECT_EQ(text("node:4 core:2", 4096), "native: small message");
    EXPECT_EQ(text("node:6 core:2", 8 << 20), "native: tuning table");
    EXPECT_NE(text("node:6 core:2", (8 << 20) + 1).find("node_leader"), std::string::npos);
    EXPECT_EQ(Selector(Collective::bcast, topology_of("node:4 core:1"), selection).native_below(), 1024u);
    EXPECT_EQ(Selector(Collective::bcast, topology_of("node:6 core:2"), selection).native_below(),
              (8u << 20) + 1);
    selection.family = "openmpi";
    EXPECT_EQ(text("node:1 core:4", 5), "linear");
}

TEST(Decide, RowsMaySpeakForBlockingOrOverlappedCalls) {
    Selection selection;
    selection.table = table_of(R"(
        {"calls":"blocking","hosts":[2,9],"bytes":[100,199],"choice":"linear"},
        {"calls":"overlapped","bytes":[50,299],"choice":"binomial"},
        {"calls":"overlapped","hosts":[1,1],"choice":"binomial"})");
    std::string why;
    ASSERT_EQ(check_table(selection.table, why), Status::ok) << why;
    const auto text = [&](std::uint64_t bytes) {
        const Decision decision = at("node:4 core:1", bytes, selection);
        return decision.choice ? to_text(*decision.choice) : "native";
    };
    EXPECT_EQ(text(100), "linear");
    EXPECT_EQ(text(200), "native");
    EXPECT_TRUE(native_on_one_host(Collective::bcast, selection.table));
    EXPECT_EQ(smallest_taken(Collective::bcast, selection.table), 100u);
    EXPECT_EQ(smallest_taken(Collective::barrier, ""), ~std::uint64_t{0});
    selection.overlapped = true;
    EXPECT_EQ(text(100), "binomial");
    EXPECT_EQ(text(200), "binomial");
}

TEST(Decide, ATableSpeaksOnlyForItsMachines) {
    Selection selection{Machine::from_options(60, 125e6), "", {}, {}};
    const std::string row = R"({"choice":"linear"})";
    selection.table = table_of(row, R"("latency_us":[10,100],"rate_mbit":[500,2000],)");
    EXPECT_EQ(at("node:4 core:1", 1 << 20, selection).reason, "tuning table");
    selection.table = table_of(row, R"("latency_us":[10,100],"rate_mbit":[10000,null],)");
    EXPECT_NE(at("node:4 core:1", 1 << 20, selection).reason, "tuning table");
    selection.table = table_of(row, R"("latency_us":[0,10],)");
    EXPECT_NE(at("node:4 core:1", 1 << 20, selection).reason, "tuning table");
}

TEST(Table, FaultsAreNamed) {
    const auto fault = [](const std::string& json) {
        std::string why;
        EXPECT_EQ(check_table(json, why), Status::invalid_argument) << json;
        return why;
    };
    EXPECT_NE(fault("").find("JSON object"), std::string::npos);
    EXPECT_NE(fault("[]").find("JSON object"), std::string::npos);
    EXPECT_NE(fault("{").find("JSON object"), std::string::npos);
    EXPECT_NE(fault(R"({"rows":[]})").find("\"collective\""), std::string::npos);
    EXPECT_NE(fault(R"({"collective":"bcast"})").find("\"rows\""), std::string::npos);
    EXPECT_NE(fault(table_of(R"({"choice":"linear"},{"choice":"chian"})")).find("row 2"), std::string::npos);
    EXPECT_NE(fault(table_of(R"({"choice":"chian"})")).find("did you mean \"chain\""), std::string::npos);
    EXPECT_NE(fault(table_of(R"({"hosts":[1,2]})")).find("\"choice\""), std::string::npos);
    EXPECT_NE(fault(table_of(R"({"choice":"linear","bytes":[5,2]})")).find("low <= high"), std::string::npos);
    EXPECT_NE(fault(table_of(R"({"choice":"linear","bytes":5})")).find("[low, high]"), std::string::npos);
    EXPECT_NE(fault(table_of(R"({"choice":"linear","bytes":[-1,5]})")).find("[low, high]"),
              std::string::npos);
    EXPECT_NE(fault(table_of(R"({"choice":"linear","nodes":[1,5]})")).find("unknown field"),
              std::string::npos);
    EXPECT_NE(fault(table_of(R"({"choice":7})")).find("text in quotes"), std::string::npos);
    EXPECT_NE(fault(table_of(R"({"choice":"linear","calls":"all"})")).find("overlapped"), std::string::npos);
    EXPECT_NE(fault(table_of("7")).find("not an object"), std::string::npos);
}

TEST(Table, TheBuiltInOnesAreValid) {
    EXPECT_FALSE(built_in_tables().empty());
    for (std::string_view json : built_in_tables()) {
        TuningTable table;
        std::string why;
        EXPECT_EQ(parse_table(json, table, why), Status::ok) << why;
        EXPECT_FALSE(table.machine.empty());
        EXPECT_FALSE(table.method.empty());
        if (!table.rows.empty()) {
            EXPECT_FALSE(table.date.empty());
            EXPECT_FALSE(table.commit.empty());
        }
    }
}

// Where messages of a host travel together, small ones are worth a plan; between single ranks they are not.
TEST(Decide, SmallPlannedAlltoallsNeedCompany) {
    Selection overlapped{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    overlapped.overlapped = true;
    const auto choice_at = [&](const char* hosts, std::uint64_t bytes) {
        return decide(Collective::alltoallv, bytes, topology_of(hosts), overlapped).choice.has_value();
    };
    EXPECT_FALSE(choice_at("node:4 core:1", 8191));
    EXPECT_TRUE(choice_at("node:4 core:1", 8192));
    EXPECT_FALSE(choice_at("node:4 core:2", 2047));
    EXPECT_TRUE(choice_at("node:4 core:2", 2048));
    EXPECT_EQ(Selector(Collective::alltoallv, topology_of("node:4 core:1"), overlapped).native_below(),
              8192u);
}

// As measured: up to four ranks of a host, and nothing is known of faster links.
TEST(Decide, LargePlannedAlltoallsTravelInPieces) {
    Selection overlapped{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    overlapped.overlapped = true;
    const auto at = [&](const char* hosts, std::uint64_t bytes) {
        return to_text(*decide(Collective::alltoallv, bytes, topology_of(hosts), overlapped).choice);
    };
    EXPECT_EQ(at("node:4 core:1", 65535), "spread");
    EXPECT_EQ(at("node:4 core:1", 65536), "pairwise:chunk_bytes=32K");
    EXPECT_EQ(at("node:8 core:1", 4 << 20), "pairwise:chunk_bytes=32K");
    EXPECT_EQ(at("node:4 core:2", 32768), "pairwise");
    EXPECT_EQ(at("node:3 core:3", 65536), "pairwise:chunk_bytes=32K");
    EXPECT_EQ(at("node:2 core:1", 1 << 20), "spread");
    overlapped.machine = Machine::from_options(2, 12e9);
    EXPECT_EQ(at("node:4 core:1", 1 << 20), "spread");
}

// Blocking calls run over the MPI library's own messages, where whole blocks were faster under Intel MPI, and
// by leaders from 16 KiB on: its own algorithms send twice the bytes between hosts of two ranks.
TEST(Decide, BlockingAllgathersUnderIntelMpiGoInWholeBlocks) {
    Selection selection{Machine::from_options(60, 11.95e6), "impi", {}, {}};
    const auto at = [&](const char* hosts, std::uint64_t bytes) {
        const Decision decision = decide(Collective::allgather, bytes, topology_of(hosts), selection);
        return decision.choice ? to_text(*decision.choice) : "native";
    };
    EXPECT_EQ(at("node:4 core:2", 16383), "native");
    EXPECT_EQ(at("node:4 core:2", 16384), "node_leader(intra=linear,inter=ring)");
    EXPECT_EQ(at("node:4 core:2", 1 << 20), "node_leader(intra=linear,inter=ring)");
    // What something advances meanwhile runs over libucp under all of them.
    selection.overlapped = true;
    EXPECT_EQ(at("node:4 core:2", 1 << 20), "node_leader(intra=linear,inter=ring:chunk_bytes=64K)");
    selection.overlapped = false;
    selection.family = "mpich";
    EXPECT_EQ(at("node:4 core:2", 16384), "native");
    EXPECT_EQ(at("node:4 core:2", 1 << 20), "node_leader(intra=linear,inter=ring:chunk_bytes=64K)");
}

TEST(Neighbours, TablesSpeakElseEverythingGoesStraight) {
    Selection selection{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    const auto at = [&](const char* hosts, std::uint64_t bytes) {
        const Decision decision = NeighbourSelector(topology_of(hosts), selection).decide(bytes);
        return decision.choice ? to_text(*decision.choice) : "native";
    };
    // What the built-in tables know of links of 100 Gbit/s.
    selection.machine = Machine::from_options(2, 12e9);
    EXPECT_EQ(at("node:4 core:2", NeighbourSelector::unknown), "spread");
    EXPECT_EQ(at("node:1 core:4", NeighbourSelector::unknown), "native");
    EXPECT_EQ(at("node:1 core:1", NeighbourSelector::unknown), "native");
    selection.table =
        R"({"collective": "alltoallv", "rows": [
            {"calls": "neighbours", "hosts": [2, null], "bytes": [0, 4095], "choice": "native"},
            {"calls": "neighbours", "hosts": [2, null], "choice": "pairwise:ahead=3"},
            {"calls": "overlapped", "choice": "pairwise"}]})";
    std::string why;
    ASSERT_EQ(check_table(selection.table, why), Status::ok) << why;
    EXPECT_EQ(at("node:4 core:2", 4095), "native");
    EXPECT_EQ(at("node:4 core:2", 4096), "pairwise:ahead=3");
    EXPECT_EQ(at("node:4 core:2", NeighbourSelector::unknown), "pairwise:ahead=3");
    EXPECT_EQ(at("node:1 core:4", 4096), "native");
    // Its other rows are not for neighbours, nor these for others.
    selection.overlapped = true;
    EXPECT_EQ(to_text(*decide(Collective::alltoallv, 4096, topology_of("node:4 core:2"), selection).choice),
              "pairwise");
}

TEST(Neighbours, WhatWasAskedForRunsWhereItNeedsNoLeader) {
    Selection selection{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    const auto asked = [&](const char* text) {
        selection.forced = choice_of(text, Collective::alltoallv);
        const Decision decision =
            NeighbourSelector(topology_of("node:4 core:2"), selection).decide(NeighbourSelector::unknown);
        EXPECT_EQ(decision.reason, "asked for");
        return to_text(*decision.choice);
    };
    EXPECT_EQ(asked("pairwise:chunk_bytes=4K"), "pairwise:chunk_bytes=4K");
    EXPECT_EQ(asked("notify"), "notify");
    EXPECT_EQ(asked("node_leader"), "spread");
}

TEST(Decide, OtherCollectivesGetTheirOwnAlgorithms) {
    const Selection lab{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    Selection overlapped = lab;
    overlapped.overlapped = true;
    for (const char* hosts : {"node:4 core:1", "node:4 core:2", "node:8 core:1", "node:3 core:1,2,4"})
        for (Collective collective : {Collective::allgather, Collective::allreduce})
            for (std::uint64_t bytes : {256u << 10, 1u << 20, 4u << 20}) {
                const Explanation explanation = explain(collective, bytes, topology_of(hosts), lab);
                ASSERT_TRUE(explanation.decision.choice) << hosts << " " << bytes;
                EXPECT_EQ(explanation.decision.choice->algorithm->collective, collective);
                for (const Candidate& candidate : explanation.candidates) {
                    if (!candidate.chosen) continue;
                    ASSERT_TRUE(candidate.evaluated);
                    EXPECT_LE(static_cast<double>(*candidate.evaluated),
                              1.25 * static_cast<double>(explanation.limit))
                        << hosts << " " << bytes << " " << to_text(candidate.choice);
                }
            }
    // Small ones are native, or hidden.
    const Topology topology = topology_of("node:4 core:2");
    EXPECT_FALSE(decide(Collective::allgather, 8 << 10, topology, lab).choice);
    EXPECT_TRUE(decide(Collective::allgather, 8 << 10, topology, overlapped).choice);
    EXPECT_TRUE(decide(Collective::allgather, 8 << 10, topology_of("node:2 core:1"), overlapped).choice);
    EXPECT_EQ(decide(Collective::barrier, 0, topology, lab).reason, "small message");
    EXPECT_EQ(to_text(*decide(Collective::barrier, 0, topology, overlapped).choice), "dissemination");
    EXPECT_EQ(decide(Collective::allreduce, 0, topology, overlapped).reason, "no bytes");
}

TEST(Decide, PortsOfTheMachineAreUsed) {
    // A rate that no table speaks for.
    Selection fast{Machine::from_options(60, 119.5e6), "", {}, {}};
    fast.machine.inter.ports = 2;
    const Topology topology = topology_of("node:5 core:1");
    const Decision of_model = decide(Collective::allgather, 1 << 20, topology, fast);
    ASSERT_TRUE(of_model.choice);
    EXPECT_NE(to_text(*of_model.choice).find("kport_ring"), std::string::npos) << to_text(*of_model.choice);
    Selection rails{Machine::from_options(60, 11.95e6), "", {}, {}};
    rails.machine.inter.ports = 2;
    const Decision two = decide(Collective::allgather, 1 << 20, topology, rails);
    EXPECT_EQ(to_text(*two.choice), "ring:chunk_bytes=128K");  // of the table, which is of two links
    rails.machine.inter.ports = 1;
    const Decision one = decide(Collective::allgather, 1 << 20, topology, rails);
    EXPECT_EQ(to_text(*one.choice), "ring:chunk_bytes=32K");  // of the table, which is of one link
}

TEST(Explain, ListsEveryAlgorithmOnceAndMarksTheChoice) {
    for (const char* hosts : {"node:16 core:48", "node:4 core:2", "node:8 core:1", "node:1 core:4"})
        for (std::uint64_t bytes : {0u, 100u, 4u << 20}) {
            const Explanation explanation = explain(Collective::bcast, bytes, topology_of(hosts), {});
            std::set<std::string_view> names;
            std::set<std::string> texts;
            int chosen = 0;
            Picoseconds before = 0;
            for (const Candidate& candidate : explanation.candidates) {
                names.insert(candidate.choice.algorithm->name);
                EXPECT_TRUE(texts.insert(to_text(candidate.choice)).second) << to_text(candidate.choice);
                chosen += candidate.chosen;
                EXPECT_TRUE(candidate.refused.empty());
                EXPECT_LE(before, candidate.predicted);
                before = candidate.predicted;
            }
            EXPECT_EQ(names.size(), static_cast<std::size_t>(std::count_if(
                                        algorithms().begin(), algorithms().end(), [](const Algorithm& row) {
                                            return row.collective == Collective::bcast;
                                        })));
            EXPECT_EQ(chosen, explanation.decision.choice ? 1 : 0) << hosts << " " << bytes;
        }
}

}  // namespace
}  // namespace thalweg
