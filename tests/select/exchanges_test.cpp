// How persistent exchanges run, by what their messages are like together.
#include "select/exchanges.h"

#include "algorithms/cases.h"
#include "algorithms/patterns/parcels.h"

namespace thalweg {
namespace {

// `messages` of one size each, of so many ranks; the i-th of them is `times` as large for i below `large`.
// Where a pair has none, some rank is out of step.
Traits traits(int ranks, std::uint64_t messages, std::uint64_t bytes, std::uint64_t large = 0,
              std::uint64_t times = 1) {
    TraitWords words{};
    for (std::uint64_t i = 0; i < messages; ++i) count_message(words, i < large ? times * bytes : bytes);
    count_message(words, 0);
    words[word_by_distance] = messages < static_cast<std::uint64_t>(ranks * (ranks - 1)) ? 1 : 0;
    words[word_in_pairs] = 1;
    return traits_of(words, ranks);
}

// Of ranks all of which are in step.
Traits in_step(int ranks, std::uint64_t messages, std::uint64_t bytes) {
    Traits found = traits(ranks, messages, bytes);
    found.in_step = true;
    return found;
}

Decision of(const char* text) { return {choice_of(text, Collective::alltoallv), "tuning table"}; }

struct Planned {
    std::string algorithm;
    bool in_pairs = false;
    bool operator==(const Planned&) const = default;
};

// `rows`: of uneven messages, in front of the built-in ones.
Planned planned(Decision by_mean, const Traits& what, const char* hosts = "node:4 core:2",
                const std::string& rows = "") {
    Selection selection{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    selection.table = R"({"collective": "alltoallv", "rows": [)" + rows + R"(
        {"calls": "neighbours", "bytes": [0, 1023], "choice": "native"},
        {"calls": "neighbours", "bytes": [1024, 4095], "choice": "notify"},
        {"calls": "neighbours", "bytes": [4096, null], "choice": "pairwise:chunk_bytes=32K"}]})";
    std::string why;
    EXPECT_EQ(check_table(selection.table, why), Status::ok) << why;
    const Topology topology = topology_of(hosts);
    const Selector selector(Collective::alltoallv, topology, selection);
    const NeighbourSelector neighbours(topology, selection);
    const NeighbourSelector* const few = is_sparse(what, topology.size()) ? &neighbours : nullptr;
    const PlannedExchange found = decide_planned(std::move(by_mean), what, selector, few, topology);
    return {found.decision.choice ? to_text(*found.decision.choice) : "native", found.in_pairs};
}

TEST(Exchanges, MeansAreOfPairsAndOfMessages) {
    const Traits few = traits(8, 16, 7000);
    EXPECT_EQ(few.mean_bytes, 2000u);  // 56 pairs
    EXPECT_EQ(few.messages, 16u);
    EXPECT_EQ(few.mean_message_bytes, 7000u);
    EXPECT_DOUBLE_EQ(few.unevenness, 1);
    EXPECT_TRUE(few.sizes_agree);
    EXPECT_TRUE(is_sparse(few, 8));
    EXPECT_FALSE(is_sparse(traits(8, 28, 7000), 8));
    EXPECT_FALSE(is_sparse(traits(8, 0, 0), 8));
    // One in ten is three times as large.
    EXPECT_NEAR(traits(8, 50, 100 << 10, 5, 3).unevenness, even, 0.01);
}

