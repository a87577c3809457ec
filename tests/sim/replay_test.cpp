// The replay against times that can be worked out by hand, on a machine of round numbers.
#include "sim/replay.h"

#include <gtest/gtest.h>

#include <vector>

#include "replayed.h"
#include "schedule/builder.h"
#include "sim/variants.h"

namespace thalweg::sim {
namespace {

TEST(Replay, AMessageTakesItsBytesAndItsLatency) {
    const Outcome outcome = replayed(stream(1, mega), "node:2");
    EXPECT_EQ(outcome.why, "");
    EXPECT_NEAR(outcome.seconds, 1e-3 + 10e-6 + 1e-6 /* copied to its place at 1 TB/s */, 1e-9);
    EXPECT_EQ(outcome.messages, 1u);
    EXPECT_EQ(outcome.bytes, mega);
    EXPECT_EQ(outcome.inter_bytes, mega);
    EXPECT_EQ(outcome.steps, 2u);
}

TEST(Replay, MessagesOfAPairFollowOneAnotherWithoutWaitingForTheLatency) {
    // In a row they take what one large one takes; sharing the link all at once they would end together too,
    // but then the first could not be passed on early: see the chain below.
    EXPECT_NEAR(replayed(stream(10, mega / 10), "node:2").seconds, 1e-3 + 10e-6 + 0.1e-6, 2e-9);
    const auto chain = [](int pieces) {
        const std::uint64_t bytes = mega / static_cast<std::uint64_t>(pieces);
        return group(3, [=](int rank, Builder& builder) {
            for (int i = 0; i < pieces; ++i) {
                const Slice slice = out(static_cast<std::uint64_t>(i) * bytes, bytes);
                if (rank > 0) builder.recv(rank - 1, slice);
                if (rank < 2) builder.send(rank + 1, slice);
            }
        });
    };
    EXPECT_NEAR(replayed(chain(1), "node:3").seconds, 2e-3 + 20e-6 + 2e-6, 1e-8);
    EXPECT_NEAR(replayed(chain(10), "node:3").seconds, 1.1e-3 + 20e-6 + 0.2e-6, 1e-8);
}

TEST(Replay, ALargeMessageAsksAndIsFetched) {
    // There, back, the bytes, and the last byte's way.
    EXPECT_NEAR(replayed(stream(1, 2 * mega), "node:2").seconds, 10e-6 + 10e-6 + 2e-3 + 2 * 10e-6, 1e-9);
    // The sender hears of the end one way later than the receiver.
    SimMachine pushed = round_machine();
    pushed.network_moves_bytes = false;
    EXPECT_NEAR(replayed(stream(1, 2 * mega), "node:2", pushed).seconds, 2e-3 + 3 * 10e-6, 1e-9);
}

TEST(Replay, TwoFlowsShareALinkAndTwoRailsDoNot) {
    const auto both = group(4, [](int rank, Builder& builder) {
        if (rank < 2)
            builder.send(rank + 2, out(0, mega));
        else
            builder.recv(rank - 2, out(0, mega));
    });
    // Both receivers copy at the same time, and share their host's memory.
    EXPECT_NEAR(replayed(both, "ranks:0,0,1,1").seconds, 2e-3 + 12e-6, 1e-8);
    SimMachine two = round_machine();
    two.rails = 2;
    EXPECT_NEAR(replayed(both, "ranks:0,0,1,1", two).seconds, 1e-3 + 12e-6, 1e-8);
    // A link that works on one message at a time lets the first through alone.
    SimMachine one_by_one = round_machine();
    one_by_one.flows_per_link = 1;
    const Outcome outcome = replayed(both, "ranks:0,0,1,1", one_by_one);
    EXPECT_NEAR(outcome.seconds, 2e-3 + 11e-6, 1e-8);
    EXPECT_NEAR(outcome.mean_seconds, (0 + 0 + 1e-3 + 11e-6 + 2e-3 + 11e-6) / 4, 1e-8);
}

TEST(Replay, PostingAndCompletingTakeTheRanksOwnCore) {
    SimMachine machine = round_machine();
    machine.post_seconds = 100e-6;
    machine.complete_seconds = 50e-6;
    machine.message_gap = 0;
    // The receiver posts ten receives while nine messages arrive, then completes ten.
    EXPECT_NEAR(replayed(stream(10, 8), "node:2", machine).seconds, 10 * 100e-6 + 10 * 50e-6, 1e-6);
    EXPECT_NEAR(replayed(stream(1, 8), "node:2", machine).seconds, 100e-6 + 10e-6 + 50e-6, 1e-8);
    SimMachine slow = round_machine();
    slow.message_gap = 1e-3;
    EXPECT_NEAR(replayed(stream(10, 8), "node:2", slow).seconds, 9e-3 + 10e-6, 1e-6);
}

TEST(Replay, CopiesInsideAHostShareItsMemory) {
    // n ranks fetch a megabyte each from rank 0, with 10 GB/s per core and 20 GB/s per host.
    const auto fan = [](int ranks) {
        return group(ranks, [=](int rank, Builder& builder) {
            for (int other = 1; rank == 0 && other < ranks; ++other) builder.send(other, out(0, mega));
            if (rank != 0) builder.recv(0, out(0, mega));
        });
    };
    SimMachine machine = round_machine();
    machine.copy_rate = 10e9;
    machine.host_copy_rate = 20e9;
    // Announced, fetched, and the notice back to the sender.
    EXPECT_NEAR(replayed(fan(2), "node:1 core:2", machine).seconds, 100e-6 + 2e-6, 1e-8);
    EXPECT_NEAR(replayed(fan(3), "node:1 core:3", machine).seconds, 100e-6 + 2e-6, 1e-8);
    EXPECT_NEAR(replayed(fan(9), "node:1 core:9", machine).seconds, 400e-6 + 2e-6, 1e-8);
    // Small ones are copied by both ends; the second copies share the memory.
    machine.intra_eager = mega;
    EXPECT_NEAR(replayed(fan(3), "node:1 core:3", machine).seconds, 2 * 100e-6 + 1e-6 + 100e-6, 1e-8);
}

TEST(Replay, ReductionsAndCopiesTakeTurnsOnACore) {
    const auto local = group(2, [](int rank, Builder& builder) {
        if (rank != 0) return;
        builder.copy(out(0, mega), {Buffer::in, 0, mega});
        builder.reduce(out(mega, mega), {Buffer::in, 0, mega});
    });
    SimMachine machine = round_machine();
    machine.copy_rate = 10e9;
    machine.host_copy_rate = 20e9;
    EXPECT_NEAR(replayed(local, "node:2", machine).seconds, 100e-6 + 200e-6, 1e-8);
}

TEST(Replay, AShaperLetsItsBucketThroughAtOnce) {
    SimMachine machine = round_machine();
    machine.burst_bytes = 100'000;
    EXPECT_NEAR(replayed(stream(1, mega), "node:2", machine).seconds, 0.9e-3 + 11e-6, 1e-8);
    // Only what an idle link has saved up: the second of two in a row gets no bucket.
    EXPECT_NEAR(replayed(stream(2, mega / 2), "node:2", machine).seconds, 0.9e-3 + 10.5e-6, 1e-8);
}

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
    options.copies_at_once = true;
    EXPECT_NEAR(replayed(passed, "ranks:0,0,1", machine, options).seconds, 1e-6 + 3e-3 + hop, 1e-7);
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

TEST(Replay, AMessageAloneMayNotFillTheLink) {
    SimMachine machine = round_machine();
    machine.flow_rate = 0.5e9;
    const auto fan = [](int ranks) {
        return group(ranks, [=](int rank, Builder& builder) {
            for (int other = 1; rank == 0 && other < ranks; ++other) builder.send(other, out(0, mega));
            if (rank != 0) builder.recv(0, out(0, mega));
        });
    };
    for (const Fabric fabric : {Fabric::star, Fabric::fat_tree, Fabric::dragonfly}) {
        machine.fabric = fabric;
        machine.sizes =
            fabric == Fabric::fat_tree ? std::vector<unsigned>{8, 4} : std::vector<unsigned>{1, 2, 4, 2};
        machine.links = {1, 1, 1};
        EXPECT_NEAR(replayed(fan(2), "node:2", machine).seconds, 2e-3 + 11e-6, 1e-8);
        EXPECT_NEAR(replayed(fan(3), "node:3", machine).seconds, 2e-3 + 11e-6, 1e-8);
        EXPECT_NEAR(replayed(fan(5), "node:5", machine).seconds, 4e-3 + 11e-6, 1e-8);
    }
}

TEST(Replay, RunsInARowStartWhereARankIsDone) {
    // Rank 0 is done when its message is handed over, and starts the next at once; rank 1 takes them as they
    // come.
    auto schedules = stream(1, mega);
    for (Schedule& schedule : schedules) schedule = repeated(schedule, 5);
    const Outcome outcome = replayed(schedules, "node:2");
    EXPECT_EQ(outcome.why, "");
    EXPECT_EQ(outcome.messages, 5u);
    EXPECT_NEAR(outcome.seconds, 5e-3 + 11e-6, 1e-8);
    // A chain of three hosts: the second operation overlaps the first.
    auto chain = group(3, [](int rank, Builder& builder) {
        if (rank > 0) builder.recv(rank - 1, out(0, mega));
        if (rank < 2) builder.send(rank + 1, out(0, mega));
    });
    for (Schedule& schedule : chain) schedule = repeated(schedule, 3);
    EXPECT_NEAR(replayed(chain, "node:3").seconds, 4e-3 + 2 * 11e-6, 3e-6);
}

TEST(Replay, InTurnASendWaitsForTheExchangeBefore) {
    // Rank 0 sends to 1 and to 2; both large, so that a send ends when its message is gone.
    const auto fan = group(3, [](int rank, Builder& builder) {
        for (int other = 1; rank == 0 && other < 3; ++other) builder.send(other, out(0, 2 * mega));
        if (rank != 0) builder.recv(0, out(0, 2 * mega));
    });
    auto blocking = fan;
    for (Schedule& schedule : blocking) schedule = in_turn(schedule);
    EXPECT_NEAR(replayed(fan, "node:3").mean_seconds, 4e-3 + 4e-5,
                1e-5);  // they share the link: all end together
    EXPECT_NEAR(replayed(blocking, "node:3").seconds, 4e-3 + 8e-5, 1e-5);
    EXPECT_NEAR(replayed(blocking, "node:3").mean_seconds, (2 * 4e-3 + 2e-3) / 3, 1e-4);
    // A send and a receive that do not need each other go together: two ranks that exchange do not wait.
    auto exchange = group(2, [](int rank, Builder& builder) {
        for (int round = 0; round < 3; ++round) {
            builder.send(1 - rank, {Buffer::in, 0, 2 * mega});
            builder.recv(1 - rank, out(static_cast<std::uint64_t>(round) * 2 * mega, 2 * mega));
        }
    });
    for (Schedule& schedule : exchange) schedule = in_turn(schedule);
    EXPECT_NEAR(replayed(exchange, "node:2").seconds, 6e-3, 2e-4);
}

// --- what is refused ------------------------------------------------------------------------------------

}  // namespace
}  // namespace thalweg::sim
