// The replay against times that can be worked out by hand: messages, links, memory and cores.
#include <set>

#include "replayed.h"

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
    // Inside a host either may take another time: posted in 100 us, and noticed in 20.
    machine.post_inside_seconds = 10e-6;
    machine.complete_inside_seconds = 20e-6;
    EXPECT_NEAR(replayed(stream(1, 8), "node:1 core:2", machine).seconds, 100e-6 + 20e-6, 1e-8);
    EXPECT_NEAR(replayed(stream(1, 8), "node:2", machine).seconds, 100e-6 + 10e-6 + 50e-6, 1e-8);
    SimMachine slow = round_machine();
    slow.message_gap = 1e-3;
    EXPECT_NEAR(replayed(stream(10, 8), "node:2", slow).seconds, 9e-3 + 10e-6, 1e-6);
}

TEST(Replay, HostsOfAnEmulatedClusterShareItsCores) {
    // Four ranks do the same: 200 us of posting, and 50 us for what has come meanwhile. Who has a core keeps
    // it until there is nothing to do.
    const auto ring = group(4, [](int rank, Builder& builder) {
        builder.send((rank + 1) % 4, {Buffer::in, 0, 8});
        builder.recv((rank + 3) % 4, out(0, 8));
    });
    SimMachine machine = round_machine();
    machine.post_seconds = 100e-6;
    machine.complete_seconds = 50e-6;
    EXPECT_NEAR(replayed(ring, "node:4", machine).seconds, 250e-6, 1e-8);
    const auto with_cores = [&](unsigned cores) {
        machine.shared_cores = cores;
        return replayed(ring, "node:4", machine).seconds;
    };
    EXPECT_NEAR(with_cores(1), 1000e-6, 2e-8);
    EXPECT_NEAR(with_cores(2), 500e-6, 2e-8);
    EXPECT_NEAR(with_cores(3), 450e-6, 2e-8);  // the fourth begins at 200 us
    EXPECT_NEAR(with_cores(8), 250e-6, 2e-8);  // nobody has more than one
    // All sleep until 70 us later, and whoever takes a core needs 10 us for it. Rank 3 has one when the first
    // of the others has posted, and posts as long.
    machine.begin_seconds = 70e-6;
    EXPECT_NEAR(with_cores(3), 520e-6, 2e-8);
    machine.switch_seconds = 10e-6;
    EXPECT_NEAR(with_cores(3), 540e-6, 2e-8);
    machine.post_recv_seconds = 20e-6;
    EXPECT_NEAR(with_cores(3), 380e-6, 2e-8);
    // Rank 0 waits for what rank 3 sends, longer than any other from where it began itself.
    EXPECT_NEAR(replayed(ring, "node:4", machine).own_seconds, 310e-6, 2e-8);
    // Ranks that have a core each begin at the instant, and take it from nobody.
    EXPECT_NEAR(with_cores(4), 170e-6, 2e-8);
    EXPECT_NEAR(with_cores(8), 170e-6, 2e-8);
    // Who begins first is drawn, and nothing else.
    std::set<double> root_seconds;
    machine.shared_cores = 1;
    for (ReplayOptions options; options.history < 8; ++options.history)
        root_seconds.insert(replayed(ring, "node:4", machine, options).root_seconds);
    EXPECT_GT(root_seconds.size(), 2u);
}

TEST(Replay, ARankPollsBeforeItGivesUpACore) {
    // Rank 0 sends to rank 1, which answers; rank 2 is busy with rank 3 all the while. Two cores.
    const auto pairs = group(4, [](int rank, Builder& builder) {
        const int peer = rank ^ 1;
        StepId before = 0;
        for (std::uint64_t i = 0; i < 4; ++i) {
            const std::vector<StepId> after(i > 0 ? 1 : 0, before);
            const Slice slice = out(8 * i, 8);
            const bool sends = (i + static_cast<std::uint64_t>(rank)) % 2 == 0;
            before = sends ? builder.send(peer, slice, after) : builder.recv(peer, slice, after);
        }
    });
    SimMachine machine = round_machine();
    machine.post_seconds = 5e-6;
    machine.complete_seconds = 5e-6;
    machine.shared_cores = 2;
    machine.switch_seconds = 3e-6;
    const double gives_up = replayed(pairs, "node:4", machine).seconds;
    machine.poll_seconds = 20e-6;  // longer than the way there and back
    const double keeps = replayed(pairs, "node:4", machine).seconds;
    EXPECT_GT(keeps, 1.2 * gives_up);  // the second pair waits for the first to end
}

