// Which way each call runs, by its number and the verdicts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "model/trial.h"

namespace thalweg {
namespace {

constexpr double worth = 0.97;
using Turn = TrialTurns::Turn;

// Every rank counts so, whatever it knows of the others. Of three calls in a row one runs as a schedule.
void follow_turns(std::uint64_t between, const std::vector<std::uint64_t>& apart) {
    TrialTurns turns(between);
    for (std::uint64_t call = 0; call < TrialTurns::calls_before; ++call)
        EXPECT_EQ(turns.next(), call < TrialTurns::calls_before / 2 ? Turn::native : Turn::native_timed);
    EXPECT_EQ(turns.next(), Turn::first_schedule);
    std::uint64_t call = 0;  // since then
    for (const std::uint64_t calls : apart) {
        TrialVerdict verdict;
        verdict.period = 3;
        for (std::uint64_t phase = 0; phase < 3; ++phase)
            verdict.takes_schedule[phase] = (call + phase) % 3 == 1;
        for (int i = 0; i < trial_calls; ++i, ++call) {
            EXPECT_EQ(turns.next(), tried_as_schedule(i) ? Turn::tried_schedule : Turn::tried_native);
            EXPECT_EQ(turns.place(), static_cast<std::size_t>(i));
        }
        EXPECT_EQ(turns.next(), Turn::agree);
        turns.decide(verdict);
        for (const std::uint64_t end = call + calls; call < end; ++call)
            EXPECT_EQ(turns.next(), call % 3 == 1 ? Turn::schedule : Turn::native) << call;
    }
    turns.give_up();
    for (int i = 0; i < 3000; ++i) EXPECT_EQ(turns.next(), Turn::native);
}

// Soon after the first verdict for schedules, then later.
TEST(model_trial, turns_follow_the_number_of_the_call) {
    follow_turns(TrialTurns::calls_between, {100, 200, 400, 800, 1000, 1000});
    follow_turns(TrialTurns::calls_between_on_one_host, {100, 200, 200});
}

// How many calls follow a verdict.
std::uint64_t calls_behind(TrialTurns& turns, const TrialVerdict& verdict) {
    while (turns.next() != Turn::agree) {
    }
    turns.decide(verdict);
    std::uint64_t calls = 0;
    for (Turn turn = turns.next(); turn != Turn::tried_native && turn != Turn::tried_schedule;
         turn = turns.next())
        ++calls;
    return calls;
}
TrialVerdict verdict_of(bool takes_schedule, double loss) {
    TrialVerdict verdict;
    verdict.takes_schedule[0] = takes_schedule;
    verdict.loss = loss;
    if (!takes_schedule) verdict.native_loss = loss;
    return verdict;
}
TrialVerdict unknown() {
    TrialVerdict verdict;
    verdict.is_known = false;
    return verdict;
}

// What the library refuses one rank, which makes it anew, leaves it where the others are.
TEST(model_trial, a_call_that_is_taken_back_counts_for_nothing) {
    TrialTurns others, refused;
    int verdicts = 0;
    for (int call = 0; call < 3000; ++call) {
        const Turn turn = others.next();
        EXPECT_EQ(refused.meets_next(), turn == Turn::first_schedule || turn == Turn::agree) << call;
        if (!refused.meets_next()) {
            refused.next();
            refused.take_back();
        }
        EXPECT_EQ(refused.next(), turn) << call;
        if (turn != Turn::agree) continue;
        const TrialVerdict verdict = verdict_of(++verdicts % 2 != 0, 1.1);
        others.decide(verdict);
        refused.decide(verdict);
    }
    EXPECT_GT(verdicts, 1);
    others.give_up();
    others.next();
    others.take_back();
    EXPECT_EQ(others.next(), Turn::native);
}

// Trials of 264 calls' time are repeated every 26400 calls, but native calls that were delayed look the same.
TEST(Trial, MuchInFavourOfSchedulesIsConfirmed) {
    TrialTurns turns;
    EXPECT_EQ(calls_behind(turns, verdict_of(true, 34)), 1000u);
    EXPECT_EQ(calls_behind(turns, verdict_of(true, 34)), 52800u) << "it pays for both";
    EXPECT_EQ(calls_behind(turns, verdict_of(true, 34)), 26400u);
    TrialTurns delayed;
    EXPECT_EQ(calls_behind(delayed, verdict_of(true, 34)), 1000u);
    EXPECT_EQ(calls_behind(delayed, verdict_of(false, 1.5)), 1000u);
    EXPECT_EQ(calls_behind(delayed, verdict_of(true, 34)), 1000u) << "anew";
    TrialTurns now_and_then;
    EXPECT_EQ(calls_behind(now_and_then, verdict_of(true, 1.25)), 200u);
    EXPECT_EQ(calls_behind(now_and_then, verdict_of(true, 34)), 200u) << "the less of two counts";
    // Schedules that are as much slower cost what they cost.
    TrialTurns slower;
    EXPECT_EQ(calls_behind(slower, verdict_of(false, 34)), 26400u);
    TrialVerdict both = verdict_of(true, 34);
    both.period = 2;
    both.native_loss = 34;
    TrialTurns of_two;
    EXPECT_EQ(calls_behind(of_two, both), 26400u);
}

TEST(Trial, WhatIsNotKnownGoesOnAndIsTriedSoon) {
    const auto is_ours = [](TrialTurns& turns, const TrialVerdict& verdict) {
        while (turns.next() != Turn::agree) {
        }
        turns.decide(verdict);
        return turns.next() == Turn::schedule;
    };
    TrialTurns native;
    EXPECT_FALSE(is_ours(native, unknown()));
    EXPECT_TRUE(is_ours(native, verdict_of(true, 1.1)));
    EXPECT_TRUE(is_ours(native, unknown()));
    EXPECT_FALSE(is_ours(native, verdict_of(false, 1.1)));
    EXPECT_FALSE(is_ours(native, unknown()));

    TrialTurns turns(200);
    for (const std::uint64_t calls : {100, 200, 400, 800, 1600, 1600})
        EXPECT_EQ(calls_behind(turns, unknown()), calls);
    EXPECT_EQ(calls_behind(turns, verdict_of(false, 1)), 200u);
    EXPECT_EQ(calls_behind(turns, unknown()), 100u);
}

// Phases of the loop's own: an odd number of calls lies between two trials.
TEST(Trial, WhatGoesOnKeepsThePhasesOfTheLoop) {
    TrialTurns turns;
    std::uint64_t call = 0;
    const auto next = [&] {
        ++call;
        return turns.next();
    };
    const auto until_agreed = [&] {
        while (next() != Turn::agree) {
        }
        --call;  // which is asked about again
    };
    until_agreed();
    TrialVerdict verdict;
    verdict.period = 2;
    const std::uint64_t first = call - trial_calls;
    verdict.takes_schedule = {first % 2 == 1, first % 2 == 0};
    verdict.chosen_seconds = 1;
    verdict.agreements_seconds = 1.505;  // 151 calls
    turns.decide(verdict);
    until_agreed();
    turns.decide(unknown());
    for (int i = 0; i < 20; ++i) {
        const bool odd = call % 2 == 1;
        EXPECT_EQ(next(), odd ? Turn::schedule : Turn::native) << i;
    }
}

// A program's calls, whose seconds are known.
struct Program {
    TrialTurns turns;
    std::array<TrialCall, trial_calls> tried{};
    double seconds = 0;
    int ours = 0;

