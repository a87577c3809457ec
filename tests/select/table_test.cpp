// Tuning tables: made-up ones, whose rows decide or whose faults are named, and what the built-in ones say.
#include "select/table.h"

#include "directions.h"
#include "select/broadcast_at.h"

namespace thalweg {
namespace {

std::string table_of(const std::string& rows, const std::string& more = "") {
    return R"({"collective":"bcast","machine":"test","date":"2025-01-01","method":"made up","commit":"0",)" +
           more + R"("rows":[)" + rows + "]}";
}

TEST(Decide, LeavesOneHostAloneUnlessATableSpeaksForIt) {
    const auto row = [](const std::string& hosts, const std::string& choice, const std::string& more = "") {
        return table_of("{" + more + R"("hosts":[)" + hosts + R"(],"bytes":[65536,null],"choice":")" +
                        choice + "\"}");
    };
    constexpr std::uint64_t never = ~std::uint64_t{0};
    constexpr std::uint64_t built_in = 1 << 20;  // for ranks that spin (tried_test.cpp)
    const auto below = [](const std::string& table, bool sleeps = true, const char* family = "openmpi",
                          const char* library = "") {
        Selection selection;
        selection.family = family;
        selection.library = library;
        selection.sleeps = sleeps;
        selection.table = table;
        return smallest_on_one_host(Collective::bcast, selection, 2);
    };
    EXPECT_EQ(below(""), never);
    EXPECT_EQ(below(row("2,null", "linear")), never);
    EXPECT_EQ(below(row("1,1", "native")), never);
    EXPECT_EQ(below("not a table"), never);
    EXPECT_EQ(below(row("1,1", "linear")), 65536u);
    EXPECT_EQ(below(row("0,null", "chain:chunk_bytes=8K")), 65536u);
    EXPECT_EQ(below(row("1,1", "linear", R"("family":"impi",)")), never);
    const std::string of_five = row("1,1", "linear", R"("library":"MPICH Version: 5",)");
    EXPECT_EQ(below(of_five, true, "x", "MPICH Version:      5.0.2"), 65536u);
    EXPECT_EQ(below(of_five, true, "x", "MPICH Version: 5"), 65536u);
    for (const char* other :
         {"MPICH Version:      4.0.2", "MVAPICH 5", "MPICH Version:", "MPICH Version: ", ""})
        EXPECT_EQ(below(of_five, true, "x", other), never) << other;
    for (const bool sleeps : {false, true}) {
        EXPECT_EQ(below(row("1,1", "linear", R"("calls":"blocking","waits":"spin",)"), sleeps, "mpich"),
                  sleeps ? never : 65536u);
        EXPECT_EQ(below(row("1,1", "linear", R"("calls":"blocking","waits":"sleep",)"), sleeps, "mpich"),
                  sleeps ? 65536u : built_in);
    }
    // It says what every selector of one host would: the smallest message that ours would run.
    for (const char* family : {"openmpi", "impi", "mpich"})
        for (const bool sleeps : {false, true})
            for (const char* hosts : {"node:1 core:1", "node:1 core:2", "node:1 core:48"}) {
                Selection selection;
                selection.family = family;
                selection.library = "MPICH Version:      5.0.2";
                selection.sleeps = sleeps;
                EXPECT_GE(Selector(Collective::bcast, topology_of(hosts), selection).native_below(),
                          below("", sleeps, family, "MPICH Version:      5.0.2"))
                    << family << ' ' << sleeps << ' ' << hosts;
            }
}

TEST(Decide, ARowOfOneHostMaySpeakOfOneLibraryAndOneWayToWait) {
    Selection selection;
    selection.family = "mpich";
    selection.library = "MPICH Version:      5.0.2";
    selection.table = table_of(
        R"({"family":"mpich","library":"MPICH Version: 5","calls":"blocking","waits":"spin","hosts":[1,1],)"
        R"("ppn":[2,2],"bytes":[262144,null],"choice":"binomial"})");
    std::string why;
    ASSERT_EQ(check_table(selection.table, why), Status::ok) << why;
    const auto taken = [&](const char* hosts, std::uint64_t bytes) {
        const Decision decision = broadcast_at(hosts, bytes, selection);
        return decision.choice && !decision.tried;  // as the built-in row would have it
    };
    EXPECT_FALSE(taken("node:1 core:2", 262143));
    EXPECT_TRUE(taken("node:1 core:2", 262144));
    EXPECT_TRUE(taken("node:1 core:2", std::uint64_t{1} << 32));
    EXPECT_FALSE(taken("node:1 core:3", 1 << 20));
    EXPECT_FALSE(taken("node:1 core:1", 1 << 20));
    selection.sleeps = true;
    EXPECT_FALSE(taken("node:1 core:2", 1 << 20));
    selection.sleeps = false;
    selection.overlapped = true;
    EXPECT_FALSE(taken("node:1 core:2", 1 << 20));
    selection.overlapped = false;
    EXPECT_TRUE(taken("node:1 core:2", 1 << 20));
    selection.library = "MPICH Version:      4.0.2";
    EXPECT_FALSE(taken("node:1 core:2", 1 << 20));
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
        const Decision decision = broadcast_at(hosts, bytes, selection);
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
        const Decision decision = broadcast_at("node:4 core:1", bytes, selection);
        return decision.choice ? to_text(*decision.choice) : "native";
    };
    EXPECT_EQ(text(100), "linear");
    EXPECT_EQ(text(200), "native");
    selection.sleeps = true;
    EXPECT_EQ(smallest_on_one_host(Collective::bcast, selection, 2), ~std::uint64_t{0});
    selection.sleeps = false;
    EXPECT_EQ(smallest_taken(Collective::bcast, selection.table), 100u);
    EXPECT_EQ(smallest_taken(Collective::barrier, ""), ~std::uint64_t{0});
    EXPECT_EQ(smallest_taken(Collective::bcast, selection.table, true), 0u) << "a row without bytes";
    EXPECT_EQ(smallest_taken(Collective::barrier, "", true), 0u);
    EXPECT_EQ(smallest_taken(Collective::bcast, "", true), 4096u);
    EXPECT_EQ(smallest_taken(Collective::alltoallv, "", true), 1024u);
    selection.overlapped = true;
    EXPECT_EQ(text(100), "binomial");
    EXPECT_EQ(text(200), "binomial");
}