TEST(Replay, WhoHasCopiedSleepsAsWellWhenNothingMoreComes) {
    // Rank 1 gets a message after 110 us. What it copies before takes it a microsecond or less; then it has
    // nothing to do. So has one of three ranks all the while.
    constexpr std::uint64_t large = 100'000;
    const auto seconds = [](const SimMachine& machine, std::uint64_t copied) {
        const auto three = group(3, [=](int rank, Builder& builder) {
            if (rank == 0) builder.send(1, {Buffer::in, 0, large});
            if (rank != 1) return;
            builder.recv(0, out(0, large));
            builder.copy(out(large, copied), {Buffer::in, 0, copied});
        });
        return replayed(three, "node:3", machine).seconds;
    };
    SimMachine machine = round_machine();
    machine.shared_cores = 2;
    machine.poll_seconds = 1e-6;
    machine.post_seconds = machine.complete_seconds = 1e-9;
    machine.copy_rate = machine.host_copy_rate = 1e11;
    const double awake = seconds(machine, 8);
    EXPECT_NEAR(seconds(machine, large), awake, 2e-9);
    machine.sleep_seconds = 15e-6;
    EXPECT_NEAR(seconds(machine, 8), awake + 15e-6, 2e-9);
    EXPECT_NEAR(seconds(machine, large), awake + 15e-6, 2e-9);
    // It naps for 15 us and looks for 5, from one microsecond behind the end of the copy on.
    machine.sleep_seconds = 0;
    machine.naps = true;
    machine.look_seconds = 5e-6;
    EXPECT_NEAR(seconds(machine, large), 123e-6, 3e-7);
}

TEST(Replay, WhoNapsTakesItsLooksFromTheCoresOfOthers) {
    // Rank 0 sends to rank 1, which is at it for a millisecond and sends to rank 2. Both of these sleep on
    // the one core until something comes.
    const auto chain = group(3, [](int rank, Builder& builder) {
        if (rank == 0) builder.send(1, {Buffer::in, 0, 8});
        if (rank == 1) builder.send(2, {Buffer::in, 0, 8}, {{builder.recv(0, out(0, 8))}});
        if (rank == 2) builder.recv(1, out(0, 8));
    });
    SimMachine machine = round_machine();
    machine.shared_cores = 1;
    machine.poll_seconds = 1e-6;
    machine.post_seconds = 1e-9;
    machine.complete_seconds = 1e-3;
    machine.naps = true;  // of 22.5 us, three ranks of a core
    machine.look_seconds = 5e-6;
    // Rank 1 has waited for 28.5 us when it looks. Then rank 2 looks for 5 us of a core after every nap,
    // which last 5 us / p where it has the part p of one: p + 5 / (5 / p + 22.5) = 1.
    const double looked = 1e-6 + 28.5e-6, part = 0.8249;
    const Outcome outcome = replayed(chain, "node:3", machine);
    ASSERT_EQ(outcome.why, "");
    EXPECT_NEAR(outcome.by_rank[1], looked + 1e-3 / part, 1e-6);
    // Nobody else waits any more: rank 2 has the core alone.
    EXPECT_LT(outcome.by_rank[2], outcome.by_rank[1] + 10e-6 + 28e-6 + 1e-3 + 1e-6);
    // With a core to spare it looks there.
    machine.shared_cores = 2;
    EXPECT_NEAR(replayed(chain, "node:3", machine).by_rank[1], 21e-6 + 1e-3, 1e-6);
}

