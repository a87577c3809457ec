// Two ways in turns, judged by times that are known.
#include "model/trial.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "directions.h"
#include "model/median.h"

namespace thalweg {
namespace {

constexpr double worth = 0.97;
using Calls = std::array<TrialCall, trial_calls>;

// Call i has bytes_of(i) bytes and takes native_of(bytes) or schedule_of(bytes) seconds.
template <typename Bytes, typename Native, typename Schedule>
Calls calls_of(Bytes bytes_of, Native native_of, Schedule schedule_of) {
    Calls calls;
    for (int i = 0; i < trial_calls; ++i) {
        TrialCall& call = calls[static_cast<std::size_t>(i)];
        call.bytes = bytes_of(i);
        call.seconds = tried_as_schedule(i) ? schedule_of(call.bytes) : native_of(call.bytes);
    }
    return calls;
}
double linear(std::uint64_t bytes) { return 1e-5 + 1e-8 * static_cast<double>(bytes); }

TEST(model_trial, every_phase_of_every_period_tries_both_ways) {
    int schedules = 0;
    for (int i = 0; i < trial_calls; ++i) schedules += tried_as_schedule(i);
    EXPECT_EQ(schedules, trial_calls / 2);
    for (int period = 1; period <= longest_period; ++period)
        for (int phase = 0; phase < period; ++phase) {
            int tried[2] = {0, 0};
            for (int i = phase; i < trial_calls; i += period) ++tried[tried_as_schedule(i)];
            EXPECT_GE(tried[0], 2) << "period " << period << ", phase " << phase;
            EXPECT_GE(tried[1], 2) << "period " << period << ", phase " << phase;
            EXPECT_LE(std::abs(tried[0] - tried[1]), 1) << "period " << period << ", phase " << phase;
        }
}

// Where all natives came before all schedules, what changes meanwhile would be taken for what they cost.
TEST(model_trial, neither_way_comes_before_the_other) {
    constexpr double most_apart = 4;  // calls
    for (int period = 1; period <= longest_period; ++period)
        for (int phase = 0; phase < period; ++phase) {
            std::vector<double> places[2];
            for (int i = phase; i < trial_calls; i += period) places[tried_as_schedule(i)].push_back(i);
            const auto mean = [&](int way) {
                double sum = 0;
                for (const double place : places[way]) sum += place;
                return sum / static_cast<double>(places[way].size());
            };
            EXPECT_LE(std::abs(mean(0) - mean(1)), most_apart) << "period " << period << ", phase " << phase;
            EXPECT_LE(std::abs(median_of(places[0]) - median_of(places[1])), most_apart)
                << "period " << period << ", phase " << phase;
        }
}

TEST(model_trial, one_size_goes_to_the_faster_way) {
    const auto size = [](int i) { return 100'000 + static_cast<std::uint64_t>(i) * 100; };
    const auto half = [](std::uint64_t bytes) { return linear(bytes) / 2; };
    const TrialVerdict faster = judge(calls_of(size, linear, half), worth);
    EXPECT_EQ(faster.period, 1);
    EXPECT_TRUE(faster.takes_schedule[0]);
    EXPECT_NEAR(faster.loss, 2, 0.01);
    const TrialVerdict slower = judge(calls_of(size, half, linear), worth);
    EXPECT_FALSE(slower.takes_schedule[0]);
    EXPECT_NEAR(slower.loss, 2, 0.01);
    EXPECT_FALSE(judge(calls_of(size, linear, linear), worth).takes_schedule[0]) << "no gain is no reason";
}

TEST(model_trial, a_call_with_a_root_takes_time_from_when_the_root_is_there) {
    const auto took = [](std::uint64_t began, std::uint64_t ended, std::uint64_t root) {
        return ns_from_root({began, ended, false}, root);
    };
    EXPECT_EQ(took(1000, 5000, 2000), 3000u);  // it waited for the root
    EXPECT_EQ(took(1000, 5000, 400), 4000u);   // the root waited for it
    EXPECT_EQ(took(1000, 5000, 0), 4000u);     // of none is anything known
    EXPECT_EQ(took(1000, 5000, 6000), 0u);
}

TEST(model_trial, one_outlier_decides_nothing) {
    const auto size = [](int) { return std::uint64_t{5000}; };
    Calls calls = calls_of(size, linear, [](std::uint64_t bytes) { return linear(bytes) * 0.8; });
    for (int i = 0; i < trial_calls; ++i)
        if (tried_as_schedule(i)) {
            calls[static_cast<std::size_t>(i)].seconds = 1;
            break;
        }
    EXPECT_TRUE(judge(calls, worth).takes_schedule[0]);
}

// Small ones are faster natively, large ones as schedules: a loop of both has two phases.
TEST(model_trial, sizes_in_turn_are_judged_apart) {
    const auto schedule = [](std::uint64_t bytes) { return bytes > 1000 ? linear(bytes) * 0.6 : 1e-3; };
    for (int period = 2; period <= longest_period; ++period) {
        const auto size = [period](int i) { return i % period == 0 ? std::uint64_t{1} << 20 : 8; };
        const TrialVerdict verdict = judge(calls_of(size, linear, schedule), worth);
        EXPECT_EQ(verdict.period, period);
        for (int phase = 0; phase < period; ++phase)
            EXPECT_EQ(verdict.takes_schedule[static_cast<std::size_t>(phase)], phase == 0);
    }
}

TEST(model_trial, sizes_in_no_order_are_weighed_together) {
    const auto size = [](int i) {
        constexpr int order[trial_calls] = {0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1, 0, 0};
        return order[i] ? std::uint64_t{1} << 20 : 8;
    };
    const auto much_better = [](std::uint64_t bytes) { return bytes > 1000 ? linear(bytes) / 2 : 2e-5; };
    const auto much_worse = [](std::uint64_t bytes) { return bytes > 1000 ? linear(bytes) * 0.9 : 1; };
    EXPECT_EQ(judge(calls_of(size, linear, much_better), worth).period, 1);
    EXPECT_TRUE(judge(calls_of(size, linear, much_better), worth).takes_schedule[0]);
    EXPECT_FALSE(judge(calls_of(size, linear, much_worse), worth).takes_schedule[0]);
}

TEST(model_trial, sizes_that_never_return_are_native) {
    const auto size = [](int i) { return std::uint64_t{1} << 2 * i; };
    const auto nothing = [](std::uint64_t) { return 1e-9; };
    const TrialVerdict verdict = judge(calls_of(size, linear, nothing), worth);
    EXPECT_FALSE(verdict.takes_schedule[0]);
    EXPECT_FALSE(verdict.is_known);
}

// 8 agreements of 1 ms, a quarter of each call to be gained: 40 ms pay in one call, 1 ms in 32.
TEST(model_trial, a_set_up_waits_until_it_would_have_paid) {
    EXPECT_EQ(calls_until_set_up({40e-3, 1e-3, 0}, 9), 9u);
    EXPECT_EQ(calls_until_set_up({1e-3, 1e-3, 0}, 9), 32u);
    EXPECT_EQ(calls_until_set_up({1e-3, 1e-3, 5e-3}, 9), 20u) << "what was measured counts";
    EXPECT_EQ(calls_until_set_up({21e-6, 1e-6, 0, set_up_in_memory_seconds}, 9), 39u)
        << "memory is no agreement";
    EXPECT_EQ(calls_until_set_up({21e-6, 1e-6, 50e-6, set_up_in_memory_seconds}, 9), 10u);
    EXPECT_EQ(calls_until_set_up({1e-6, 1e-3, 0}, 9), TrialTurns::latest_set_up);
    EXPECT_EQ(calls_until_set_up({1e-6, 1e-3, 0}, 100), 100u);
    EXPECT_EQ(calls_until_set_up({1e-6, 1e-3, 5e-3}, 9), TrialTurns::latest_set_up);
    EXPECT_EQ(calls_until_set_up({1e-6, 1e-3, 0, 0, false}, 9), TrialTurns::latest_set_up) << "a guess";
    EXPECT_NEAR(static_cast<double>(calls_until_set_up({1e-6, 1e-3, 5e-3, 0, false}, 9)), 20000, 1)
        << "5 ms pay in 20000 calls of 1 us";
    EXPECT_EQ(calls_until_set_up({0, 1e-3, 0}, 9), 9u) << "no call was timed";
}

// What one rank counts on, the others do too, whatever their threads' modes are.
TEST(model_trial, what_follows_is_the_same_in_every_direction_of_rounding) {
    const auto size = [](int i) { return std::uint64_t{i % 2 == 0 ? 1000u : 70'000u}; };
    const auto schedule = [](std::uint64_t bytes) { return bytes > 1000 ? linear(bytes) * 0.9 : 7e-5; };
    const Calls calls = calls_of(size, linear, schedule);
    TrialVerdict nearest = judge(calls, worth);
    nearest.agreements_seconds = 3e-3;
    const std::uint64_t next = calls_until_next(nearest, 1);
    test::in_each_direction([&](int) {
        EXPECT_EQ(calls_until_set_up({1e-3, 1e-3, 0}, 9), 32u);
        TrialVerdict verdict = judge(calls, worth);
        verdict.agreements_seconds = nearest.agreements_seconds;
        EXPECT_EQ(verdict.takes_schedule, nearest.takes_schedule);
        EXPECT_EQ(verdict.loss, nearest.loss);
        EXPECT_EQ(verdict.chosen_seconds, nearest.chosen_seconds);
        EXPECT_EQ(calls_until_next(verdict, 1), next);
        TrialTurns turns;
        turns.decide(verdict);
        TrialTurns expected;
        expected.decide(nearest);
        EXPECT_EQ(turns.native_left(), expected.native_left());
    });
}

// Networks and cores whose speed changes by half a hundredth per call, either way, move no verdict: ours
// takes as long as the native call, or 0.94 of that.
TEST(model_trial, what_changes_steadily_decides_nothing) {
    for (int period = 1; period <= longest_period; ++period)
        for (const double per_call : {-0.005, 0.005})
            for (const double ours : {1.0, 0.94}) {
                Calls calls;
                for (int i = 0; i < trial_calls; ++i)
                    calls[static_cast<std::size_t>(i)] = {
                        1e-4 * (1 + per_call * i) * (tried_as_schedule(i) ? ours : 1),
                        std::uint64_t{1} << i % period};
                const TrialVerdict verdict = judge(calls, worth);
                EXPECT_EQ(verdict.period, period);
                for (int phase = 0; phase < period; ++phase)
                    EXPECT_EQ(verdict.takes_schedule[static_cast<std::size_t>(phase)], ours < 1)
                        << "period " << period << ", phase " << phase << ", " << per_call << " per call";
            }
}

// Of 100 us natively, 150 us as a schedule, while native calls take 10 ms because something else ran: one of
// all, or two of four.
TEST(model_trial, calls_that_were_delayed_decide_nothing) {
    for (int period = 1; period <= longest_period; ++period)
        for (int first = 0; first < trial_calls; ++first)
            for (int second = first; second < trial_calls; ++second) {
                if (tried_as_schedule(first) || tried_as_schedule(second)) continue;
                if (second != first && period > 2) continue;  // two of two are all
                Calls calls;
                for (int i = 0; i < trial_calls; ++i)
                    calls[static_cast<std::size_t>(i)] = {tried_as_schedule(i)        ? 150e-6
                                                          : i == first || i == second ? 10e-3
                                                                                      : 100e-6,
                                                          std::uint64_t{1} << i % period};
                const TrialVerdict verdict = judge(calls, worth);
                for (int phase = 0; phase < period; ++phase)
                    EXPECT_FALSE(verdict.takes_schedule[static_cast<std::size_t>(phase)])
                        << "period " << period << ", calls " << first << " and " << second;
                EXPECT_LE(verdict.loss, 1.51)
                    << "period " << period << ", calls " << first << " and " << second;
            }
}

// Of eight sizes there is one call of each way.
TEST(model_trial, one_call_of_each_way_decides_nothing) {
    Calls calls;
    for (int i = 0; i < trial_calls; ++i) {
        int before = 0;  // of its way
        for (int j = 0; j < i; ++j) before += tried_as_schedule(j) == tried_as_schedule(i);
        calls[static_cast<std::size_t>(i)] = {tried_as_schedule(i) ? 1e-4 : 1.0, std::uint64_t{1} << before};
    }
    const TrialVerdict verdict = judge(calls, worth);
    EXPECT_FALSE(verdict.is_known);
    EXPECT_FALSE(verdict.takes_schedule[0]);
    EXPECT_EQ(verdict.loss, 1) << "schedules lost nothing";
}

TEST(model_trial, a_verdict_says_what_a_call_takes) {
    const auto size = [](int i) { return i % 2 == 0 ? std::uint64_t{1} << 20 : 8; };
    const auto schedule = [](std::uint64_t bytes) { return bytes > 1000 ? linear(bytes) / 2 : 1e-3; };
    const TrialVerdict verdict = judge(calls_of(size, linear, schedule), worth);
    EXPECT_NEAR(verdict.native_seconds, (linear(1 << 20) + linear(8)) / 2, 1e-9);
    EXPECT_NEAR(verdict.chosen_seconds, (linear(1 << 20) / 2 + linear(8)) / 2, 1e-9);
}

TEST(model_trial, a_dear_trial_is_repeated_seldom) {
    TrialVerdict verdict;
    EXPECT_EQ(calls_until_next(verdict, 1000), 1000u);
    verdict.loss = 1.5;
    EXPECT_EQ(calls_until_next(verdict, 1000), 1000u);
    verdict.loss = 11;
    EXPECT_EQ(calls_until_next(verdict, 1000), 8000u);
    verdict.loss = 1e30;
    EXPECT_LE(calls_until_next(verdict, 1000), 1'000'000'000'000'000u);
}

// Calls of 1 us, agreements of 3 us, a hundredth of the time for both: 300 calls, and 400 where the trial
// itself costs as much as one call.
TEST(model_trial, its_agreements_count_too) {
    TrialVerdict verdict;
    verdict.agreements_seconds = 3e-6;
    EXPECT_EQ(calls_until_next(verdict, 200), 200u) << "no call was compared";
    verdict.chosen_seconds = 1e-6;
    EXPECT_NEAR(static_cast<double>(calls_until_next(verdict, 200)), 300, 1);
    verdict.loss = 1.125;
    EXPECT_NEAR(static_cast<double>(calls_until_next(verdict, 200)), 400, 1);
    verdict.chosen_seconds = 1e-3;
    EXPECT_EQ(calls_until_next(verdict, 200), 200u) << "long calls";
    verdict.chosen_seconds = 1e-300;
    EXPECT_LE(calls_until_next(verdict, 200), 1'000'000'000'000'000u);
}

}  // namespace
}  // namespace thalweg