TEST(Exchanges, SparseOnesAreDecidedAsNeighboursAre) {
    // By the mean of their messages, not of all pairs.
    EXPECT_EQ(planned(of("pairwise"), traits(8, 16, 1024)), (Planned{"notify", true}));
    EXPECT_EQ(planned(of("pairwise"), traits(8, 16, 1000)), (Planned{"native", false}));
    // What a table names for so few counts where all pairs would be left to the library; a rule does not.
    const Decision by_size{std::nullopt, "small message"};
    EXPECT_EQ(planned(by_size, traits(8, 16, 1024)), (Planned{"notify", true}));
    EXPECT_EQ(planned(by_size, traits(8, 16, 1000)), (Planned{"native", false}));
    EXPECT_EQ(planned(by_size, traits(8, 28, 1024)), (Planned{"native", false}));
    const Topology hosts = topology_of("node:4 core:2");
    const NeighbourSelector untold(hosts, {Machine::from_options(60, 119.5e6), "", {}, {}});  // no table does
    EXPECT_EQ(decide_sparse(of("spread"), traits(8, 16, 1 << 20), untold).reason, "neighbours");
    EXPECT_EQ(decide_sparse(by_size, traits(8, 16, 1 << 20), untold).reason, "small message");
    // The mean of all pairs, of which most have none, is another matter.
    EXPECT_EQ(deciding_bytes(traits(8, 16, 4096), topology_of("node:4 core:2")), 4096u);
    EXPECT_EQ(deciding_bytes(traits(8, 28, 4096), topology_of("node:4 core:2")), 2048u);
    EXPECT_EQ(deciding_bytes(traits(8, 14, 4096), topology_of("node:1 core:8")), 1024u);
    // Not in rounds, which pairs without a message upset; nor where these are half of all.
    EXPECT_EQ(planned(of("pairwise"), traits(8, 16, 4096)), (Planned{"spread", true}));
    EXPECT_EQ(planned(of("pairwise"), traits(8, 28, 4096)), (Planned{"spread", true}));
    EXPECT_EQ(planned(of("pairwise"), traits(8, 50, 4096)), (Planned{"spread", true}));
    EXPECT_EQ(planned(of("pairwise"), traits(8, 51, 4096)), (Planned{"pairwise", false}));
    EXPECT_EQ(planned(of("notify"), traits(8, 56, 1024)), (Planned{"notify", false}));
    // Leaders are told nothing of them; on one host nobody meets in pairs.
    EXPECT_EQ(planned(of("node_leader"), traits(8, 16, 1024), "node:1 core:8"), (Planned{"spread", false}));
    EXPECT_EQ(planned(of("node_leader"), traits(8, 56, 1024)), (Planned{"node_leader", false}));
}

TEST(Exchanges, StraightOnesMeetInPairsWhereAPairHasNoMessage) {
    // A square of four hosts: of 12 pairs 8 have one.
    EXPECT_EQ(planned(of("spread"), traits(4, 8, 64 << 10), "node:4 core:1"), (Planned{"spread", true}));
    EXPECT_EQ(planned(of("spread"), traits(8, 55, 4096)), (Planned{"spread", true}));
    EXPECT_EQ(planned(of("spread"), traits(8, 56, 4096)), (Planned{"spread", false}));
    EXPECT_EQ(planned(of("spread"), traits(8, 29, 4096), "node:1 core:8"), (Planned{"spread", false}));
    Decision asked = of("spread:in_flight=2");
    asked.reason = "asked for";
    EXPECT_EQ(planned(asked, traits(8, 16, 4096)), (Planned{"spread:in_flight=2", true}));
}

// A shift to the next two of a ring of four, or of eight.
TEST(Exchanges, RanksInStepGoByDistanceAndInRounds) {
    EXPECT_EQ(planned(of("spread"), in_step(4, 8, 192 << 10), "node:4 core:1"), (Planned{"spread", false}));
    EXPECT_EQ(planned(of("pairwise"), in_step(4, 8, 192 << 10), "node:4 core:1"),
              (Planned{"pairwise", false}));
    EXPECT_EQ(planned(of("pairwise"), in_step(8, 16, 1024)), (Planned{"notify", false}));
}

TEST(Exchanges, PairsInStepGoInPieces) {
    Traits square = traits(4, 8, 64 << 10);
    square.in_step_in_pairs = true;
    EXPECT_EQ(planned(of("pairwise:chunk_bytes=32K"), square, "node:4 core:1"),
              (Planned{"pairwise:chunk_bytes=32K", true}));
    EXPECT_EQ(planned(of("pairwise"), square, "node:4 core:1"), (Planned{"spread", true}))
        << "rounds are by distance";
    EXPECT_EQ(planned(of("pairwise:chunk_bytes=32K"), square, "node:1 core:4"), (Planned{"spread", false}));
    square.unevenness = 1.1;
    EXPECT_EQ(planned(of("pairwise:chunk_bytes=32K"), square, "node:4 core:1"), (Planned{"spread", true}));
    Traits cube = traits(8, 24, 64 << 10);
    cube.in_step_in_pairs = true;
    EXPECT_EQ(planned(of("spread"), cube, "node:8 core:1"), (Planned{"pairwise:chunk_bytes=32K", true}));
}

