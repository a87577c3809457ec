// How persistent exchanges run, by what their messages are like together.
#include "select/exchanges.h"

#include "algorithms/cases.h"

namespace thalweg {
namespace {

// `messages` of one size each, of so many ranks; the i-th of them is `times` as large for i below `large`.
// Where a pair has none, some rank is out of step.
Traits traits(int ranks, std::uint64_t messages, std::uint64_t bytes, std::uint64_t large = 0,
              std::uint64_t times = 1) {
    TraitWords words{};
    for (std::uint64_t i = 0; i < messages; ++i) count_message(words, i < large ? times * bytes : bytes);
    count_message(words, 0);
    words[word_out_of_step] = messages < static_cast<std::uint64_t>(ranks * (ranks - 1)) ? 1 : 0;
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

Planned planned(Decision by_mean, const Traits& what, const char* hosts = "node:4 core:2") {
    Selection selection{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    selection.table = R"({"collective": "alltoallv", "rows": [
        {"calls": "neighbours", "bytes": [0, 1023], "choice": "native"},
        {"calls": "neighbours", "bytes": [1024, 4095], "choice": "notify"},
        {"calls": "neighbours", "bytes": [4096, null], "choice": "pairwise:chunk_bytes=32K"}]})";
    const Topology topology = topology_of(hosts);
    const NeighbourSelector neighbours(topology, selection);
    const NeighbourSelector* const few = is_sparse(what, topology.size()) ? &neighbours : nullptr;
    const PlannedExchange found = decide_planned(std::move(by_mean), what, few, topology);
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
    // Whatever the mean of all pairs, of which most have none, would be left to.
    const Decision none{std::nullopt, "small message"};
    EXPECT_EQ(planned(none, traits(8, 16, 4096)), (Planned{"spread", true}));
    EXPECT_EQ(planned(none, traits(8, 16, 4096), "node:1 core:8"), (Planned{"native", false}));
    EXPECT_EQ(planned(none, traits(8, 28, 4096)), (Planned{"native", false}));
    EXPECT_EQ(planned({std::nullopt, "asked for, but it needs leaders"}, traits(8, 16, 4096)),
              (Planned{"native", false}));
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

TEST(Exchanges, RanksAreInStepThatReceiveAtTheDistancesAtWhichTheySend) {
    using Parcels = std::vector<Parcel>;
    const auto is_in_step = [](const Parcels& outgoing, const Parcels& incoming) {
        return thalweg::is_in_step(outgoing, incoming, 2, 4);
    };
    EXPECT_TRUE(is_in_step({{3, 0, 8}, {0, 8, 16}}, {{0, 0, 4}, {1, 4, 4}})) << "a shift, of any sizes";
    EXPECT_TRUE(is_in_step({{1, 0, 8}, {3, 8, 16}}, {{1, 0, 4}, {3, 4, 4}})) << "both ways along a ring";
    EXPECT_TRUE(is_in_step({{0, 0, 8}, {1, 0, 0}}, {{0, 0, 4}, {2, 4, 4}, {3, 8, 0}}))
        << "no bytes are no message, and one to itself meets nobody";
    EXPECT_TRUE(is_in_step({}, {}));
    EXPECT_FALSE(is_in_step({{0, 0, 8}, {3, 8, 8}}, {{0, 0, 8}, {3, 8, 8}})) << "a square";
    EXPECT_FALSE(is_in_step({{1, 0, 8}}, {{1, 0, 8}})) << "the end of a line";
    EXPECT_FALSE(is_in_step({{3, 0, 8}}, {{3, 0, 8}}));
    EXPECT_FALSE(is_in_step({{3, 0, 8}}, {}));
    EXPECT_FALSE(is_in_step({}, {{1, 0, 8}}));
}

TEST(Exchanges, RoundsAreForMessagesThatAreAlike) {
    const Traits uneven = traits(8, 56, 100 << 10, 10, 3);
    EXPECT_GT(uneven.unevenness, even);
    EXPECT_EQ(planned(of("pairwise"), uneven), (Planned{"native", false}));
    EXPECT_EQ(planned(of("spread:in_flight=2"), uneven), (Planned{"spread:in_flight=2", false}));
    Decision asked = of("pairwise");
    asked.reason = "asked for";
    EXPECT_EQ(planned(asked, uneven), (Planned{"pairwise", false}));
    EXPECT_EQ(planned(asked, traits(8, 16, 1024)), (Planned{"pairwise", false}));
}

TEST(Exchanges, NeighboursWhoseMessagesDifferSendAtOnce) {
    const auto runs = [](Decision decision, double unevenness) {
        at_once_if_uneven(decision, unevenness);
        return decision.choice ? to_text(*decision.choice) : "native";
    };
    EXPECT_EQ(runs(of("pairwise"), even_neighbours), "pairwise");
    EXPECT_EQ(runs(of("pairwise:chunk_bytes=32K"), 1.06), "spread");
    EXPECT_EQ(runs(of("notify"), 2), "notify");
    EXPECT_EQ(runs({std::nullopt, "tuning table"}, 2), "native");
    EXPECT_EQ(runs({choice_of("pairwise", Collective::alltoallv), "asked for"}, 2), "pairwise");
}

TEST(Exchanges, WhatTheEndsDoNotAgreeOnGoesStraight) {
    Traits what = traits(8, 50, 100 << 10, 10, 3);
    what.sizes_agree = false;
    EXPECT_EQ(planned(of("pairwise"), what), (Planned{"spread", true}));
    EXPECT_EQ(planned({std::nullopt, "native is best"}, what), (Planned{"native", false}));
}

}  // namespace
}  // namespace thalweg
