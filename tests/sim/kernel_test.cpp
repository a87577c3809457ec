// Hosts whose kernels send: turns of connections, sockets, answers behind other bytes, synchronous messages.
#include "engine/engine.h"
#include "replayed.h"
#include "sim/credits.h"
#include "sim/variants.h"

namespace thalweg::sim {
namespace {

constexpr std::uint64_t piece = 100'000;

// Segments of 100,000 bytes, which are handled at once when they are there.
SimMachine kernel_machine() {
    SimMachine machine = round_machine();
    machine.kernel_bytes = static_cast<double>(piece);
    machine.kernel_rate = 1e15;
    machine.socket_bytes = 1e9;
    machine.network_moves_bytes = false;
    return machine;
}

constexpr double way = 10e-6, near = 2e-6;
constexpr std::uint64_t less = Limits{}.credit_bytes / 8, more = Limits{}.credit_bytes / 2;

TEST(Kernel, ConnectionsOfALinkTakeTurnsBySegments) {
    // Rank 1 sends one segment to rank 0, then three to rank 2. A link that both share at once needs twice as
    // long for the one.
    const auto two = group(3, [](int rank, Builder& builder) {
        if (rank == 0) builder.recv(1, out(0, piece));
        if (rank == 1) builder.send(0, out(0, piece)), builder.send(2, out(0, 3 * piece));
        if (rank == 2) builder.recv(1, out(0, 3 * piece));
    });
    const Outcome turns = replayed(two, "node:3", kernel_machine());
    EXPECT_NEAR(turns.root_seconds, 0.1e-3 + way, near);
    EXPECT_NEAR(turns.seconds, 0.4e-3 + way, near);
    EXPECT_NEAR(replayed(two, "node:3").root_seconds, 0.2e-3 + way, near);
    // The other way round the one waits for a segment of the three, and no more.
    const auto behind = group(3, [](int rank, Builder& builder) {
        if (rank == 0) builder.recv(1, out(0, piece));
        if (rank == 1) builder.send(2, out(0, 3 * piece)), builder.send(0, out(0, piece));
        if (rank == 2) builder.recv(1, out(0, 3 * piece));
    });
    EXPECT_NEAR(replayed(behind, "node:3", kernel_machine()).root_seconds, 0.2e-3 + way, near);
}

TEST(Kernel, ALinkGoesOnWhileASegmentWaitsAtItsReceiver) {
    // Ranks 1 and 2 fill the link of rank 0; rank 1 has a segment for rank 3 too.
    const auto three = group(4, [](int rank, Builder& builder) {
        if (rank == 0) builder.recv(1, out(0, piece)), builder.recv(2, out(piece, piece));
        if (rank == 1) builder.send(0, out(0, piece)), builder.send(3, out(0, piece));
        if (rank == 2) builder.send(0, out(0, piece));
        if (rank == 3) builder.recv(1, out(0, piece));
    });
    EXPECT_NEAR(replayed(three, "node:4", kernel_machine()).seconds, 0.2e-3 + way, near);
}

TEST(Kernel, FramesHaveHeadersAndAreAcknowledged) {
    // A hundred bytes of headers for 900: the link's rate is that of full frames.
    SimMachine machine = kernel_machine();
    const auto whole = stream(1, 900'000), small = stream(1000, 9);
    EXPECT_NEAR(replayed(small, "node:2", machine).seconds, 9e-6 + way, near);
    machine.frame_bytes = 900;
    machine.frame_headers = 100;
    EXPECT_NEAR(replayed(whole, "node:2", machine).seconds, 0.9e-3 + way, near);
    EXPECT_NEAR(replayed(small, "node:2", machine).seconds, 1000 * 0.9 * 109e-9 + way, 4e-6);
    // A message of no bytes is a frame, too.
    EXPECT_NEAR(replayed(stream(1000, 0), "node:2", machine).seconds, 1000 * 0.9 * 100e-9 + way, 4e-6);
    // Both ways at once: behind each of nine pieces go the acknowledgements of what has come meanwhile, 500
    // frames in all of which the last piece's and at most one more come too late.
    const auto both = group(2, [](int rank, Builder& builder) {
        builder.recv(1 - rank, out(0, 900'000));
        builder.send(1 - rank, {Buffer::in, 0, 900'000});
    });
    const double acknowledged = replayed(both, "node:2", machine).seconds - 0.9e-3 - way;
    EXPECT_GT(acknowledged, 7 * 5e-6 - near);
    EXPECT_LT(acknowledged, 8 * 5e-6 + near);
    // A bucket lets whole frames through.
    machine.burst_bytes = 100'000;
    EXPECT_NEAR(replayed(stream(1, 900'000), "node:2", machine).seconds, 0.81e-3 + way, near);
}

TEST(Kernel, ASendIsOverWhenTheSocketHasIt) {
    SimMachine machine = kernel_machine();
    machine.inter_eager = 4 * mega;
    EXPECT_NEAR(replayed(stream(1, 4 * mega), "node:2", machine).root_seconds, 0, near);
    machine.socket_bytes = static_cast<double>(mega);
    EXPECT_NEAR(replayed(stream(1, 4 * mega), "node:2", machine).root_seconds, 3e-3, near);
    EXPECT_NEAR(replayed(stream(1, 4 * mega), "node:2", machine).seconds, 4e-3 + way, near);
}

TEST(Kernel, QuestionsThatHaveLeftMakeNoRoomInASocket) {
    // 2000 messages ask, with more bytes together than a socket holds; then one of five segments goes, of
    // which the last is in the socket when its sender goes on.
    const auto asked = group(2, [](int rank, Builder& builder) {
        for (std::uint64_t i = 0; i <= 2000; ++i) {
            const Slice slice = out(2000 * i, i < 2000 ? 2000 : 5 * piece);
            if (rank == 0) builder.send(1, slice);
            if (rank == 1) builder.recv(0, slice);
        }
    });
    SimMachine machine = kernel_machine();
    machine.inter_eager = 1000;
    machine.socket_bytes = static_cast<double>(piece);
    const Outcome outcome = replayed(asked, "node:2", machine);
    EXPECT_NEAR(outcome.seconds - outcome.root_seconds, 0.1e-3 + way, near);
}

// Rank 0 sends A and B to rank 1, which sends A back.
std::vector<Schedule> there_and_back(std::uint64_t bytes) {
    return group(2, [=](int rank, Builder& builder) {
        const Slice a = out(0, bytes), b = out(bytes, bytes);
        if (rank == 0) builder.send(1, a), builder.send(1, b), builder.recv(1, {Buffer::scratch, 0, bytes});
        if (rank == 1) builder.recv(0, a), builder.recv(0, b), builder.send(0, a);
    });
}

TEST(Kernel, AnAnswerStandsBehindOtherBytesOfItsConnection) {
    // Rank 1 asks when it has A; by then all of B is in the socket that the answer has to leave through.
    constexpr double questions = 100e-6;
    SimMachine machine = kernel_machine();
    EXPECT_NEAR(replayed(there_and_back(mega), "node:2", machine).seconds, 2e-3 + way, questions);
    machine.inter_eager = 0;
    EXPECT_NEAR(replayed(there_and_back(mega), "node:2", machine).seconds, 3e-3 + way, questions);
    machine.kernel_bytes = 0;
    EXPECT_NEAR(replayed(there_and_back(mega), "node:2", machine).seconds, 2e-3 + way, questions);
}

// Where nothing else goes that way, too.
TEST(Kernel, WhatItHoldsGoesOnWhileRanksCompute) {
    SimMachine machine = kernel_machine();
    ReplayOptions options;
    options.compute_seconds = 1e-3;
    const auto three = stream(1, 3 * piece);
    EXPECT_NEAR(replayed(three, "node:2", machine, options).seconds, 1e-3, near);
    // Of a socket that holds one segment the other two go when the ranks are back.
    machine.socket_bytes = static_cast<double>(piece);
    EXPECT_NEAR(replayed(three, "node:2", machine, options).seconds, 1e-3 + 0.2e-3 + way, near);
    // What has come is passed on when somebody looks.
    const auto chain = group(3, [](int rank, Builder& builder) {
        if (rank > 0) builder.recv(rank - 1, out(0, piece));
        if (rank < 2) builder.send(rank + 1, out(0, piece));
    });
    EXPECT_NEAR(replayed(chain, "node:3", kernel_machine(), options).seconds, 1e-3 + 0.1e-3 + way, near);
    options.progress = Progress::agent;
    EXPECT_NEAR(replayed(chain, "node:3", kernel_machine(), options).seconds, 1e-3, near);
}

TEST(Kernel, AnAnswerToARankThatComputesIsThereWhenItIsBack) {
    const auto schedules = group(3, [](int rank, Builder& builder) {
        if (rank == 0) {
            builder.send(1, out(0, piece));
            for (int i = 0; i < 3; ++i) builder.send(2, out(0, 8));
        } else if (rank == 1) {
            builder.recv(0, out(0, piece));
            builder.recv(2, out(piece, 8));
        } else {
            for (std::uint64_t i = 0; i < 3; ++i) builder.recv(0, out(8 * i, 8));
            builder.send(1, {Buffer::in, 0, 8});
        }
    });
    SimMachine machine = kernel_machine();
    machine.inter_eager = piece / 2;
    machine.post_seconds = 5e-6;
    ReplayOptions options;
    options.compute_seconds = 1e-3;
    // Rank 1 has posted two, computed, and answers before rank 0 is back, which has posted four: rank 0's
    // kernel has the answer then.
    const Outcome outcome = replayed(schedules, "node:3", machine, options);
    EXPECT_EQ(outcome.why, "");
    EXPECT_NEAR(outcome.seconds, 1e-3 + 10e-6 + way + 5e-6 + 0.1e-3 + way, near);
}

TEST(Kernel, WhatCameFirstIsAnsweredFirst) {
    // Rank 0 posts for so long that rank 1 has announced its message and has asked for the other one before
    // that receive is posted: the answer, which came second, must not keep the question behind a megabyte.
    SimMachine machine = kernel_machine();
    machine.inter_eager = 1000;
    machine.post_seconds = 20e-6;
    constexpr int others = 10;
    const auto both_ways = group(3, [](int rank, Builder& builder) {
        const Slice a = out(0, mega), b = out(mega, mega);
        if (rank == 0) builder.send(1, a);
        for (std::uint64_t i = 0; i < others; ++i) {
            const Slice small = out(2 * mega + 8 * i, 8);
            if (rank == 0) builder.recv(2, small);
            if (rank == 2) builder.send(0, small);
        }
        if (rank == 0) builder.recv(1, b);
        if (rank == 1) builder.recv(0, a), builder.send(0, b);
    });
    constexpr double posts = (others + 2) * 20e-6, questions = 100e-6;
    EXPECT_NEAR(replayed(both_ways, "node:3", machine).seconds, 1e-3 + posts + way, questions);
}

TEST(Kernel, WhatAsksByCreditsIsOvertaken) {
    // With an eighth of the credit each A is what the engine makes synchronous in every operation, and B goes
    // before it; with half of it both are.
    constexpr double one = less * 1e-9, large = more * 1e-9, questions = 100e-6;
    SimMachine machine = kernel_machine();
    ReplayOptions options;
    EXPECT_NEAR(replayed(there_and_back(less), "node:2", machine, options).seconds, 2 * one, questions);
    options.credits = true;
    EXPECT_NEAR(replayed(there_and_back(less), "node:2", machine, options).seconds, 3 * one, questions);
    for (options.history = 1; options.history < 9; ++options.history)
        EXPECT_NEAR(replayed(there_and_back(less), "node:2", machine, options).seconds, 3 * one, questions);
    machine.kernel_bytes = 0;
    EXPECT_NEAR(replayed(there_and_back(less), "node:2", machine, options).seconds, 2 * one, questions);
    // More is under way than a peer may owe: the third waits, and everything arrives.
    machine = kernel_machine();
    EXPECT_NEAR(replayed(stream(6, more), "node:2", machine, options).seconds, 6 * large, 6 * questions);
}

// Those of a program, each of which is one operation.
Outcome replayed_as(bool left, const std::vector<Schedule>& schedules) {
    std::vector<Program> programs;
    for (const Schedule& schedule : schedules) {
        const auto steps = static_cast<StepId>(schedule.steps().size());
        programs.push_back({{ActKind::start, 0, steps, 0, left}, {ActKind::wait, 0, steps, 0}});
    }
    Topology topology;
    std::string why;
    EXPECT_EQ(Topology::from_text("node:2", topology, why), Status::ok) << why;
    return in_child(60, std::uint64_t{4} << 30,
                    [&] {
                        ReplayOptions options;
                        options.credits = true;
                        PointResult result;
                        result.outcome = replay(schedules, programs, topology, kernel_machine(), options);
                        return result;
                    })
        .outcome;
}

TEST(Kernel, CreditsKnowOfNothingThatIsLeftToTheLibrary) {
    constexpr double one = less * 1e-9, questions = 100e-6;
    EXPECT_NEAR(replayed_as(false, there_and_back(less)).seconds, 3 * one, questions);
    EXPECT_NEAR(replayed_as(true, there_and_back(less)).seconds, 2 * one, questions);
}

// What comes behind a large message, in another operation, takes nothing from the receipt that confirms it.
TEST(Kernel, TurnsAreOfOneOperationEach) {
    Matching matching;
    matching.pairs = 1;
    for (const std::uint64_t bytes : {more, std::uint64_t{0}, std::uint64_t{8}}) {
        Matched& message = matching.messages.emplace_back();
        message.to = 1;
        message.bytes = bytes;
    }
    const auto asks = [&](std::uint32_t operation) {
        matching.messages.back().operation = operation;
        Credits credits(matching, false, 0, 0);
        std::vector<bool> synchronous;
        for (std::uint32_t m = 0; m < matching.messages.size(); ++m) {
            EXPECT_TRUE(credits.post(m, true));
            synchronous.push_back(credits.synchronous(m));
        }
        return synchronous;
    };
    EXPECT_EQ(asks(1), (std::vector<bool>{false, true, false}));
    EXPECT_EQ(asks(0), (std::vector<bool>{true, false, false}));
}

TEST(Kernel, RunsOfAnOperationAreOneEach) {
    std::vector<Schedule> twice;
    for (const Schedule& schedule : stream(3, 8)) twice.push_back(repeated(schedule, 2));
    Matching matching;
    std::string why;
    ASSERT_TRUE(match(twice, matching, why)) << why;
    matching = number_operations(std::move(matching), {}, 2);
    ASSERT_EQ(matching.messages.size(), 6u);
    for (std::uint32_t m = 0; m < 6; ++m) EXPECT_EQ(matching.messages[m].operation, m / 3) << m;
}

TEST(Kernel, WhereSynchronousMessagesGoAtOnceNothingOvertakesThem) {
    constexpr double one = less * 1e-9, large = more * 1e-9, questions = 100e-6;
    SimMachine machine = kernel_machine();
    machine.synchronous_asks = false;
    machine.inter_eager = more;
    ReplayOptions options;
    options.credits = true;
    EXPECT_NEAR(replayed(there_and_back(less), "node:2", machine, options).seconds, 2 * one, questions);
    // Its sender goes on when the answer is there, which follows the bytes.
    EXPECT_NEAR(replayed(stream(1, more), "node:2", machine, options).root_seconds, large + 2 * way, near);
    EXPECT_NEAR(replayed(stream(1, more), "node:2", machine).root_seconds, 0, near);
    EXPECT_NEAR(replayed(stream(6, more), "node:2", machine, options).seconds, 6 * large, 6 * questions);
    // What is too large to go at once asks all the same.
    machine.inter_eager = less - 1;
    EXPECT_NEAR(replayed(there_and_back(less), "node:2", machine, options).seconds, 3 * one, questions);
}

// Rank 1 says that its memory is ready, and rank 0 puts into it.
std::vector<Schedule> put_when_told(std::uint64_t bytes) {
    return group(2, [=](int rank, Builder& builder) {
        const Slice none = {rank == 0 ? Buffer::out : Buffer::in, 0, 0};
        const StepId told = rank == 0 ? builder.recv(1, none) : builder.send(0, none);
        if (rank == 0)
            builder.put(1, {Buffer::in, 0, bytes}, {&told, 1});
        else
            builder.arrival(0, out(0, bytes), {&told, 1});
    });
}

TEST(Kernel, APutIsWrittenFlushedAndToldOf) {
    SimMachine machine = kernel_machine();
    machine.inter_eager = piece / 2;
    ReplayOptions options;
    options.credits = true;
    // As a message it asks first, because it is large.
    EXPECT_NEAR(replayed(put_when_told(piece), "node:2", machine, options).seconds, 0.1e-3 + 4 * way, near);
    machine.puts = true;
    const Outcome put = replayed(put_when_told(piece), "node:2", machine, options);
    EXPECT_NEAR(put.root_seconds, 0.1e-3 + 3 * way, near);  // told, written, answered
    EXPECT_NEAR(put.seconds, 0.1e-3 + 4 * way, near);
    machine.inter_eager = 2 * piece;
    EXPECT_NEAR(replayed(put_when_told(piece), "node:2", machine, options).seconds, put.seconds, near);
    // Each end posts and completes twice, and the last message is completed.
    machine.post_seconds = machine.complete_seconds = 5e-6;
    EXPECT_NEAR(replayed(put_when_told(piece), "node:2", machine, options).seconds, put.seconds + 8 * 5e-6,
                near);
    // And what a put takes besides messages.
    machine.put_seconds = 7e-6;
    machine.take_put_seconds = 3e-6;
    EXPECT_NEAR(replayed(put_when_told(piece), "node:2", machine, options).seconds, put.seconds + 50e-6,
                near);
    // An adapter does so by itself: nobody but the sender hears of it before the message.
    SimMachine adapter = round_machine();
    adapter.puts = true;
    adapter.inter_eager = piece / 2;
    const Outcome direct = replayed(put_when_told(piece), "node:2", adapter);
    EXPECT_NEAR(direct.root_seconds, 0.1e-3 + 3 * way, near);
    EXPECT_NEAR(direct.seconds, 0.1e-3 + 4 * way, near);
    adapter.post_seconds = adapter.complete_seconds = 5e-6;
    EXPECT_NEAR(replayed(put_when_told(piece), "node:2", adapter).seconds, direct.seconds + 6 * 5e-6, near);
    // Into memory of its own host it copies by itself.
    machine = kernel_machine();
    machine.puts = true;
    EXPECT_NEAR(replayed(put_when_told(piece), "ranks:0,0", machine, options).seconds, 2e-6, 1e-6);
}

TEST(Kernel, AnOperationItsBytesAndASleepTakeOfACore) {
    SimMachine machine = kernel_machine();
    const double bare = replayed(stream(1, piece), "node:2", machine).seconds;
    machine.start_seconds = 20e-6;
    EXPECT_NEAR(replayed(stream(1, piece), "node:2", machine).seconds, bare + 20e-6, 1e-9);
    machine.socket_rate = 1e10;  // 10 us for what the socket takes
    EXPECT_NEAR(replayed(stream(1, piece), "node:2", machine).seconds, bare + 30e-6, 1e-9);
    machine.socket_bytes = piece / 2;
    EXPECT_NEAR(replayed(stream(1, piece), "node:2", machine).seconds, bare + 25e-6, 1e-9);
    // The receiver has polled and sleeps when it comes. One of three ranks has nothing to do.
    const auto three = group(3, [](int rank, Builder& builder) {
        if (rank == 0) builder.send(1, {Buffer::in, 0, piece});
        if (rank == 1) builder.recv(0, {Buffer::out, 0, piece});
    });
    const auto seconds = [&] { return replayed(three, "node:3", machine).seconds; };
    machine = kernel_machine();
    machine.shared_cores = 2;
    machine.poll_seconds = 1e-6;
    machine.post_seconds = machine.complete_seconds = 1e-9;
    const double awake = seconds();
    machine.sleep_seconds = 15e-6;
    EXPECT_NEAR(seconds(), awake + 15e-6, 1e-9);
    // Nobody wakes it: it naps for 15 us and looks for 5 from 1 us on, and the message is there after 110.
    machine.sleep_seconds = 0;
    machine.naps = true;
    machine.look_seconds = 5e-6;
    EXPECT_NEAR(seconds(), 121e-6, 2e-7);
    machine.poll_seconds = 1e-3;
    EXPECT_NEAR(seconds(), awake, 1e-9);
}

TEST(Kernel, WhoHasComputedWasNotAsleep) {
    // Rank 1 gets a message after 110 us. One of three ranks has nothing to do.
    const auto three = group(3, [](int rank, Builder& builder) {
        if (rank == 0) builder.send(1, {Buffer::in, 0, piece});
        if (rank == 1) builder.recv(0, {Buffer::out, 0, piece});
    });
    SimMachine machine = kernel_machine();
    machine.shared_cores = 2;
    machine.poll_seconds = 1e-6;
    machine.post_seconds = machine.complete_seconds = 1e-9;
    machine.naps = true;  // of 15 us
    machine.look_seconds = 5e-6;
    const auto seconds = [&](double computed) {
        ReplayOptions options;
        options.compute_by_rank = {0, computed, 0};
        return replayed(three, "node:3", machine, options).seconds;
    };
    // It looks at once, or naps from when it has looked for the first time.
    EXPECT_NEAR(seconds(10e-3), 10e-3, 1e-6);
    EXPECT_NEAR(seconds(52e-6), 113e-6, 3e-7);
    machine.naps = false;
    machine.sleep_seconds = 15e-6;
    EXPECT_NEAR(seconds(10e-3), 10e-3, 1e-6);
}

}  // namespace
}  // namespace thalweg::sim