// What all of `ranks` say together; to_each(from, to): whether there is a message.
template <typename ToEach>
Traits all_of(int ranks, ToEach to_each, const Topology& topology = Topology::single_node(1)) {
    TraitWords words{};
    for (int rank = 0; rank < ranks; ++rank) {
        std::vector<Parcel> outgoing, incoming;
        for (int peer = 0; peer < ranks; ++peer) {
            // Of no bytes, and to itself: no messages.
            outgoing.push_back({peer, 0, to_each(rank, peer) || peer == rank ? 8u : 0});
            if (to_each(peer, rank)) incoming.push_back({peer, 0, 8});
        }
        count_exchange(words, outgoing, incoming, rank, ranks, topology);
    }
    return traits_of(words, ranks);
}

TEST(Exchanges, RanksAreInStepWhoseMessagesAreTheSameOfBothEnds) {
    const auto steps = [](int ranks, auto to_each) {
        const Traits found = all_of(ranks, to_each);
        return std::pair(found.in_step, found.in_step_in_pairs);
    };
    const auto apart = [](int a, int b) { return std::abs(a - b); };
    const std::pair by_distance{true, false}, in_pairs{false, true}, neither{false, false}, both{true, true};
    for (const int ranks : {2, 3, 4, 5, 8}) {
        const auto ahead = [=](int from, int to) { return patterns::distance(from, to, ranks); };
        EXPECT_TRUE(steps(ranks, [](int from, int to) { return from != to; }).first) << ranks;
        EXPECT_TRUE(steps(ranks, [=](int from, int to) { return ahead(from, to) == 1; }).first) << ranks;
        const auto two = [=](int from, int to) { return ahead(from, to) == 1 || ahead(from, to) == 2; };
        EXPECT_TRUE(steps(ranks, two).first) << ranks;
    }
    EXPECT_EQ(steps(5, [](int from, int to) { return patterns::distance(from, to, 5) % 3 != 0; }),
              by_distance);
    EXPECT_EQ(steps(4, [=](int a, int b) { return apart(a, b) == 1; }), in_pairs) << "a line";
    EXPECT_EQ(steps(5, [=](int a, int b) { return apart(a, b) == 1; }), neither) << "a line of odd length";
    EXPECT_EQ(steps(4, [](int a, int b) { return (a ^ b) == 1 || (a ^ b) == 2; }), in_pairs) << "a square";
    const auto cube = [](int a, int b) { return (a ^ b) == 1 || (a ^ b) == 2 || (a ^ b) == 4; };
    EXPECT_EQ(steps(8, cube), in_pairs);
    EXPECT_EQ(
        steps(6, [=](int a, int b) { return apart(a, b) == 3 || (apart(a, b) == 1 && a / 3 == b / 3); }),
        neither)
        << "two rows of three";
    EXPECT_EQ(steps(6, [=](int a, int b) { return apart(a, b) == 1 || apart(a, b) == 5; }), both)
        << "a closed line";
    EXPECT_EQ(steps(4, [](int from, int to) { return from == 0 && to != 0; }), neither) << "from one to all";
    EXPECT_EQ(steps(4, [](int, int) { return false; }), both);
}