TEST(Decide, ATableSpeaksOnlyForItsMachines) {
    Selection selection{Machine::from_options(60, 125e6), "", {}, {}};
    const std::string row = R"({"choice":"linear"})";
    selection.table = table_of(row, R"("latency_us":[10,100],"rate_mbit":[500,2000],)");
    EXPECT_EQ(broadcast_at("node:4 core:1", 1 << 20, selection).reason, "tuning table");
    selection.table = table_of(row, R"("latency_us":[10,100],"rate_mbit":[10000,null],)");
    EXPECT_NE(broadcast_at("node:4 core:1", 1 << 20, selection).reason, "tuning table");
    selection.table = table_of(row, R"("latency_us":[0,10],)");
    EXPECT_NE(broadcast_at("node:4 core:1", 1 << 20, selection).reason, "tuning table");
}

// One picosecond more or less, where a table ends.
TEST(Decide, ATableSpeaksForTheSameMachinesInEveryDirectionOfRounding) {
    Selection selection{Machine::from_options(12.345601, 125e6), "", {}, {}};
    selection.table = table_of(R"({"choice":"linear"})", R"("latency_us":[0,12.3456005],)");
    ASSERT_EQ(broadcast_at("node:4 core:1", 1 << 20, selection).reason, "tuning table");
    const Topology four_hosts = topology_of("node:4 core:1");
    test::in_each_direction([&](int) {
        EXPECT_EQ(decide(Collective::bcast, 1 << 20, four_hosts, selection).reason, "tuning table");
    });
}

