// Every alltoallv: pairs that are all alike, random sparse ones, several messages of a pair; proved, compared
// with its claim and run by the oracle.
#include "algorithms/exchanges.h"
#include "algorithms/patterns/parcels.h"

namespace thalweg {
namespace {

std::vector<Choice> choices() {
    std::vector<Choice> all = flat_choices(Collective::alltoallv);
    std::erase_if(all, [](const Choice& choice) { return choice.algorithm->name == "node_leader"; });
    return all;
}

class Alltoallv : public testing::TestWithParam<Choice> {};

TEST_P(Alltoallv, EqualPairsOfUpTo40Ranks) {
    for (int p = 1; p <= 40; ++p)
        for (std::uint64_t bytes : {0, 1, 7}) {
            Problem problem;
            problem.size = p;
            problem.bytes = bytes;
            check(GetParam(), problem, Topology::single_node(p), p % 4 == 0 ? 1 : 0);
            if (HasFatalFailure()) return;
        }
}

TEST_P(Alltoallv, RandomSparsePairsOfUpTo40Ranks) {
    oracle::Random random(4);
    for (int p = 1; p <= 40; ++p)
        for (std::uint64_t sparse : {1, 3, 12}) {
            Group group(p, 8);
            randomise(group, random, sparse, p % 3 == 0 ? 3 : 1, 17);
            check_group(GetParam(), group, random_topology(random, p), p % 2);
            if (HasFatalFailure()) return;
        }
}

// Of neighbourhoods, whose edges of no bytes are messages as well.
TEST_P(Alltoallv, SparsePairsWithMessagesOfNoBytes) {
    oracle::Random random(6);
    for (int p = 1; p <= 24; ++p) {
        Group group(p, 8);
        randomise(group, random, 3, 3, 17);
        for (Exchange& exchange : group.exchanges) {
            exchange.empty_travel = true;
            exchange.in_pairs = p % 3 != 0;
        }
        place_empty(group);
        check_group(GetParam(), group, random_topology(random, p), p % 2);
        if (HasFatalFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(Choices, Alltoallv, testing::ValuesIn(choices()),
                         [](const auto& info) { return test_name(info.param); });

// One rank's part of two that send each other 8 bytes, as notify has it, but for what `damage` says.
enum class Damage { none, put_waits_for_nothing, arrival_is_no_arrival, nobody_is_told };
Schedule signalled(int rank, Damage damage) {
    Builder builder(rank, 2);
    const int peer = 1 - rank;
    const StepId heard = builder.recv(peer, {Buffer::out, 0, 0}),
                 told = builder.send(peer, {Buffer::in, 0, 0});
    const bool hit = rank == 0;
    const std::span<const StepId> nothing;
    builder.put(peer, {Buffer::in, 0, 8},
                hit && damage == Damage::put_waits_for_nothing ? nothing : std::span(&heard, 1));
    if (hit && damage == Damage::arrival_is_no_arrival)
        builder.recv(peer, {Buffer::out, 0, 8}, {&told, 1});
    else
        builder.arrival(peer, {Buffer::out, 0, 8},
                        hit && damage == Damage::nobody_is_told ? nothing : std::span(&told, 1));
    return std::move(builder).finish();
}

TEST(AlltoallvPuts, NobodyWritesBeforeTheReceiverIsReady) {
    Group group(2, 8);
    for (int rank = 0; rank < 2; ++rank) {
        group.of(rank).outgoing = {{1 - rank, 0, 8}};
        group.of(rank).incoming = {{1 - rank, 0, 8}};
    }
    const auto why = [&](Damage damage) {
        const std::vector<Schedule> schedules = {signalled(0, damage), signalled(1, damage)};
        return validate(schedules, oracle::contracts_for(Collective::alltoallv, group.problems)).why;
    };
    EXPECT_EQ(why(Damage::none), "");
    EXPECT_NE(why(Damage::put_waits_for_nothing).find("before its receiver is ready"), std::string::npos);
    EXPECT_NE(why(Damage::nobody_is_told).find("before its receiver is ready"), std::string::npos);
    EXPECT_NE(why(Damage::arrival_is_no_arrival).find("direct at one end only"), std::string::npos);
}

TEST(AlltoallvSteps, FollowTheRealNeighbours) {
    const int p = 100000;
    Exchange exchange;
    for (int peer : {3, 70000}) {
        exchange.outgoing.push_back({peer, 0, 8});
        exchange.incoming.push_back({peer, 8 * exchange.incoming.size(), 8});
    }
    Problem problem;
    problem.rank = 11;
    problem.size = p;
    problem.bytes = 1;
    problem.exchange = &exchange;
    for (const char* name : {"spread", "pairwise"})
        EXPECT_EQ(build(choice_of(name, Collective::alltoallv), problem, Topology{}).steps().size(), 4u);
    EXPECT_EQ(build(choice_of("notify", Collective::alltoallv), problem, Topology{}).steps().size(), 8u);
}

// Steps are posted in their order: what crosses hosts, sends and receives, then what stays on the host.
TEST(AlltoallvSpread, PostsWhatCrossesHostsFirst) {
    oracle::Random random(9);
    int mixed = 0;
    for (int p = 3; p <= 24; ++p) {
        const Topology topology = random_topology(random, p);
        for (const char* name : {"spread", "spread:in_flight=2"}) {
            Group group(p, 8);
            randomise(group, random, 3, 2, 17);
            for (Exchange& exchange : group.exchanges) exchange.in_pairs = p % 2 == 0;
            for (const Problem& problem : group.problems) {
                const Schedule schedule = build(choice_of(name, Collective::alltoallv), problem, topology);
                bool any_stays = false, any_crosses = false;
                for (const Step& step : schedule.steps()) {
                    const bool crosses = step.kind != StepKind::copy &&
                                         topology.node_of(step.peer) != topology.node_of(problem.rank);
                    ASSERT_FALSE(crosses && any_stays)
                        << name << " on " << topology.to_text() << ", rank " << problem.rank;
                    (crosses ? any_crosses : any_stays) = true;
                }
                mixed += any_stays && any_crosses;
            }
        }
    }
    EXPECT_GT(mixed, 100);
}

// What one end has as no bytes and the other has not does not come to lie in the place of the next.
TEST(AlltoallvEdges, OfNoBytesKeepTheirPlacesAmongThoseOfAPair) {
    Exchange exchange;
    exchange.empty_travel = true;
    exchange.outgoing = {{1, 0, 0}, {1, 0, 5}, {0, 8, 0}, {0, 8, 3}, {0, 8, 2}};
    exchange.incoming = {{1, 0, 4}, {1, 4, 0}, {0, 8, 4}, {0, 16, 4}, {0, 24, 0}};
    Problem problem;
    problem.size = 2;
    problem.exchange = &exchange;
    for (const char* name : {"spread", "pairwise"}) {
        SCOPED_TRACE(name);
        const Schedule schedule = build(choice_of(name, Collective::alltoallv), problem, Topology{});
        std::vector<std::uint64_t> sent, received, copied;
        for (const Step& step : schedule.steps()) {
            if (step.kind == StepKind::send) sent.push_back(step.source.bytes);
            if (step.kind == StepKind::recv) received.push_back(step.target.bytes);
            if (step.kind != StepKind::copy) continue;
            EXPECT_EQ(step.target, (Slice{Buffer::out, 16, 3}));
            copied.push_back(step.source.bytes);
        }
        EXPECT_EQ(sent, (std::vector<std::uint64_t>{0, 5}));
        EXPECT_EQ(received, (std::vector<std::uint64_t>{4, 0}));
        EXPECT_EQ(copied, (std::vector<std::uint64_t>{3}));
    }
    const patterns::OwnMisfit misfit = patterns::own_misfit(exchange, 0);
    EXPECT_TRUE(misfit.truncated);
    EXPECT_EQ(misfit.gaps, (std::vector<Slice>{{Buffer::out, 8, 4}, {Buffer::out, 19, 1}}));
}

// In pieces a rank is at most `ahead` of them further with its sends than with its receives, and no receive
// is later than twice that.
TEST(AlltoallvPairwise, PiecesFlowFromRoundToRound) {
    Problem problem;
    problem.rank = 2;
    problem.size = 4;
    problem.bytes = 100;
    const Choice choice = choice_of("pairwise:chunk_bytes=40:ahead=2", Collective::alltoallv);
    const Schedule schedule = build(choice, problem, Topology{});
    std::vector<StepId> sends, receives;
    std::vector<std::uint64_t> bytes;
    for (StepId id = 0; id < schedule.steps().size(); ++id) {
        const Step& step = schedule.steps()[id];
        if (step.kind == StepKind::recv) receives.push_back(id);
        if (step.kind != StepKind::send) continue;
        sends.push_back(id);
        bytes.push_back(step.source.bytes);
        EXPECT_EQ(step.peer, static_cast<int>(2 + (sends.size() - 1) / 3 + 1) % 4);
    }
    EXPECT_EQ(bytes, (std::vector<std::uint64_t>{40, 40, 20, 40, 40, 20, 40, 40, 20}));
    ASSERT_EQ(receives.size(), 9u);
    const auto waits_for = [&](StepId step) {
        const auto after = schedule.after(step);
        return std::vector<StepId>(after.begin(), after.end());
    };
    for (std::size_t i = 0; i < sends.size(); ++i) {
        std::vector<StepId> wanted;
        if (i >= 2) wanted = {sends[i - 2], receives[i - 2]};
        std::sort(wanted.begin(), wanted.end());
        std::vector<StepId> found = waits_for(sends[i]);
        std::sort(found.begin(), found.end());
        EXPECT_EQ(found, wanted) << "send " << i;
        EXPECT_EQ(waits_for(receives[i]),
                  i >= 4 ? std::vector<StepId>{receives[i - 4]} : std::vector<StepId>{});
    }
    EXPECT_EQ(claim(choice, problem, Topology{}).rounds, 5u);
}

// Of neighbours only what leaves the host is cut; inside it nothing waits for the wire.
TEST(AlltoallvPairwise, WhatStaysOnAHostIsWholeAndWaitsForNobody) {
    Exchange exchange;
    for (const int peer : {1, 2, 3}) {
        exchange.outgoing.push_back({peer, 100 * static_cast<std::uint64_t>(peer), 100});
        exchange.incoming.push_back({peer, 100 * static_cast<std::uint64_t>(peer), 100});
    }
    exchange.sizes_agree = true;
    exchange.in_pairs = true;
    Problem problem;
    problem.size = 4;
    problem.exchange = &exchange;
    const Topology topology = topology_of("node:2 core:2");
    const Choice choice = choice_of("pairwise:chunk_bytes=40:ahead=1", Collective::alltoallv);
    const Schedule schedule = build(choice, problem, topology);
    std::size_t whole = 0, pieces = 0;
    for (StepId id = 0; id < schedule.steps().size(); ++id) {
        const Step& step = schedule.steps()[id];
        const std::uint64_t bytes = step.kind == StepKind::send ? step.source.bytes : step.target.bytes;
        if (step.peer != 1) {
            EXPECT_LE(bytes, 40u);
            ++pieces;
            continue;
        }
        EXPECT_EQ(bytes, 100u);
        EXPECT_TRUE(schedule.after(id).empty());
        ++whole;
    }
    EXPECT_EQ(whole, 2u);
    EXPECT_EQ(pieces, 12u);
    EXPECT_EQ(claim(choice, problem, topology).rounds, 6u);
}

}  // namespace
}  // namespace thalweg
