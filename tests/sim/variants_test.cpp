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

}  // namespace
}  // namespace thalweg::sim
