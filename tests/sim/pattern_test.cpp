// Alltoallvs whose pairs differ on the built-in machines: their messages, their limit, and what Thalweg
// chooses.
#include "sim/pattern.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "built_in.h"
#include "common/patterns.h"
#include "cpu_time.h"
#include "sim/point.h"
#include "sim/rows.h"

namespace thalweg::sim {
namespace {

constexpr const char* names[] = {"dense", "uniform", "powerlaw", "banded", "block", "one_to_many"};

std::shared_ptr<const Pattern> pattern_of(const std::string& name, int ranks, std::uint64_t bytes,
                                          const Topology& topology = Topology::single_node(1)) {
    auto pattern = std::make_shared<Pattern>();
    pattern->ranks = ranks;
    std::string why;
    EXPECT_TRUE(apps::make_pattern(name, ranks, bytes, pattern->matrix, why)) << why;
    look_at(*pattern, topology);
    return pattern;
}

TEST(Pattern, BothEndsOfAMessageGiveItTheSameBytes) {
    for (const char* name : names)
        for (const int ranks : {1, 2, 7, 8})
            for (const bool all_travel : {false, true}) {
                const auto pattern = pattern_of(name, ranks, 1000);
                std::size_t sent = 0, received = 0;
                for (int rank = 0; rank < ranks; ++rank) {
                    const Exchange own = exchange_of(*pattern, rank, all_travel);
                    sent += own.outgoing.size();
                    received += own.incoming.size();
                    std::uint64_t offset = 0;
                    for (const Parcel& out : own.outgoing) {
                        EXPECT_EQ(out.bytes, pattern->bytes(rank, out.peer));
                        EXPECT_EQ(out.offset, offset);
                        offset += out.bytes;
                    }
                    for (const Parcel& in : own.incoming) EXPECT_EQ(in.bytes, pattern->bytes(in.peer, rank));
                }
                EXPECT_EQ(sent, received) << name << ", " << ranks;
                const auto all = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks - 1);
                if (all_travel) EXPECT_GE(sent, all) << name << ", " << ranks;
            }
}

// By every algorithm, on hosts of which one is ragged, what crosses them is what the matrix says.
TEST(Pattern, EveryAlgorithmCarriesWhatTheMatrixSays) {
    const SimMachine machine = machine_of("lab-100");
    for (const char* mapping : {"block", "cyclic", "ragged"}) {
        const Topology topology = mapped(machine, mapping, 7, 2);
        for (const char* name : names) {
            const auto pattern = pattern_of(name, 7, 3000);
            std::uint64_t crossing = 0;
            for (int from = 0; from < 7; ++from)
                for (int to = 0; to < 7; ++to)
                    if (topology.node_of(from) != topology.node_of(to)) crossing += pattern->bytes(from, to);
            for (const char* algorithm :
                 {"spread", "spread:in_flight=2", "pairwise", "pairwise:chunk_bytes=1K", "node_leader"}) {
                Point point = point_of(Collective::alltoallv, algorithm);
                point.pattern = pattern;
                const Outcome outcome = simulate(point, topology, machine).outcome;
                EXPECT_EQ(outcome.why, "") << mapping << ", " << name << ", " << algorithm;
                EXPECT_EQ(outcome.inter_bytes, crossing) << mapping << ", " << name << ", " << algorithm;
            }
        }
    }
}

TEST(Pattern, LeadersKnowWhatCrossesInAscendingOrder) {
    const SimMachine machine = machine_of("lab-100");
    for (const char* mapping : {"block", "cyclic", "ragged"}) {
        const Topology topology = mapped(machine, mapping, 7, 2);
        const auto pattern = pattern_of("banded", 7, 3000);
        for (int rank = 0; rank < 7; ++rank) {
            const int host = topology.node_of(rank);
            std::vector<Traffic> expected;
            for (int from = 0; from < 7 && topology.ranks_on(host).front() == rank; ++from)
                for (int to = 0; to < 7; ++to)
                    if ((topology.node_of(from) == host) != (topology.node_of(to) == host) &&
                        pattern->bytes(from, to) != 0)
                        expected.push_back({from, to, pattern->bytes(from, to)});
            Exchange own;
            inform_leader(*pattern, rank, topology, own);
            EXPECT_EQ(own.crossing, expected) << mapping << ", rank " << rank;
            EXPECT_TRUE(own.hosts_informed);
        }
    }
}

// Every leader looked at the pairs of all ranks: of 2048 hosts of one rank each at four million of them.
TEST(Pattern, LeadersLookAtTheirHostsPairsAlone) {
    constexpr int ranks = 2048;
    const std::vector<std::uint64_t> keys = [] {
        std::vector<std::uint64_t> each(ranks);
        std::iota(each.begin(), each.end(), std::uint64_t{0});
        return each;
    }();
    const Topology topology = Topology::from_table(keys);
    Pattern pattern;
    pattern.ranks = ranks;
    pattern.matrix.resize(std::size_t{ranks} * ranks);
    const double begin = test::thread_cpu_seconds();
    for (int rank = 0; rank < ranks; ++rank) {
        Exchange own;
        inform_leader(pattern, rank, topology, own);
        ASSERT_TRUE(own.crossing.empty());
    }
    EXPECT_LT(test::thread_cpu_seconds() - begin, 3);
}

TEST(Pattern, TheLimitIsTheBusiestHostsLink) {
    const SimMachine machine = machine_of("lab-100");
    const Topology topology = mapped(machine, "block", 8, 2);
    const double one = (1 << 20) / machine.link_rate;
    EXPECT_NEAR(pattern_limit(topology, *pattern_of("one_to_many", 8, 1 << 20), machine),
                6 * one + machine.inter_latency, 1e-9);
    EXPECT_NEAR(pattern_limit(topology, *pattern_of("banded", 8, 1 << 20), machine),
                2 * one + machine.inter_latency, 1e-9);  // a host in the middle
    EXPECT_EQ(pattern_limit(mapped(machine, "block", 4, 4), *pattern_of("dense", 4, 1 << 20), machine), 0);
    Point point = point_of(Collective::alltoallv, "spread");
    point.pattern = pattern_of("one_to_many", 8, 1 << 20);
    const double took = simulate(point, topology, machine).outcome.seconds;
    EXPECT_GT(took, 6 * one - machine.burst_bytes / machine.link_rate);
    EXPECT_LT(took, 6.6 * one);
}

// Between all pairs alike a pattern is no other exchange than without one.
TEST(Pattern, DenseIsAllPairsAlike) {
    const SimMachine machine = machine_of("dane");
    const Topology topology = mapped(machine, "block", 12, 4);
    Point alike = point_of(Collective::alltoallv, "spread"), pattern = alike;
    alike.bytes = 64 << 10;
    pattern.pattern = pattern_of("dense", 12, 64 << 10);
    EXPECT_EQ(simulate(alike, topology, machine).outcome.seconds,
              simulate(pattern, topology, machine).outcome.seconds);
}

// Rounds of a library go on where there is nothing to send.
TEST(Pattern, RoundsOfALibraryHaveMessagesOfNoBytes) {
    const SimMachine machine = machine_of("lab-100");
    const Topology topology = mapped(machine, "block", 8, 2);
    Point point = point_of(Collective::alltoallv, "pairwise");
    point.pattern = pattern_of("banded", 8, 1000);
    EXPECT_EQ(simulate(point, topology, machine).outcome.steps, 2 * 14u);
    point.native = true;
    const Outcome outcome = simulate(point, topology, machine).outcome;
    EXPECT_EQ(outcome.why, "");
    EXPECT_EQ(outcome.steps, 2 * 56u);
    EXPECT_EQ(outcome.bytes, 14 * 1000u);
}

TEST(Pattern, AutoIsWhatAPlanWouldBe) {
    Request request;
    request.collective = Collective::alltoallv;
    request.machine = machine_of("lab-100");
    request.ranks = {8};
    request.per_host = 2;
    request.bytes = {64 << 10};
    request.mapping = "block";
    request.columns = {"auto"};
    request.family = "mpich";
    request.most_seconds = 60;
    request.most_memory = std::uint64_t{4} << 30;
    const Topology topology = mapped(request.machine, "block", 8, 2);
    const Selection selection = selection_of(request, Collective::alltoallv, topology, false);
    const auto row_of = [&](const char* name) {
        request.pattern = name;
        std::string why;
        const std::vector<Row> rows = answer(
            request, [](const std::string&) {}, why);
        EXPECT_EQ(rows.size(), 1u) << why;
        EXPECT_TRUE(rows.front().simulated) << rows.front().reason;
        return rows.front();
    };
    // Few messages: as neighbours, of which each is as large.
    const Decision neighbours = NeighbourSelector(topology, selection).decide(64 << 10);
    ASSERT_TRUE(neighbours.choice);
    EXPECT_EQ(row_of("banded").algorithm, to_text(*neighbours.choice));
    // A message with every pair, nearly alike: as between all pairs.
    const Decision all = decide(Collective::alltoallv, 64 << 10, topology, selection);
    ASSERT_TRUE(all.choice);
    EXPECT_EQ(row_of("dense").algorithm, to_text(*all.choice));
    // Rounds are for messages that are alike.
    ASSERT_EQ(all.choice->algorithm->name, "pairwise");
    EXPECT_EQ(row_of("powerlaw").reason, "left to mpich: messages of uneven sizes");
}

TEST(Pattern, WhatNoRankHasRoomForIsRefused) {
    EXPECT_EQ(refuse(*pattern_of("dense", 4, 1 << 20), 4 << 20), "");
    EXPECT_EQ(refuse(*pattern_of("one_to_many", 4, std::uint64_t{1} << 39), std::uint64_t{1} << 40),
              "rank 0 has more than 1 TiB to send or to receive");
    EXPECT_EQ(refuse(*pattern_of("dense", 2, ~std::uint64_t{0}), std::uint64_t{1} << 40),
              "rank 0 has more than 1 TiB to send or to receive");
}

}  // namespace
}  // namespace thalweg::sim