// 9999999999999999999, as somebody writes for all of them: doubling a chunk up to what is longer ended in a
// division by 0.
TEST(Table, MaySpeakOfLongerMessagesThanThereAre) {
    for (const Collective collective :
         {Collective::bcast, Collective::allgather, Collective::allreduce, Collective::alltoallv}) {
        Selection selection;
        selection.table = R"({"collective": ")" + std::string(name_of(collective)) +
                          R"(", "rows": [{"bytes": [0, 9999999999999999999], "choice": "native"}]})";
        const Selector selector(collective, topology_of("node:4 core:2"), selection);
        EXPECT_FALSE(selector.decide(1 << 20).choice);
        EXPECT_GT(selector.native_below(), 9999999999999999999u);
    }
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
    EXPECT_NE(fault("{\n\"rows\": [\n{},\n]}").find("; parse error at line 4, column 1: "),
              std::string::npos);
    EXPECT_NE(fault(table_of(R"({"bytes":[1e999,null]})")).find("1e999"), std::string::npos);
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
    EXPECT_NE(
        fault(table_of(R"({"choice":"linear","calls":"blocking","waits":"nap"})")).find("spin or sleep"),
        std::string::npos);
    for (const char* calls : {"", R"("calls":"overlapped",)", R"("calls":"neighbours",)"})
        EXPECT_NE(
            fault(table_of("{" + std::string(calls) + R"("choice":"linear","waits":"spin"})")).find("waits"),
            std::string::npos);
    EXPECT_NE(fault(table_of("7")).find("not an object"), std::string::npos);
}