TEST(Replay, TheEngineLooksAtMessagesBetweenPiecesOfACopy) {
    // Rank 0 copies a megabyte; what rank 1 asks for meanwhile is answered after a quarter of it.
    const auto asked = group(2, [](int rank, Builder& builder) {
        if (rank == 0) {
            builder.copy(out(0, 4 << 18), {Buffer::in, 0, 4 << 18});
            builder.send(1, out(8 * mega, 8), {{builder.recv(1, out(9 * mega, 8))}});
        } else {
            const StepId told = builder.send(0, out(9 * mega, 8));
            builder.recv(0, out(8 * mega, 8), {{told}});
        }
    });
    SimMachine machine = round_machine();
    machine.copy_rate = machine.host_copy_rate = 1 << 30;  // a piece takes 0.244 ms
    const auto rank_1 = [&](unsigned cores) {
        machine.shared_cores = cores;
        const Outcome outcome = replayed(asked, "node:2", machine);
        return 2 * outcome.mean_seconds - outcome.root_seconds;
    };
    constexpr double piece = 0.000244140625, ways = 40e-6;
    EXPECT_NEAR(rank_1(2), piece, ways);
    EXPECT_NEAR(rank_1(0), 4 * piece, ways);
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
    // A kernel has work with what waited for the shaper, and with no more than it says; so has the receiver
    // then, which copied the rest meanwhile.
    machine.kernel_rate = 1e9;
    machine.kernel_bytes = 200'000;
    EXPECT_NEAR(replayed(stream(1, mega), "node:2", machine).seconds, 0.9e-3 + 200e-6 + 10.2e-6, 1e-8);
    EXPECT_NEAR(replayed(stream(1, 150'000), "node:2", machine).seconds, 50e-6 + 50e-6 + 10.15e-6, 1e-8);
    EXPECT_NEAR(replayed(stream(1, 90'000), "node:2", machine).seconds, 10.09e-6, 1e-8);
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

// Rank 0 gets `bytes` from rank 1 of another host while 100,000 bytes go from rank 2 to rank 3, and `fillers`
// messages of that size between six more hosts. Every link has one message at a time.
Outcome beside_many(std::uint64_t bytes, int fillers) {
    constexpr int lanes = 3;
    constexpr std::uint64_t piece = 100'000;
    const auto schedules = group(4 + 2 * lanes, [=](int rank, Builder& builder) {
        if (rank == 0) return (void)builder.recv(1, out(0, bytes));
        if (rank == 1) return (void)builder.send(0, out(0, bytes));
        for (int i = 0; i < (rank < 4 ? 1 : fillers / lanes); ++i) {
            const Slice slice = out(static_cast<std::uint64_t>(i) * piece, piece);
            if (rank % 2 == 0)
                builder.send(rank + 1, slice);
            else
                builder.recv(rank - 1, slice);
        }
    });
    return replayed(schedules, "node:10");
}

TEST(Replay, EndsThatAreNearlySimultaneousAreMergedWhereManyMessagesCross) {
    constexpr double after = 10e-6 + 0.1e-6;    // the way, and the copy to its place
    constexpr int few = 32'760, many = 32'769;  // 32,768 is where it begins
    EXPECT_NEAR(beside_many(103'000, few).root_seconds, 103e-6 + after, 2e-8);
    // 5 % of the shortest message's time: 3 us too early, and never more than that.
    EXPECT_NEAR(beside_many(103'000, many).root_seconds, 100e-6 + after, 2e-8);
    EXPECT_NEAR(beside_many(106'000, many).root_seconds, 106e-6 + after, 2e-8);
    // The row of messages as a whole is as long as before: nothing adds up.
    EXPECT_NEAR(beside_many(103'000, many).seconds, 1.0923 + after, 1e-5);
}

// After 50 days a step of the clock is nearly a nanosecond, in which 930 bytes are copied here.
TEST(Replay, CopiesEndHoweverLateTheyAre) {
    constexpr int copies = 16;
    constexpr std::uint64_t odd = 1237;
    double seconds = 0;
    for (std::uint64_t i = 0; i < copies; ++i) seconds += static_cast<double>(mega + i * odd) / 1e12;
    const auto late = group(2, [=](int, Builder& builder) {
        for (std::uint64_t i = 0; i < copies; ++i)
            builder.copy(out(2 * i * mega, mega + i * odd), {Buffer::in, 2 * i * mega, mega + i * odd});
    });
    ReplayOptions options;
    options.compute_seconds = 4.4e6;
    const Outcome outcome = replayed(late, "node:2", round_machine(), options);
    EXPECT_EQ(outcome.why, "");
    EXPECT_NEAR(outcome.seconds - options.compute_seconds, seconds, 1e-7);
}

}  // namespace
}  // namespace thalweg::sim