// Of hosts of several ranks what stays inside does not wait, and hosts meet; of two of them a rank sends
// first to the one in its own place.
TEST(Exchanges, OfHostsWhatLeavesThemIsInStep) {
    const auto steps = [](const char* hosts, auto to_each) {
        const Topology topology = topology_of(hosts);
        const Traits found = all_of(topology.size(), to_each, topology);
        return std::pair(found.in_step, found.in_step_in_pairs);
    };
    const std::pair by_distance{true, false}, in_pairs{false, true}, neither{false, false}, both{true, true};
    const auto cube = [](int a, int b) { return (a ^ b) == 1 || (a ^ b) == 2 || (a ^ b) == 4; };
    EXPECT_EQ(steps("node:4 core:2", cube), in_pairs);
    EXPECT_EQ(steps("node:2 core:4", cube), in_pairs);
    const auto ahead = [](int from, int to, int ranks) { return patterns::distance(from, to, ranks); };
    EXPECT_EQ(steps("node:4 core:2", [=](int a, int b) { return ahead(a, b, 8) % 6 == 1; }), both)
        << "a ring";
    EXPECT_EQ(steps("node:4 core:2", [=](int a, int b) { return a != b && ahead(a, b, 8) <= 3; }),
              by_distance);
    // A row of three hosts of three ranks, one behind the other: the middle one has two to meet.
    const auto grid = [](int a, int b) { return std::abs(a / 3 - b / 3) + std::abs(a % 3 - b % 3) == 1; };
    EXPECT_EQ(steps("node:3 core:3", grid), neither);
    const auto slabs = [](int a, int b) { return a / 4 != b / 4 && a % 2 == b % 2; };
    EXPECT_EQ(steps("node:2 core:4", slabs), in_pairs) << "each to two of the other host";
    const auto box = [](int a, int b) {
        return a != b && std::abs(a / 4 - b / 4) <= 1 && std::abs(a % 4 - b % 4) <= 1;
    };
    EXPECT_EQ(steps("node:4 core:2", box), neither);
}

TEST(Exchanges, RoundsAreForMessagesThatAreAlike) {
    const Traits uneven = traits(8, 56, 100 << 10, 10, 3);
    EXPECT_GT(uneven.unevenness, even);
    EXPECT_EQ(planned(of("pairwise"), uneven), (Planned{"native", false}));
    EXPECT_EQ(planned(of("pairwise"), uneven, "node:8 core:1"), (Planned{"native", false}));
    const Traits smaller = traits(8, 56, 10 << 10, 10, 3);
    EXPECT_EQ(planned(of("pairwise"), smaller), (Planned{"spread", false}));
    const Traits medium = traits(8, 56, 33 << 10, 10, 3);
    EXPECT_EQ(planned(of("pairwise"), medium), (Planned{"native", false}));
    EXPECT_EQ(planned(of("pairwise"), medium, "node:8 core:1"), (Planned{"spread", false}));
    EXPECT_EQ(planned(of("spread:in_flight=2"), uneven), (Planned{"spread:in_flight=2", false}));
    Decision asked = of("pairwise");
    asked.reason = "asked for";
    EXPECT_EQ(planned(asked, uneven), (Planned{"pairwise", false}));
    EXPECT_EQ(planned(asked, traits(8, 16, 1024)), (Planned{"pairwise", false}));
}

// The largest mean that goes straight, and the next, whatever the links are.
TEST(Exchanges, BuiltInRowsSayHowLargeUnevenMessagesGoStraight) {
    Traits what = traits(8, 56, 10 << 10, 10, 3);
    const struct {
        const char* hosts;
        std::uint64_t below;
    } cases[] = {{"node:8 core:1", 48 << 10},
                 {"node:4 core:2", 32 << 10},
                 {"node:1 core:8", 32 << 10},
                 {"node:2 core:4", 32 << 10}};
    for (const Machine& machine :
         {Machine{}, Machine::from_options(60, 11.95e6), Machine::from_options(2, 12e9)})
        for (const auto& [hosts, below] : cases) {
            const Topology topology = topology_of(hosts);
            const Selector selector(Collective::alltoallv, topology, {machine, "openmpi", {}, {}});
            for (const std::uint64_t mean : {std::uint64_t{1}, below - 1, below, std::uint64_t{1} << 40}) {
                what.mean_bytes = mean;
                const PlannedExchange found =
                    decide_planned(of("pairwise"), what, selector, nullptr, topology);
                EXPECT_EQ(found.decision.choice ? to_text(*found.decision.choice) : "native",
                          mean < below ? "spread" : "native")
                    << hosts << ' ' << mean;
                EXPECT_EQ(found.decision.reason, mean < below ? "tuning table" : "messages of uneven sizes");
            }
        }
}

