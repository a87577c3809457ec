// After how many calls a plan has paid: against hand-made figures, and the interval against a known spread.
#include "model/break_even.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace thalweg {
namespace {

TEST(BreakEven, IsNotRounded) {
    EXPECT_DOUBLE_EQ(break_even(1.0, 3.0, 0.5), 0.4);
    EXPECT_DOUBLE_EQ(break_even(2.5, 3.0, 2.0), 2.5);
    EXPECT_DOUBLE_EQ(break_even(7e-3, 2e-3, 1e-3), 7.0);
}

TEST(BreakEven, NeverWhereNothingIsGained) {
    EXPECT_EQ(break_even(1.0, 2.0, 2.0), never);
    EXPECT_EQ(break_even(1.0, 1.0, 2.0), never);
    EXPECT_EQ(break_even(0.0, 1.0, 2.0), never);  // free, but each call loses
    EXPECT_EQ(break_even(0.0, 2.0, 1.0), 0.0);
}

TEST(BreakEven, TotalsMeetThere) {
    const double init = 5.3, once = 1.7, plan = 1.1, calls = break_even(init, once, plan);
    EXPECT_NEAR(init + calls * plan, calls * once, 1e-12);
    // At most one call: the first one with the plan, its cost included, is not slower than one without.
    EXPECT_LE(break_even(0.5, once, plan), 1.0);
    EXPECT_LE(0.5 + plan, once);
    EXPECT_GT(break_even(0.7, once, plan), 1.0);
    EXPECT_GT(0.7 + plan, once);
}

TEST(BreakEven, OfSamplesTakesTheirMedians) {
    const std::vector<double> init{9, 10, 50}, once{3, 3, 3, 9}, plan{1, 1, 0.9};
    const BreakEven result = break_even(init, once, plan);
    EXPECT_DOUBLE_EQ(result.calls, 5.0);
    EXPECT_DOUBLE_EQ(result.gain_seconds, 2.0);
    EXPECT_LE(result.low, 5.0);
    EXPECT_GE(result.high, 5.0);
    EXPECT_TRUE(result.decided());
}

TEST(BreakEven, IntervalOfEqualSamplesIsAPoint) {
    const std::vector<double> init(7, 4.0), once(7, 2.0), plan(7, 1.0);
    const BreakEven result = break_even(init, once, plan);
    EXPECT_DOUBLE_EQ(result.low, 4.0);
    EXPECT_DOUBLE_EQ(result.high, 4.0);
    EXPECT_DOUBLE_EQ(result.gain_low, 1.0);
}

// Near the cross-over a few resamples gain nothing: the interval must end at "never" and say undecided.
TEST(BreakEven, NearTheCrossOverNeverIsInside) {
    const std::vector<double> init(9, 1.0), once{1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.2, 0.8};
    const std::vector<double> plan{0.99, 1.09, 0.89, 1.04, 0.94, 1.01, 0.97, 1.19, 0.79};
    const BreakEven result = break_even(init, once, plan);
    EXPECT_NEAR(result.calls, 100, 1e-6);
    EXPECT_EQ(result.high, never);
    EXPECT_LT(result.low, 100);
    EXPECT_FALSE(result.decided());
}

TEST(BreakEven, NeverIsDecidedWhereEveryCallLoses) {
    const std::vector<double> init(5, 1.0), once{1.0, 1.01, 0.99}, plan{2.0, 2.02, 1.98};
    const BreakEven result = break_even(init, once, plan);
    EXPECT_EQ(result.calls, never);
    EXPECT_EQ(result.low, never);
    EXPECT_TRUE(result.decided());
    EXPECT_LT(result.gain_high, 0);
}

// Of many experiments with a known answer about 95 % must have it in their interval.
TEST(BreakEven, IntervalCoversTheTruth) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> noise(0, 1);
    const double truth = 10 / (5.0 - 3.0);
    int covered = 0;
    constexpr int experiments = 200;
    for (int i = 0; i < experiments; ++i) {
        std::vector<double> init, once, plan;
        for (int sample = 0; sample < 31; ++sample) {
            init.push_back(10 + 0.5 * noise(random));
            once.push_back(5 + 0.3 * noise(random));
            plan.push_back(3 + 0.3 * noise(random));
        }
        const BreakEven result = break_even(init, once, plan, 400);
        covered += result.low <= truth && truth <= result.high;
    }
    EXPECT_GE(covered, experiments * 88 / 100);
    EXPECT_LT(covered, experiments);  // an interval that always has it says nothing
}

TEST(BreakEven, WithoutSamplesThereIsNone) {
    const std::vector<double> some{1.0}, none;
    EXPECT_EQ(break_even(none, some, some).calls, never);
    EXPECT_FALSE(break_even(some, none, some).decided());
}

TEST(BreakEven, AsText) {
    EXPECT_EQ(calls_text(never), "never");
    EXPECT_EQ(calls_text(0.432), "0.43");
    EXPECT_EQ(calls_text(12), "12.0");
    EXPECT_EQ(calls_text(3.4e6), "3.4e+06");
}

}  // namespace
}  // namespace thalweg