TEST(Table, RowsOfUnevenMessagesSpeakOfNothingElse) {
    const auto fault = [](const std::string& row, const char* collective = "alltoallv") {
        std::string why;
        const std::string json =
            R"({"collective":")" + std::string(collective) + R"(","rows":[{"calls":"uneven",)" + row + "}]}";
        const Status status = check_table(json, why);
        EXPECT_EQ(status, why.empty() ? Status::ok : Status::invalid_argument) << json;
        return why;
    };
    EXPECT_EQ(fault(R"("bytes":[0,262143],"choice":"spread")"), "");
    EXPECT_EQ(fault(R"("choice":"native")"), "");
    const std::string straight =
        R"(row 1: "calls" must be not uneven but of alltoallv by spread, pairwise, notify or natively)";
    EXPECT_EQ(fault(R"("choice":"node_leader")"), straight);
    EXPECT_EQ(fault(R"("choice":"linear")", "bcast"), straight);
    EXPECT_NE(fault(R"("choice":"spread","waits":"spin")").find("\"waits\""), std::string::npos);
    EXPECT_NE(fault(R"("choice":"spread","tried":true)").find("\"tried\""), std::string::npos);
    EXPECT_NE(fault(R"("choice":"spread","bytes":[9,8])").find("low <= high"), std::string::npos);
    // Of alltoalls whose messages are alike, of neighbours, and of what is looked at, they say nothing.
    Selection selection{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    selection.overlapped = true;
    const Topology topology = topology_of("node:4 core:2");
    const Decision before = decide(Collective::alltoallv, 64 << 10, topology, selection);
    selection.table =
        R"({"collective":"alltoallv","rows":[{"calls":"uneven","choice":"spread:in_flight=1"}]})";
    EXPECT_EQ(decide(Collective::alltoallv, 64 << 10, topology, selection).choice, before.choice);
    EXPECT_EQ(smallest_taken(Collective::alltoallv, selection.table, true), 1024u);
    EXPECT_EQ(smallest_taken(Collective::alltoallv, selection.table),
              smallest_taken(Collective::alltoallv, ""));
    selection.overlapped = false;
    EXPECT_EQ(smallest_on_one_host(Collective::alltoallv, selection, 8),
              smallest_on_one_host(Collective::alltoallv, {Machine{}, "mpich", {}, {}}, 8));
}

TEST(Table, TheBuiltInOnesAreValid) {
    EXPECT_FALSE(built_in_tables().empty());
    for (std::string_view json : built_in_tables()) {
        std::vector<TuningTable> tables;
        std::string why;
        EXPECT_EQ(parse_tables(json, tables, why), Status::ok) << why;
        ASSERT_EQ(tables.size(), 1u);
        const TuningTable& table = tables[0];
        EXPECT_FALSE(table.machine.empty());
        EXPECT_FALSE(table.method.empty());
        if (!table.rows.empty()) {
            EXPECT_FALSE(table.date.empty());
            EXPECT_FALSE(table.commit.empty());
        }
    }
}

// Who asks them again, in MPI_Init and for each communicator, does not read them again.
TEST(Table, TheBuiltInOnesAreReadOnce) {
    const std::vector<TuningTable>& read = built_in_tuning();
    ASSERT_EQ(read.size(), built_in_tables().size());
    for (std::size_t i = 0; i < read.size(); ++i) {
        const std::vector<TuningTable> tables = tables_in(built_in_tables()[i]);
        ASSERT_EQ(tables.size(), 1u);
        EXPECT_EQ(read[i].rows.size(), tables[0].rows.size());
        EXPECT_EQ(read[i].method, tables[0].method);
    }
    EXPECT_EQ(&built_in_tuning(), &read);
}

// Where messages of a host travel together, small ones are worth a plan; between single ranks they are not.
TEST(Decide, SmallPlannedAlltoallsNeedCompany) {
    // From which size on, on hosts of one rank and of two: as measured.
    struct {
        const char* family;
        std::uint64_t alone, together;
    } const cases[] = {{"openmpi", 8192, 4096}, {"mpich", 16384, 6144}, {"impi", 16384, 6144}};
    for (const auto& [family, alone, together] : cases) {
        Selection overlapped{Machine::from_options(60, 11.95e6), family, {}, {}};
        overlapped.overlapped = true;
        const auto choice_at = [&](const char* hosts, std::uint64_t bytes) {
            return decide(Collective::alltoallv, bytes, topology_of(hosts), overlapped).choice.has_value();
        };
        EXPECT_FALSE(choice_at("node:4 core:1", alone - 1)) << family;
        EXPECT_TRUE(choice_at("node:4 core:1", alone)) << family;
        EXPECT_FALSE(choice_at("node:4 core:2", together - 1)) << family;
        EXPECT_TRUE(choice_at("node:4 core:2", together)) << family;
        EXPECT_EQ(Selector(Collective::alltoallv, topology_of("node:4 core:1"), overlapped).native_below(),
                  alone)
            << family;
    }
}

// As measured: up to four ranks of a host, and nothing is known of faster links.
TEST(Decide, LargePlannedAlltoallsTravelInPieces) {
    Selection overlapped{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    overlapped.overlapped = true;
    const auto at = [&](const char* hosts, std::uint64_t bytes) {
        return to_text(*decide(Collective::alltoallv, bytes, topology_of(hosts), overlapped).choice);
    };
    EXPECT_EQ(at("node:4 core:1", 16384), "pairwise:chunk_bytes=8K");
    EXPECT_EQ(at("node:4 core:1", 131071), "pairwise:chunk_bytes=8K");
    EXPECT_EQ(at("node:4 core:1", 131072), "pairwise:chunk_bytes=32K");
    EXPECT_EQ(at("node:8 core:1", 4 << 20), "pairwise:chunk_bytes=32K");
    EXPECT_EQ(at("node:4 core:2", 6144), "pairwise:chunk_bytes=8K");
    EXPECT_EQ(at("node:3 core:3", 131071), "pairwise:chunk_bytes=8K");
    EXPECT_EQ(at("node:3 core:3", 131072), "pairwise:chunk_bytes=32K");
    EXPECT_EQ(at("node:2 core:1", 1 << 20), "spread");
    overlapped.machine = Machine::from_options(2, 12e9);
    EXPECT_EQ(at("node:4 core:1", 1 << 20), "spread");
}

// Blocking calls run over the MPI library's own messages, where whole blocks were faster under Intel MPI, by
// leaders: its own algorithms send twice the bytes between hosts of two ranks.
TEST(Decide, BlockingAllgathersUnderIntelMpiGoInWholeBlocks) {
    Selection selection{Machine::from_options(60, 11.95e6), "impi", {}, {}};
    const auto at = [&](const char* hosts, std::uint64_t bytes) {
        const Decision decision = decide(Collective::allgather, bytes, topology_of(hosts), selection);
        return decision.choice ? to_text(*decision.choice) : "native";
    };
    EXPECT_EQ(at("node:4 core:2", 16384), "node_leader(intra=linear,inter=ring:chunk_bytes=8K)");
    EXPECT_EQ(at("node:4 core:2", 48 << 10), "node_leader(intra=linear,inter=ring)");
    EXPECT_EQ(at("node:4 core:2", 1 << 20), "node_leader(intra=linear,inter=ring)");
    // What something advances meanwhile runs over libucp under all of them.
    selection.overlapped = true;
    EXPECT_EQ(at("node:4 core:2", 1 << 20), "node_leader(intra=linear,inter=ring:chunk_bytes=64K)");
    selection.overlapped = false;
    selection.family = "mpich";
    EXPECT_EQ(at("node:4 core:2", 1 << 20), "node_leader(intra=linear,inter=ring:chunk_bytes=32K)");
}

// Where the libraries' defaults take a multiple of the time of ours. Their own choice is faster below.
TEST(Decide, SomeBlockingCallsAreTakenBelow64KiB) {
    Selection selection{Machine::from_options(60, 11.95e6), "", {}, {}};
    const auto at = [&](Collective collective, const char* family, const char* hosts, std::uint64_t bytes) {
        selection.family = family;
        if (selection.family == "openmpi" && selection.library.empty())
            selection.library = "Open MPI v5.0.11";
        const Decision decision = decide(collective, bytes, topology_of(hosts), selection);
        return decision.choice ? to_text(*decision.choice) : "native";
    };
    const std::string leaders_ring = "node_leader(intra=linear,inter=ring:chunk_bytes=32K)";
    const std::string leaders_in_8K = "node_leader(intra=linear,inter=ring:chunk_bytes=8K)";
    const std::string leaders_chain = "node_leader(intra=linear,inter=chain:chunk_bytes=8K)";
    for (const char* family : {"mpich", "openmpi", "impi"}) {
        const bool open = std::string_view(family) == "openmpi", intel = std::string_view(family) == "impi";
        const std::uint64_t least = open ? 12 << 10 : 2 << 10;
        for (const char* hosts : {"node:4 core:2", "node:3 core:3", "node:2 core:4"}) {
            EXPECT_EQ(at(Collective::allgather, family, hosts, least - 1), "native") << family << hosts;
            EXPECT_EQ(at(Collective::allgather, family, hosts, 16 << 10), leaders_in_8K);
            EXPECT_TRUE(intel || at(Collective::allgather, family, hosts, 64 << 10) == leaders_ring)
                << family;
            const bool coarse = open || (intel && topology_of(hosts).nodes() < 4);
            EXPECT_EQ(at(Collective::allgather, family, hosts, least),
                      coarse ? leaders_in_8K : "node_leader(intra=linear,inter=ring:chunk_bytes=4K)")
                << family << hosts;
            const bool two = topology_of(hosts).nodes() == 2;
            EXPECT_EQ(at(Collective::bcast, family, hosts, 12 << 10), two ? "native" : leaders_chain);
            EXPECT_EQ(at(Collective::bcast, family, hosts, (12 << 10) - 1), "native") << family << hosts;
            const std::string sum = at(Collective::allreduce, family, hosts, 16 << 10);
            EXPECT_EQ(sum.substr(0, leaders_ring.size()), open && !two ? leaders_ring : "native");
        }
        EXPECT_EQ(at(Collective::bcast, family, "node:8 core:1", 65535), "chain:chunk_bytes=8K") << family;
        EXPECT_EQ(at(Collective::bcast, family, "node:4 core:1", 8 << 10),
                  intel ? "chain:chunk_bytes=8K" : "native");
        EXPECT_EQ(at(Collective::bcast, family, "node:4 core:1", 8191), "native") << family;
        EXPECT_EQ(at(Collective::bcast, family, "node:2 core:1", 32 << 10), "native") << family;
        EXPECT_EQ(at(Collective::allgather, family, "node:4 core:1", 8 << 10), "native") << family;
        EXPECT_EQ(at(Collective::allreduce, family, "node:4 core:1", 32 << 10), "native") << family;
    }
    // An older one sums well by itself, and gathers badly.
    selection.library = "Open MPI v4.1.4, package: Debian OpenMPI";
    EXPECT_EQ(at(Collective::allreduce, "openmpi", "node:4 core:2", 16 << 10), "native");
    EXPECT_EQ(at(Collective::allgather, "openmpi", "node:4 core:2", 4 << 10),
              "node_leader(intra=linear,inter=ring:chunk_bytes=4K)");
    EXPECT_EQ(at(Collective::allgather, "openmpi", "node:4 core:2", 4095), "native");
}

}  // namespace
}  // namespace thalweg