TEST(Exchanges, AUsersTableSaysHowUnevenOnesGo) {
    const Traits uneven = traits(8, 56, 100 << 10, 10, 3), smaller = traits(8, 56, 10 << 10, 10, 3);
    const auto by = [](const Traits& what, const std::string& row, const char* hosts = "node:4 core:2") {
        return planned(of("pairwise:chunk_bytes=8K"), what, hosts, row + ",");
    };
    const std::string straight =
        R"({"calls": "uneven", "bytes": [0, 262144], "choice": "spread:in_flight=2"})";
    EXPECT_EQ(by(uneven, straight), (Planned{"spread:in_flight=2", false}));
    EXPECT_EQ(by(traits(8, 56, 100 << 10), straight), (Planned{"pairwise:chunk_bytes=8K", false}))
        << "even ones";
    EXPECT_EQ(by(smaller, R"({"calls": "uneven", "choice": "native"})"), (Planned{"native", false}));
    EXPECT_EQ(by(smaller, R"({"calls": "uneven", "hosts": [8, 8], "choice": "native"})"),
              (Planned{"spread", false}));
    EXPECT_EQ(by(smaller, R"({"calls": "uneven", "family": "impi", "choice": "native"})"),
              (Planned{"spread", false}));
    // In rounds all the same, unless pairs without a message upset them; one that was asked for stays.
    const std::string rounds = R"({"calls": "uneven", "choice": "pairwise:chunk_bytes=32K"})";
    EXPECT_EQ(by(uneven, rounds), (Planned{"pairwise:chunk_bytes=32K", false}));
    EXPECT_EQ(by(traits(8, 50, 100 << 10, 10, 3), rounds), (Planned{"spread", true}));
    Decision asked = of("pairwise");
    asked.reason = "asked for";
    EXPECT_EQ(planned(asked, uneven, "node:4 core:2", straight + ","), (Planned{"pairwise", false}));
    Traits unlike = uneven;
    unlike.sizes_agree = false;
    EXPECT_EQ(by(unlike, rounds), (Planned{"spread", false}));
}

TEST(Exchanges, NeighboursWhoseMessagesDifferOrWhoAreOutOfStepSendAtOnce) {
    const Topology apart = topology_of("node:5 core:1"), together = topology_of("node:4 core:2");
    Traits what{0, 0, 0, even_neighbours, true, false, true};
    const auto runs = [&what](Decision decision, const Topology& topology) {
        const bool in_pairs = settle_neighbours(decision, what, topology);
        return std::pair(decision.choice ? to_text(*decision.choice) : "native", in_pairs);
    };
    using Runs = std::pair<std::string, bool>;
    EXPECT_EQ(runs(of("pairwise"), apart), Runs("pairwise", true));
    what.unevenness = 1.06;
    EXPECT_EQ(runs(of("pairwise:chunk_bytes=32K"), together), Runs("spread", true));
    EXPECT_EQ(runs(of("notify"), apart), Runs("notify", true));
    EXPECT_EQ(runs({std::nullopt, "tuning table"}, apart), Runs("native", true));
    const Decision asked{choice_of("pairwise", Collective::alltoallv), "asked for"};
    EXPECT_EQ(runs(asked, apart), Runs("pairwise", true));
    what = {0, 0, 0, 1, true, false, false};
    EXPECT_EQ(runs(of("pairwise:chunk_bytes=32K"), apart), Runs("spread", true));
    EXPECT_EQ(runs(of("pairwise"), together), Runs("spread", true));
    EXPECT_EQ(runs(of("pairwise"), topology_of("node:1 core:8")), Runs("pairwise", true)) << "no link";
    EXPECT_EQ(runs(asked, apart), Runs("pairwise", true));
    what.in_step = true;  // a ring of odd length
    EXPECT_EQ(runs(of("pairwise:chunk_bytes=32K"), apart), Runs("pairwise:chunk_bytes=32K", false));
    EXPECT_EQ(runs(of("spread"), apart), Runs("spread", false));
    EXPECT_EQ(runs(of("pairwise"), together), Runs("pairwise", false));
}

TEST(Exchanges, WhatTheEndsDoNotAgreeOnGoesStraight) {
    Traits what = traits(8, 50, 100 << 10, 10, 3);
    what.sizes_agree = false;
    EXPECT_EQ(planned(of("pairwise"), what), (Planned{"spread", true}));
    EXPECT_EQ(planned({std::nullopt, "native is best"}, what), (Planned{"native", false}));
}

}  // namespace
}  // namespace thalweg