    void call(std::uint64_t bytes, double native_seconds, double schedule_seconds) {
        Turn turn = turns.next();
        if (turn == Turn::agree) {
            turns.decide(judge(tried, worth));
            turn = turns.next();
        }
        const bool is_ours =
            turn == Turn::first_schedule || turn == Turn::tried_schedule || turn == Turn::schedule;
        const double took = is_ours ? schedule_seconds : native_seconds;
        if (turn == Turn::tried_native || turn == Turn::tried_schedule) tried[turns.place()] = {took, bytes};
        seconds += took;
        ours += is_ours;
    }
};

// Large ones are faster as schedules, small ones that follow natively.
TEST(Trial, SizesThatChangeForGoodAreSoonTriedAgain) {
    Program program;
    for (int call = 0; call < 30; ++call) program.call(1 << 20, 1e-3, 0.9e-3);
    program.ours = 0;
    for (int call = 0; call < 1000; ++call) program.call(64, 10e-6, 15e-6);
    EXPECT_LE(program.ours, 110);
    EXPECT_GE(program.ours, 90) << "the trial was not to come yet";
}

// A hundredth of what all calls would take in the faster way, and what comes before the first verdict.
TEST(Trial, TrialsStayWithinTheirShare) {
    constexpr int calls = 100'000;
    for (const double schedule : {0.1, 0.5, 0.9, 0.96, 1.0, 1.5, 5.0, 30.0}) {
        Program program;
        for (int call = 0; call < TrialTurns::calls_until_verdict; ++call) program.call(64, 1, schedule);
        program.seconds = 0;
        for (int call = 0; call < calls; ++call) program.call(64, 1, schedule);
        EXPECT_LE(program.seconds, 1.011 * calls * std::min(schedule, 1.0)) << schedule;
    }
}

TEST(model_trial, a_set_up_that_is_put_off_comes_at_its_call) {
    TrialTurns turns;
    EXPECT_EQ(turns.native_left(), 0u);
    EXPECT_EQ(turns.put_off_left(), 0u);
    for (std::uint64_t call = 0; call < TrialTurns::calls_before; ++call) turns.next();
    EXPECT_EQ(turns.next(), Turn::first_schedule);
    EXPECT_EQ(turns.calls_seen(), 9u);
    EXPECT_TRUE(turns.may_be_put_off());
    turns.put_off(20);
    EXPECT_FALSE(turns.may_be_put_off());
    EXPECT_EQ(turns.turn(), Turn::native);
    EXPECT_FALSE(turns.is_first_trial());
    EXPECT_EQ(turns.put_off_left(), 11u);
    for (int call = 9; call < 15; ++call) EXPECT_EQ(turns.next(), Turn::native) << call;
    EXPECT_EQ(turns.put_off_left(), 5u);
    turns.passed_on(5);
    EXPECT_EQ(turns.put_off_left(), 0u);
    EXPECT_TRUE(turns.is_first_next());
    EXPECT_EQ(turns.next(), Turn::first_schedule);
    EXPECT_EQ(turns.calls_seen(), 21u);
    EXPECT_TRUE(turns.is_first_trial());
    for (int i = 0; i < trial_calls; ++i)
        EXPECT_EQ(turns.next(), tried_as_schedule(i) ? Turn::tried_schedule : Turn::tried_native);
    EXPECT_EQ(turns.next(), Turn::agree);
    turns.decide(verdict_of(false, 1.5));
    while (!runs_natively(turns.next()) || turns.native_left() != 0) {
    }
    turns.next();
    EXPECT_FALSE(turns.is_first_trial()) << "a later one is under way";
}

// The first schedule comes again as late as a trial would, later each time, and is put off no more: as many
// calls have been as its set-up could ask for.
TEST(model_trial, calls_are_looked_at_again) {
    TrialTurns turns(TrialTurns::calls_between_on_one_host);
    EXPECT_EQ(turns.unasked(), TrialTurns::calls_before - TrialTurns::timed);
    for (std::uint64_t call = 0; call <= TrialTurns::calls_before; ++call) turns.next();
    EXPECT_TRUE(turns.may_be_put_off());
    for (const std::uint64_t between : {200, 400, 800, 1600, 1600}) {
        for (const std::uint64_t passed :
             {std::uint64_t{0}, std::uint64_t{150}, between - TrialTurns::timed}) {
            TrialTurns looked = turns;
            looked.look_again();
            EXPECT_EQ(looked.turn(), Turn::native);
            EXPECT_EQ(looked.unasked(), between - TrialTurns::timed);
            looked.passed_on(passed);
            EXPECT_EQ(looked.unasked(), between - TrialTurns::timed - passed);
            for (std::uint64_t call = passed; call < between - TrialTurns::timed; ++call)
                EXPECT_EQ(looked.next(), Turn::native) << call;
            for (std::size_t place = 0; place < TrialTurns::timed; ++place) {
                EXPECT_EQ(looked.next(), Turn::native_timed);
                EXPECT_EQ(looked.timed_place(), place);
            }
            EXPECT_EQ(looked.unasked(), 0u);
            EXPECT_EQ(looked.next(), Turn::first_schedule);
            EXPECT_FALSE(looked.may_be_put_off());
        }
        turns.look_again();
        while (turns.next() != Turn::first_schedule) {
        }
    }
    EXPECT_EQ(turns.next(), Turn::tried_schedule);
}

// Where no table speaks any more for what was decided, nothing is a schedule up to the next look; behind that
// a verdict for schedules takes them where there were none.
TEST(model_trial, a_verdict_is_forgotten_where_calls_are_looked_at_again) {
    TrialTurns turns(TrialTurns::calls_between_on_one_host);
    TrialVerdict verdict;
    verdict.takes_schedule[0] = true;
    const auto until_verdict = [&] {
        while (turns.next() != Turn::agree) {
        }
        turns.decide(verdict);
    };
    until_verdict();
    EXPECT_EQ(turns.next(), Turn::schedule);
    turns.look_again();
    EXPECT_EQ(turns.turn(), Turn::native);
    for (std::uint64_t call = TrialTurns::timed; call < TrialTurns::calls_between_on_one_host; ++call)
        EXPECT_EQ(turns.next(), Turn::native) << call;
    for (std::uint64_t call = 0; call < TrialTurns::timed; ++call)
        EXPECT_EQ(turns.next(), Turn::native_timed) << call;
    EXPECT_EQ(turns.next(), Turn::first_schedule);
    until_verdict();
    for (std::uint64_t call = 0; call < TrialTurns::soonest; ++call)
        EXPECT_EQ(turns.next(), Turn::schedule) << call;
    EXPECT_EQ(turns.next(), Turn::tried_schedule);
}

// What a verdict leaves to the native library needs no asking, and is followed by the next trial where it
// would have been otherwise.
TEST(Trial, NativeCallsBehindAVerdictMayPassUnasked) {
    for (const bool taken : {false, true})
        for (const std::uint64_t asked : {1, 2, 50}) {
            TrialTurns turns(200);
            for (int call = 0; call < static_cast<int>(TrialTurns::calls_before) + 1 + trial_calls; ++call)
                turns.next();
            EXPECT_EQ(turns.next(), Turn::agree);
            TrialVerdict verdict;
            verdict.period = 2;
            verdict.takes_schedule = {false, taken, true, true};
            turns.decide(verdict);
            for (std::uint64_t call = 0; call < asked; ++call) turns.next();
            const std::uint64_t left = turns.native_left();
            EXPECT_EQ(left, taken ? 0 : 200 - asked - 1);
            if (taken) continue;
            turns.passed_on(left);
            EXPECT_EQ(turns.native_left(), 0u);
            EXPECT_EQ(turns.next(), Turn::native);
            const Turn first = turns.next();
            EXPECT_TRUE(first == Turn::tried_native || first == Turn::tried_schedule);
        }
}

}  // namespace
}  // namespace thalweg
