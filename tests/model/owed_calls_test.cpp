// What trials on communicators that are gone leave to the native library.
#include "model/owed_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "model/trial.h"

namespace thalweg {
namespace {

constexpr TriedCalls broadcasts{1, 17, 0x5a};
constexpr std::uint64_t most = 8000;

TEST(model_owed_calls, a_verdict_counts_for_the_calls_of_its_kind) {
    OwedCalls owed;
    EXPECT_EQ(owed.of(broadcasts), 0u);
    owed.pass(broadcasts, 3);
    EXPECT_EQ(owed.of(broadcasts), 0u) << "nothing was decided";
    owed.decide(broadcasts, 1000);
    owed.pass(broadcasts, 30);
    EXPECT_EQ(owed.of(broadcasts), 970u);
    for (const TriedCalls& others :
         {TriedCalls{2, 17, 0x5a}, TriedCalls{1, 18, 0x5a}, TriedCalls{1, 17, 0x5b}}) {
        EXPECT_EQ(owed.of(others), 0u);
        owed.pass(others, 1000);
    }
    EXPECT_EQ(owed.of(broadcasts), 970u);
    owed.pass(broadcasts, 2000);
    EXPECT_EQ(owed.of(broadcasts), 0u);
    owed.decide(broadcasts, 1000);
    owed.decide(broadcasts, 0);
    EXPECT_EQ(owed.of(broadcasts), 0u) << "the latest one takes schedules";
}

TEST(model_owed_calls, trials_without_a_verdict_come_later_each_time) {
    OwedCalls owed;
    for (const std::uint64_t calls : {100, 200, 400, 800, 1600, 3200, 6400, 8000, 8000}) {
        owed.break_off(broadcasts, most);
        EXPECT_EQ(owed.of(broadcasts), calls);
        owed.pass(broadcasts, calls);
        EXPECT_EQ(owed.of(broadcasts), 0u);
    }
    owed.decide(broadcasts, 0);
    owed.break_off(broadcasts, most);
    EXPECT_EQ(owed.of(broadcasts), 100u) << "a verdict came between";
    owed.decide(broadcasts, 1000);
    owed.break_off(broadcasts, most);
    EXPECT_EQ(owed.of(broadcasts), 1000u) << "what was owed before is owed still";
    for (const std::uint64_t calls : {2000, 4000, 8000, 8000}) {
        owed.pass(broadcasts, most);
        owed.break_off(broadcasts, most);
        EXPECT_EQ(owed.of(broadcasts), calls) << "one like this costs as much as that with the verdict";
    }
    owed.decide(broadcasts, 30'000);
    owed.pass(broadcasts, 30'000);
    owed.break_off(broadcasts, most);
    EXPECT_EQ(owed.of(broadcasts), 30'000u) << "that verdict says what it may cost";
}

// What was asked about for the longest gives way.
TEST(model_owed_calls, they_are_bounded) {
    OwedCalls owed;
    const auto of_hosts = [](std::uint64_t topology) { return TriedCalls{1, 17, topology}; };
    for (std::uint64_t i = 0; i < OwedCalls::places; ++i) owed.decide(of_hosts(i), 1000 + i);
    EXPECT_EQ(owed.of(of_hosts(0)), 1000u);
    owed.decide(of_hosts(OwedCalls::places), 5);
    EXPECT_EQ(owed.of(of_hosts(0)), 1000u);
    EXPECT_EQ(owed.of(of_hosts(1)), 0u);
    EXPECT_EQ(owed.of(of_hosts(2)), 1002u);
    EXPECT_EQ(owed.of(of_hosts(OwedCalls::places)), 5u);
}

// Calls on one communicator after another, whose schedules take `loss` times as long as native ones. Each of
// its ranks has an account of its own and may have been elsewhere, too: they agree on the most.
struct Program {
    static constexpr double loss = 2;
    std::array<OwedCalls, 2> ranks;
    std::uint64_t calls = 0;
    double seconds = 0;

    // Returns how many were schedules.
    int communicator(std::uint64_t count) {
        using Turn = TrialTurns::Turn;
        TrialTurns turns;
        std::array<TrialCall, trial_calls> tried{};
        int ours = 0;
        std::uint64_t made = 0, told = 0;
        bool has_room = false;
        const auto tell = [&] {
            for (OwedCalls& rank : ranks) rank.pass(broadcasts, made - told);
            told = made;
        };
        while (made < count) {
            Turn turn = turns.next();
            ++made;
            if (turn == Turn::agree) {
                turns.decide(judge(tried, 0.97));
                tell();
                for (OwedCalls& rank : ranks) rank.decide(broadcasts, turns.native_left());
                turn = turns.next();
            }
            if (turn == Turn::first_schedule && !has_room) {
                has_room = true;
                tell();
                const std::uint64_t owed = std::max(ranks[0].of(broadcasts), ranks[1].of(broadcasts));
                if (owed != 0) {
                    turns.put_off(turns.calls_seen() + owed);
                    turn = Turn::native;
                    EXPECT_EQ(turns.put_off_left(), owed);
                }
            }
            const double took = runs_natively(turn) ? 1 : loss;
            if (turn == Turn::tried_native || turn == Turn::tried_schedule) tried[turns.place()] = {took, 64};
            seconds += took;
            ours += !runs_natively(turn);
        }
        tell();
        if (turns.is_first_trial())
            for (OwedCalls& rank : ranks) rank.break_off(broadcasts, turns.longest_unknown());
        calls += count;
        return ours;
    }
};

// The first trial of all is not within its share, nor are those that ended with their communicator at first.
TEST(model_owed_calls, many_communicators_lose_no_more_than_one) {
    for (const std::uint64_t count : {17, 30, 34, 60, 500}) {
        Program program;
        while (program.calls < 10'000) program.communicator(count);
        EXPECT_LE(program.seconds, 1.01 * static_cast<double>(program.calls)) << count;
        const double before = program.seconds - static_cast<double>(program.calls);
        while (program.calls < 100'000) program.communicator(count);
        const double lost = program.seconds - static_cast<double>(program.calls) - before;
        EXPECT_LE(lost, 0.01 * 90'000) << count;
        EXPECT_GT(lost, 0) << count << ": it is tried again";
    }
}

// One rank that was not on the first communicator does as the others do; who has been on another one, too,
// and owes more for that, holds all of them back, until it has made these calls.
TEST(model_owed_calls, ranks_agree_on_the_most) {
    Program program;
    program.ranks[0].decide(broadcasts, 100);
    EXPECT_EQ(program.communicator(90), 0);
    EXPECT_EQ(program.ranks[0].of(broadcasts), 10u);
    EXPECT_GT(program.communicator(90), trial_calls / 2);
}

}  // namespace
}  // namespace thalweg
