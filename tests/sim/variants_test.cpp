// Schedules as programs run them in other ways than the engine: again and again, and in turn.
#include "sim/variants.h"

#include "replayed.h"

namespace thalweg::sim {
namespace {

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

// What a rank of four sends and receives by distance, two sends at a time.
Schedule by_distance(int rank) {
    constexpr std::uint64_t bytes = 100;
    Builder builder(rank, 4);
    std::vector<StepId> sends;
    const auto block = [](int peer) { return static_cast<std::uint64_t>(peer) * bytes; };
    for (int away = 1; away < 4; ++away) {
        const int to = (rank + away) % 4, from = (rank + 4 - away) % 4;
        std::vector<StepId> after;
        if (sends.size() >= 2) after.push_back(sends[sends.size() - 2]);
        sends.push_back(builder.send(to, {Buffer::in, block(to), bytes}, after));
        builder.recv(from, out(block(from), bytes));
    }
    builder.copy(out(block(rank), bytes), {Buffer::in, block(rank), bytes});
    return std::move(builder).finish();
}

std::vector<int> peers(const Schedule& schedule, StepKind kind) {
    std::vector<int> found;
    for (const Step& step : schedule.steps())
        if (step.kind == kind) found.push_back(step.peer);
    return found;
}

TEST(Replay, PostedAsALibraryDoes) {
    using List = std::vector<int>;
    const Schedule own = by_distance(2);
    EXPECT_EQ(peers(posted(own, Posting::as_built), StepKind::send), (List{3, 0, 1}));
    const Schedule listed = posted(own, Posting::listed), falling = posted(own, Posting::falling);
    EXPECT_EQ(peers(listed, StepKind::recv), (List{0, 1, 3}));
    EXPECT_EQ(peers(listed, StepKind::send), (List{0, 1, 3}));
    EXPECT_EQ(peers(falling, StepKind::recv), (List{3, 0, 1}));
    EXPECT_EQ(peers(falling, StepKind::send), (List{1, 0, 3}));
    for (const Schedule* made : {&listed, &falling}) {
        ASSERT_EQ(made->steps().size(), own.steps().size());
        for (StepId id = 0; id < 3; ++id) EXPECT_EQ(made->steps()[id].kind, StepKind::recv);
        for (StepId id = 0; id < 7; ++id)  // the third send waits for the first
            EXPECT_EQ(std::vector<StepId>(made->after(id).begin(), made->after(id).end()),
                      id == 5 ? std::vector<StepId>{3} : std::vector<StepId>{});
        for (const Step& step : made->steps())
            if (step.kind == StepKind::send) {
                EXPECT_EQ(step.source.offset, 100u * static_cast<unsigned>(step.peer));
            }
    }
}

TEST(Replay, EverybodyToTheSameRankFirstIsSlower) {
    // Rank 3 has nothing to receive while three send to rank 0.
    const auto all = [](Posting posting) {
        std::vector<Schedule> schedules;
        for (int rank = 0; rank < 4; ++rank) schedules.push_back(posted(by_distance(rank), posting));
        SimMachine machine = round_machine();
        machine.link_rate = 1e5;  // a message takes a millisecond
        machine.kernel_bytes = 100;
        machine.kernel_rate = 1e15;
        machine.socket_bytes = 1e9;
        const Outcome outcome = replayed(schedules, "node:4", machine);
        EXPECT_EQ(outcome.why, "");
        return outcome.seconds;
    };
    EXPECT_NEAR(all(Posting::as_built), 3e-3, 1e-4);
    EXPECT_NEAR(all(Posting::falling), 3e-3, 1e-4);
    EXPECT_NEAR(all(Posting::listed), 5e-3, 1e-4);
}

}  // namespace
}  // namespace thalweg::sim
