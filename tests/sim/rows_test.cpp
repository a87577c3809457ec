// Rows of the answer: what each column runs, what it is held against, and what hides.
#include "sim/rows.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/text.h"
#include "built_in.h"
#include "select/neighbours.h"
#include "select/pieces.h"
#include "select/select.h"
#include "select/sleeps.h"
#include "sim/app_rows.h"

namespace thalweg::sim {
namespace {

// Broadcasts among four hosts of four ranks.
Request bcasts(std::vector<std::uint64_t> bytes, std::vector<std::string> columns) {
    Request request;
    request.machine = machine_of("dane");
    request.ranks = {16};
    request.per_host = 4;
    request.bytes = std::move(bytes);
    request.mapping = "block";
    request.columns = std::move(columns);
    request.family = "mpich";
    request.most_seconds = 60;
    request.most_memory = std::uint64_t{4} << 30;
    return request;
}

TEST(Rows, AutoIsTheSelectorsChoiceAndNativeItsRule) {
    Request request = bcasts({1024, 16 << 10, 4 << 20}, {"auto", "mpich", "openmpi", "linear"});
    request.overlap = true;
    std::string why;
    int told = 0;
    const std::vector<Row> rows = answer(
        request, [&](const std::string&) { ++told; }, why);
    ASSERT_EQ(rows.size(), 12u);
    EXPECT_EQ(told, 12);
    EXPECT_EQ(rows[0].algorithm, rows[1].algorithm);
    EXPECT_EQ(rows[0].reason, "left to mpich: small message");
    Selection selection;
    selection.machine = request.machine.model();
    selection.family = "mpich";
    selection.overlapped = true;
    count_sleep(selection.machine);
    const Topology topology = mapped(request.machine, "block", 16, 4);
    for (const std::size_t at : {4u, 8u}) {
        const Decision decision = decide(Collective::bcast, rows[at].bytes, topology, selection);
        ASSERT_TRUE(decision.choice) << rows[at].bytes;
        EXPECT_EQ(rows[at].algorithm, to_text(*decision.choice));
        EXPECT_EQ(rows[at].reason, decision.reason);
    }
    EXPECT_EQ(rows[9].algorithm, "scatter_ring");
    EXPECT_LT(rows[8].seconds, rows[9].seconds);
    for (const Row& row : rows) {
        EXPECT_TRUE(row.simulated) << row.column << ": " << row.reason;
        ASSERT_TRUE(row.hidden);
        const std::string line = json_line(request, row);
        EXPECT_NE(line.find("\"collective\":\"bcast\",\"machine\":\"dane\""), std::string::npos) << line;
        EXPECT_EQ(line.find("\"cost\":"), std::string::npos)
            << "a line must be the same every time: " << line;
    }
    // A pipeline has something to do all the time: only an agent hides it.
    EXPECT_GT(rows[8].hidden->by_agent, 75);
    EXPECT_LT(rows[8].hidden->by_caller, 50);
}

// A library's nonblocking operation waits for its caller between its rounds: there Thalweg takes messages
// that it leaves to the library's blocking one.
TEST(Rows, AMediumMessageThatIsLeftWhenBlockingIsTakenWhenOverlapped) {
    Request request = bcasts({8 << 10}, {"auto"});
    std::string why;
    const auto asked = [&] {
        std::vector<Row> rows = answer(
            request, [](const std::string&) {}, why);
        EXPECT_EQ(rows.size(), 1u) << why;
        return rows.empty() ? Row{} : rows[0];
    };
    const Row blocking = asked();
    EXPECT_EQ(blocking.reason, "left to mpich: small message");
    EXPECT_EQ(blocking.family, "mpich");
    EXPECT_FALSE(blocking.hidden);
    request.overlap = true;
    const Row overlapped = asked();
    EXPECT_TRUE(overlapped.reason.starts_with("cost model: ")) << overlapped.reason;
    EXPECT_EQ(overlapped.family, "");
    EXPECT_TRUE(overlapped.hidden);
    EXPECT_TRUE(blocking.simulated && overlapped.simulated);
}

// Two ranks on each of four hosts of the lab, of which tables speak.
Request on_the_lab(std::uint64_t bytes) {
    Request request = bcasts({bytes}, {"auto"});
    request.collective = Collective::alltoallv;
    request.machine = machine_of("lab-100");
    request.ranks = {8};
    request.per_host = 2;
    return request;
}

// Rows for nonblocking calls speak of them (plan/blocking_exchange.h), and so does their limit for small
// ones.
TEST(Rows, BlockingAlltoallsBetweenHostsAreChosenAsNonblockingOnesAre) {
    constexpr std::uint64_t bytes = 128 << 10;
    std::string why;
    const auto quiet = [](const std::string&) {};
    const std::vector<Row> rows = answer(on_the_lab(bytes), quiet, why);
    ASSERT_EQ(rows.size(), 1u) << why;
    EXPECT_EQ(rows[0].algorithm, "pairwise:chunk_bytes=32K");
    EXPECT_EQ(rows[0].reason, "tuning table");
    EXPECT_TRUE(rows[0].simulated);
    Request small = bcasts({4 << 10}, {"auto"});  // no table speaks of dane
    small.collective = Collective::alltoallv;
    const Row between = answer(small, quiet, why)[0];
    EXPECT_TRUE(between.reason.starts_with("cost model: ")) << between.reason;
    // Whoever waits for them sleeps: few rounds count for more than bytes (select/sleeps.h).
    EXPECT_EQ(between.algorithm, "node_leader");
    small.app = "fourier";
    small.bytes = {8 << 10};
    for (const AppRow& column : answer_app(small, quiet, why))
        EXPECT_EQ(column.algorithms, column.native ? "spread:in_flight=32" : "node_leader");
    small.app.clear();
    small.bytes = {4 << 10};
    small.ranks = {4};
    EXPECT_EQ(answer(small, quiet, why)[0].reason, "left to mpich: one host");
    // A program's, of half of what it sends.
    Request program = on_the_lab(2 * bytes);
    program.app = "fourier";
    const std::vector<AppRow> columns = answer_app(program, quiet, why);
    ASSERT_EQ(columns.size(), app_columns) << why;
    for (const AppRow& column : columns)
        EXPECT_EQ(column.algorithms, column.native ? "spread:in_flight=32" : "pairwise:chunk_bytes=32K");
}

// As in a job that has more ranks than cores: rows for ranks that spin do not speak of it.
TEST(Rows, RanksThatShareCoresSleepWhileTheyWait) {
    Request request = bcasts({1 << 20}, {"auto"});
    request.machine = machine_of("lab-100");
    request.family = "openmpi";
    std::string why;
    const auto asked = [&](int ranks) {
        request.ranks = {ranks};
        return answer(
            request, [](const std::string&) {}, why)[0];
    };
    EXPECT_EQ(request.machine.shared_cores, 2u);
    EXPECT_TRUE(asked(2).reason.starts_with("tuning table"));
    EXPECT_EQ(asked(4).reason, "left to openmpi: one host");
    // Nor do they count on hops that are quicker than a sleep.
    const Topology topology = mapped(request.machine, "block", 8, 4);
    const Selection crowded = selection_of(request, Collective::bcast, topology, false);
    EXPECT_TRUE(crowded.sleeps);
    EXPECT_EQ(crowded.machine.inter.latency, sleeping_hop);
    request.machine = machine_of("dane");
    EXPECT_LT(selection_of(request, Collective::bcast, topology, false).machine.inter.latency, sleeping_hop);
}

// As other operations' do; the library's own do not.
TEST(Rows, AProgramsMessagesOfOursGoOverLibucpWhereThatIsAskedFor) {
    Request request = on_the_lab(128 << 10);
    request.app = "fourier";
    std::string why;
    const auto asked = [&] {
        return answer_app(
            request, [](const std::string&) {}, why);
    };
    const std::vector<AppRow> over_mpi = asked();
    request.libucp = true;
    const std::vector<AppRow> over_libucp = asked();
    ASSERT_EQ(over_mpi.size(), app_columns) << why;
    ASSERT_EQ(over_libucp.size(), app_columns) << why;
    for (std::size_t at = 0; at < app_columns; ++at) {
        EXPECT_GT(over_libucp[at].seconds, 0) << over_libucp[at].result.outcome.why;
        EXPECT_EQ(over_libucp[at].seconds == over_mpi[at].seconds, over_mpi[at].native) << at;
        EXPECT_EQ(over_libucp[at].algorithms, over_mpi[at].algorithms) << at;
    }
}

// Of the three axes the last alone has two refined ranks side by side, by this seed: larger faces, which are
// not left to the library.
TEST(Rows, AProgramNamesEachAlgorithmOnce) {
    Request request = on_the_lab(8 << 10);
    request.app = "amr";
    request.seed = 5;
    std::string why;
    for (const AppRow& column : answer_app(
             request, [](const std::string&) {}, why))
        EXPECT_EQ(column.algorithms, column.native ? "spread:in_flight=0" : "spread:in_flight=0; spread");
}

// With receipts a receive stood behind a send that asked the other rank, whose receive stood behind its own.
TEST(Rows, MessagesInTurnHaveNeitherCreditsNorReceipts) {
    Request request = bcasts({4 << 20}, {"ring"});
    request.collective = Collective::allgather;
    request.machine = machine_of("lab-100");
    request.ranks = {2};
    request.per_host = 1;
    request.in_turn = true;
    std::string why;
    const Row row = answer(
        request, [](const std::string&) {}, why)[0];
    EXPECT_TRUE(row.simulated) << row.reason;
}

// As in production, where they are taken in every call of their size or in none.
TEST(Rows, AProgramsSumsOfFloatingPointNumbersAreLeftToTheLibraryWhateverATableSays) {
    Request request = on_the_lab(256 << 10);
    request.app = "cg";
    request.table = R"({"collective": "allreduce", "rows": [{"choice": "rabenseifner"}]})";
    const Topology topology = mapped(request.machine, "block", 8, 2);
    for (const bool overlapped : {false, true}) {
        const Selection selection = selection_of(request, Collective::allreduce, topology, overlapped);
        ASSERT_TRUE(decide(Collective::allreduce, sizeof(double), topology, selection).choice);
    }
    std::string why;
    const std::vector<AppRow> columns = answer_app(
        request, [](const std::string&) {}, why);
    ASSERT_EQ(columns.size(), app_columns) << why;
    for (const AppRow& column : columns) {
        EXPECT_GT(column.seconds, 0) << column.result.outcome.why;
        EXPECT_EQ(column.algorithms.find("rabenseifner"), std::string::npos) << column.algorithms;
    }
}

// As by itself; what it has started it posts as far as it can.
TEST(Rows, AProgramsLibraryFinishesEachExchangeOfABlockingCallBeforeTheNext) {
    Request request = bcasts({4000}, {"mpich"});
    request.collective = Collective::allgather;
    request.machine = machine_of("xc40");
    request.ranks = {12};
    std::string why;
    const auto quiet = [](const std::string&) {};
    const Row gathered = answer(request, quiet, why)[0];
    ASSERT_TRUE(gathered.simulated) << gathered.reason;
    request.app = "cg";
    const std::vector<AppRow> columns = answer_app(request, quiet, why);
    ASSERT_EQ(columns.size(), app_columns) << why;
    const auto waits = [&](std::size_t at) { return columns[at].seconds - columns[at].compute_seconds; };
    EXPECT_GE(waits(0), gathered.seconds);
    EXPECT_LT(waits(1), gathered.seconds);
    // So small a one is left to the library: it is the same.
    EXPECT_EQ(columns[2].algorithms, columns[0].algorithms);
    EXPECT_EQ(waits(2), waits(0));
}

// No credits count its messages, of which some would ask, and no agent advances them.
TEST(Rows, AProgramThatLeavesAllToTheLibraryIsTheLibrarys) {
    Request request = on_the_lab(8'000);
    request.app = "stencil";
    request.ranks = {4};
    request.per_host = 1;
    request.repeat = 12;
    std::string why;
    const std::vector<AppRow> columns = answer_app(
        request, [](const std::string&) {}, why);
    ASSERT_EQ(columns.size(), app_columns) << why;
    for (const AppRow& column : columns) {
        EXPECT_EQ(column.algorithms, columns[0].algorithms);
        EXPECT_GT(column.seconds, 0) << column.result.outcome.why;
        EXPECT_EQ(column.seconds, columns[column.calls == Calls::blocking ? 0 : 1].seconds);
    }
}

// It runs in pieces, each as a message of that size (select/pieces.h).
TEST(Rows, ALargeBroadcastIsChosenAsItsPiecesAre) {
    Request request = bcasts({80 << 20}, {"auto"});
    std::string why;
    const Row row = answer(
        request, [](const std::string&) {}, why)[0];
    Selection selection;
    selection.machine = request.machine.model();
    selection.family = "mpich";
    const std::uint64_t piece = pieces_of(row.bytes).bytes;
    const Decision decision =
        decide(Collective::bcast, piece, mapped(request.machine, "block", 16, 4), selection);
    ASSERT_TRUE(decision.choice);
    EXPECT_EQ(row.algorithm, to_text(*decision.choice));
    EXPECT_EQ(row.reason, decision.reason + ", for each of 3 pieces of up to " + bytes_text(piece));
    EXPECT_EQ(row.bytes, std::uint64_t{80} << 20);
    EXPECT_TRUE(row.simulated);
}

// Credits stand otherwise in each history: what a sample takes is held against itself beside computation.
TEST(Rows, WhatHidesIsOfTheHistoryWhoseTimeItIs) {
    const char* const algorithm = "chain:chunk_bytes=32K";
    Request request = on_the_lab(256 << 10);
    request.collective = Collective::bcast;
    request.columns = {algorithm};
    request.samples = 2;
    request.overlap = true;
    std::string why;
    const Row row = answer(
        request, [](const std::string&) {}, why)[0];
    ASSERT_TRUE(row.hidden) << row.reason;
    ASSERT_EQ(row.samples.size(), 2u);
    const SimMachine machine = request.machine.under("mpich").over_library();
    const Topology topology = mapped(machine, "block", 8, 2);
    Point point = point_of(Collective::bcast, algorithm);
    point.bytes = row.bytes;
    point.options.credits = true;
    const auto in_history = [&](std::uint64_t number) {
        point.options.history = request.seed << 16 | number;
        return simulate(point, topology, machine).outcome;
    };
    const std::uint64_t least = in_history(1).seconds <= in_history(2).seconds ? 1 : 2;
    const Outcome alone = in_history(least);
    EXPECT_EQ(alone.seconds, row.seconds);
    EXPECT_EQ(alone.mean_seconds, row.result.outcome.mean_seconds);
    point.options.compute_by_rank = alone.by_rank;
    EXPECT_EQ(in_history(least).mean_seconds, row.hidden->total_by_caller);
    point.options.progress = Progress::agent;
    EXPECT_EQ(in_history(least).mean_seconds, row.hidden->total_by_agent);
}

TEST(Rows, WhatTheModelCannotCountHasNoTimeByIt) {
    EXPECT_EQ((Level{0, 1}.transfer(~std::uint64_t{0})), longest_counted);
    // A TiB takes a link 25 days, and the root has many to send.
    Request request = bcasts({std::uint64_t{1} << 40}, {"linear"});
    request.machine.link_rate = request.machine.flow_rate = 5e5;
    request.most_memory = 1;
    std::string why;
    const Row row = answer(
        request, [](const std::string&) {}, why)[0];
    EXPECT_TRUE(row.result.given_up);
    EXPECT_GT(row.limit_seconds, 2e6);
    EXPECT_LT(row.limit_seconds, 3e6);
    EXPECT_EQ(row.predicted_seconds, 0);
    EXPECT_EQ(row.seconds, 0);
    EXPECT_EQ(row.reason, "takes more than 0 MiB; longer than the cost model can count, 53 days");
}

// What was given up took no time, and hides nothing.
TEST(Rows, WhatHidesIsOfOperationsThatWereSimulated) {
    Outcome by_caller, by_agent;
    by_caller.mean_seconds = 3.5;
    by_agent.mean_seconds = 2.5;
    const std::optional<Hidden> hidden = hidden_behind(2, by_caller, by_agent);
    ASSERT_TRUE(hidden);
    EXPECT_DOUBLE_EQ(hidden->by_caller, 25);
    EXPECT_DOUBLE_EQ(hidden->by_agent, 75);
    EXPECT_DOUBLE_EQ(hidden->total_by_caller + hidden->total_by_agent, 6);
    by_agent = {};
    by_agent.why = "takes more than 1 s of a processor";
    EXPECT_FALSE(hidden_behind(2, by_caller, by_agent));
    EXPECT_FALSE(hidden_behind(2, by_agent, by_caller));
}

// Small faces between a few hosts are left to the library, by the table that production reads.
TEST(Rows, AutoOfFacesIsTheNeighbourSelectorsChoice) {
    Request request;
    request.halo = true;
    request.collective = Collective::alltoallv;
    request.machine = machine_of("lab-100");
    request.ranks = {4};
    request.per_host = 1;
    request.cells = {"16x8x8", "16x256x512"};
    request.grid.ranks = "4x1x1";
    request.mapping = "block";
    request.columns = {"auto", "pairwise:chunk_bytes=32K", "openmpi"};
    request.family = "mpich";
    request.most_seconds = 60;
    request.most_memory = std::uint64_t{4} << 30;
    std::string why;
    const std::vector<Row> rows = answer(
        request, [](const std::string&) {}, why);
    ASSERT_EQ(rows.size(), 6u) << why;
    Selection selection;
    selection.machine = request.machine.model();
    selection.family = "mpich";
    const NeighbourSelector selector(mapped(request.machine, "block", 4, 1), selection);
    EXPECT_FALSE(selector.decide(8 * 8 * 8).choice);
    EXPECT_EQ(rows[0].algorithm, "spread:in_flight=0");
    EXPECT_EQ(rows[0].reason, "left to mpich: tuning table");
    ASSERT_TRUE(selector.decide(1 << 20).choice);
    EXPECT_EQ(rows[3].algorithm, to_text(*selector.decide(1 << 20).choice));
    EXPECT_EQ(rows[3].bytes, std::uint64_t{1} << 20);
    EXPECT_EQ(rows[3].seconds, rows[4].seconds);
    for (const Row& row : rows) EXPECT_TRUE(row.simulated) << row.column << ": " << row.reason;
    EXPECT_NE(json_line(request, rows[3]).find("\"cells\":[16,256,512]"), std::string::npos);
    // A library without a model of its defaults has none of what is left to it.
    request.family = "impi";
    request.columns = {"auto"};
    const Row left = answer(
        request, [](const std::string&) {}, why)[0];
    EXPECT_FALSE(left.simulated);
    EXPECT_EQ(left.reason, "left to impi: tuning table; no model of this native operation");
}

}  // namespace
}  // namespace thalweg::sim
