// Who advances an operation, and in which order: callers, agents, programs, and copies inside a host.
#include "replayed.h"
#include "sim/variants.h"

namespace thalweg::sim {
namespace {

TEST(Replay, WhoAdvancesItDecidesWhatHides) {
    // Two hops: the second starts only when somebody on rank 1 sees the first.
    const auto chain = group(3, [](int rank, Builder& builder) {
        if (rank > 0) builder.recv(rank - 1, out(0, mega));
        if (rank < 2) builder.send(rank + 1, out(0, mega));
    });
    ReplayOptions options;
    options.compute_seconds = 10e-3;
    const double hop = 1e-3 + 11e-6;
    // The caller sees the message after its computation, and the last rank waits for the hop.
    EXPECT_NEAR(replayed(chain, "node:3", round_machine(), options).seconds, 10e-3 + 1e-6 + hop, 1e-7);
    options.progress = Progress::agent;
    EXPECT_NEAR(replayed(chain, "node:3", round_machine(), options).seconds, 10e-3, 1e-9);
    // Where the network moves nothing by itself, not even the first hop goes on beside the computation.
    SimMachine pushed = round_machine();
    pushed.network_moves_bytes = false;
    options.progress = Progress::caller;
    EXPECT_NEAR(replayed(chain, "node:3", pushed, options).seconds, 10e-3 + 2 * hop, 1e-5);
    options.progress = Progress::agent;
    EXPECT_NEAR(replayed(chain, "node:3", pushed, options).seconds, 10e-3, 1e-9);
}

TEST(Replay, ARankThatComputesKeepsNobodyElseFromItsHostsLink) {
    // Three ranks of a host, whose link takes one message at a time, send to three others. The second
    // computes.
    const auto three = group(6, [](int rank, Builder& builder) {
        if (rank < 3)
            builder.send(rank + 3, out(0, mega));
        else
            builder.recv(rank - 3, out(0, mega));
    });
    SimMachine pushed = round_machine();
    pushed.network_moves_bytes = false;
    pushed.flows_per_link = 1;
    ReplayOptions options;
    options.compute_by_rank = {0, 10e-3, 0, 0, 0, 0};
    const Outcome outcome = replayed(three, "ranks:0,0,0,1,2,3", pushed, options);
    ASSERT_EQ(outcome.why, "");
    const double way = 10e-6 + 1e-6;
    EXPECT_NEAR(outcome.by_rank[3], 1e-3 + way, 1e-7);
    EXPECT_NEAR(outcome.by_rank[4], 11e-3 + way, 1e-7);
    EXPECT_NEAR(outcome.by_rank[5], 2e-3 + way, 1e-7);
}

TEST(Replay, WhatALinkTakesLaterStaysWhereItsRankComputesByThen) {
    // A link takes a message per millisecond. Rank 0 has given it three, to three hosts, and computes: no
    // byte moves before it is back.
    const auto three = group(4, [](int rank, Builder& builder) {
        for (int other = 1; rank == 0 && other < 4; ++other) builder.send(other, out(0, mega));
        if (rank != 0) builder.recv(0, out(0, mega));
    });
    SimMachine pushed = round_machine();
    pushed.network_moves_bytes = false;
    pushed.message_gap = 1e-3;
    ReplayOptions options;
    options.compute_by_rank = {10e-3, 0, 0, 0};
    for (const Shares shares : {Shares::simgrid, Shares::ours})
        for (const unsigned flows : {0u, 2u}) {
            options.shares = shares;
            pushed.flows_per_link = flows;
            const Outcome outcome = replayed(three, "node:4", pushed, options);
            ASSERT_EQ(outcome.why, "");
            for (const std::size_t rank : {1u, 2u, 3u}) EXPECT_GT(outcome.by_rank[rank], 11e-3) << rank;
            EXPECT_NEAR(outcome.seconds, 13e-3 + 10e-6 + 1e-6, 1e-7);
        }
}

TEST(Replay, RanksComputeForAsLongAsTheyAreInTheOperation) {
    // Two hops: the first rank is done at once, the last one after both.
    const auto chain = group(3, [](int rank, Builder& builder) {
        if (rank > 0) builder.recv(rank - 1, out(0, mega));
        if (rank < 2) builder.send(rank + 1, out(0, mega));
    });
    const double hop = 1e-3 + 11e-6;
    const Outcome alone = replayed(chain, "node:3");
    ASSERT_EQ(alone.by_rank.size(), 3u);
    for (const std::size_t rank : {0u, 1u, 2u})
        EXPECT_NEAR(alone.by_rank[rank], static_cast<double>(rank) * hop, 2e-6);
    // An agent hides all of it. Ranks that compute for the mean of all keep the last one waiting.
    ReplayOptions options;
    options.progress = Progress::agent;
    options.compute_by_rank = alone.by_rank;
    EXPECT_NEAR(replayed(chain, "node:3", round_machine(), options).mean_seconds, hop, 4e-6);
    options.compute_by_rank.clear();
    options.compute_seconds = alone.mean_seconds;
    EXPECT_NEAR(replayed(chain, "node:3", round_machine(), options).mean_seconds, 4 * hop / 3, 4e-6);
}

TEST(Replay, WhatPeersWaitForGoesBeforeCopiesUnlessALibraryCopiesAtOnce) {
    // Rank 0 gives rank 1 three large messages in its host; rank 1 passes the second on to another host.
    const auto passed = group(3, [](int rank, Builder& builder) {
        if (rank == 0) {
            for (std::uint64_t i = 0; i < 3; ++i) builder.send(1, out(i * mega, mega));
        } else if (rank == 1) {
            for (std::uint64_t i = 0; i < 3; ++i) builder.recv(0, out(i * mega, mega));
            builder.send(2, out(mega, mega));
        } else {
            builder.recv(1, out(0, mega));
        }
    });
    SimMachine machine = round_machine();
    machine.copy_rate = 1e9;
    machine.host_copy_rate = 8e9;
    ReplayOptions options;
    // Announced, two copied, and then a hop: 1 us, 2 ms, 1 ms and 10 us, and a copy of rank 2's own.
    const double hop = 1e-3 + 10e-6 + 1e-3;
    EXPECT_NEAR(replayed(passed, "ranks:0,0,1", machine, options).seconds, 1e-6 + 2e-3 + hop, 1e-7);
    options.copies = Copies::as_matched;
    EXPECT_NEAR(replayed(passed, "ranks:0,0,1", machine, options).seconds, 1e-6 + 3e-3 + hop, 1e-7);
}

TEST(Replay, ALibraryThatLooksAtItsHostFirstLeavesTheNetworkWaiting) {
    // Rank 1 gets a large message of its host and one of another; both are announced while it still posts.
    const auto both = group(3, [](int rank, Builder& builder) {
        if (rank != 1) return (void)builder.send(1, out(0, 2 * mega));
        builder.recv(0, out(0, 2 * mega));
        builder.recv(2, out(2 * mega, 2 * mega));
    });
    SimMachine machine = round_machine();
    machine.copy_rate = 1e9;
    machine.host_copy_rate = 8e9;
    machine.post_seconds = 100e-6;
    // Two receives are posted; then 2 ms of copying, and a message that takes 2 ms, three ways of 10 us and a
    // notice of another: at the same time, or one after the other.
    const double posted = 200e-6, copied = 2e-3, sent = 2e-3 + 30e-6;
    ReplayOptions options;
    for (const Copies copies : {Copies::behind_messages, Copies::as_matched}) {
        options.copies = copies;
        EXPECT_NEAR(replayed(both, "ranks:0,0,1", machine, options).seconds, posted + sent, 1e-7);
    }
    options.copies = Copies::before_network;
    EXPECT_NEAR(replayed(both, "ranks:0,0,1", machine, options).seconds, posted + copied + sent, 1e-7);
}

TEST(Programs, OperationsStartWaitAndHideWhereTheyStand) {
    // Two exchanges of a megabyte among two hosts: one started beside 0.5 ms, then one that is waited for.
    std::vector<Schedule> schedules;
    std::vector<Program> programs;
    const auto one = group(2, [](int rank, Builder& builder) {
        builder.send(1 - rank, {Buffer::in, 0, mega});
        builder.recv(1 - rank, out(0, mega));
    });
    for (int rank = 0; rank < 2; ++rank) {
        Succession row;
        const auto first = row.append(one[static_cast<std::size_t>(rank)]);
        const auto second = row.append(one[static_cast<std::size_t>(rank)]);
        programs.push_back({{ActKind::start, first.first, first.second, 0},
                            {ActKind::compute, 0, 0, 0.5e-3},
                            {ActKind::wait, first.first, first.second, 0},
                            {ActKind::start, second.first, second.second, 0},
                            {ActKind::wait, second.first, second.second, 0},
                            {ActKind::compute, 0, 0, 0.25e-3}});
        schedules.push_back(std::move(row).finish(rank, 2));
    }
    Topology topology;
    std::string why;
    ASSERT_EQ(Topology::from_text("node:2", topology, why), Status::ok) << why;
    const auto seconds = [&](const SimMachine& machine, Progress progress) {
        return in_child(60, std::uint64_t{4} << 30,
                        [&] {
                            ReplayOptions options;
                            options.progress = progress;
                            PointResult result;
                            result.outcome = replay(schedules, programs, topology, machine, options);
                            return result;
                        })
            .outcome.seconds;
    };
    const double exchange = 1e-3 + 11e-6;
    SimMachine machine = round_machine();
    EXPECT_NEAR(seconds(machine, Progress::caller), 2 * exchange + 0.25e-3, 1e-7);
    // Where only the caller moves bytes, nothing of the first exchange is hidden.
    machine.network_moves_bytes = false;
    EXPECT_NEAR(seconds(machine, Progress::caller), 0.5e-3 + 2 * exchange + 0.25e-3, 1e-7);
    EXPECT_NEAR(seconds(machine, Progress::agent), 2 * exchange + 0.25e-3, 1e-7);
}

TEST(Programs, WhatIsLeftToTheLibraryAsksAndCostsAsTheLibrarysDoes) {
    // Two megabytes, which the library asks about, and Thalweg does not, whose operations take longer to
    // start.
    const auto schedules = stream(1, 2 * mega);
    Topology topology;
    std::string why;
    ASSERT_EQ(Topology::from_text("node:2", topology, why), Status::ok) << why;
    SimMachine ours = round_machine();
    ours.inter_eager = UINT64_MAX;
    ours.start_seconds = 100e-6;
    const auto seconds = [&](bool left, bool told) {
        const Program program = {{ActKind::start, 0, 1, 0, left}, {ActKind::wait, 0, 1, 0}};
        const std::vector<Program> programs(2, program);
        return in_child(60, std::uint64_t{4} << 30,
                        [&] {
                            ReplayOptions options;
                            if (told) options.library = round_machine();
                            PointResult result;
                            result.outcome = replay(schedules, programs, topology, ours, options);
                            return result;
                        })
            .outcome.seconds;
    };
    // Started, sent, and copied to its place; or a question, an answer, the bytes, and the notice of the end.
    const double eager = 100e-6 + 2e-3 + 10e-6 + 2e-6, asked = 2e-3 + 40e-6;
    EXPECT_NEAR(seconds(false, true), eager, 1e-7);
    EXPECT_NEAR(seconds(true, false), eager, 1e-7);
    EXPECT_NEAR(seconds(true, true), asked, 1e-7);
}

TEST(Replay, AnAgentThatSleptWakesFirst) {
    SimMachine machine = round_machine();
    machine.agent_wake_seconds = 500e-6;
    const auto pair = stream(1, mega);
    ReplayOptions options;
    options.progress = Progress::agent;
    options.compute_seconds =
        1.2e-3;  // the message is there after 1.010 ms, and seen half a millisecond later
    EXPECT_NEAR(replayed(pair, "node:2", machine, options).seconds, 1.51e-3 + 1e-6, 1e-8);
}

}  // namespace
}  // namespace thalweg::sim
