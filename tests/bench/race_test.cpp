// The race of a screen: who goes on, who stops and after how many samples, who does not start, and what is
// said about it.
#include "bench/race.h"

#include <gtest/gtest.h>

namespace thalweg::bench {
namespace {

constexpr std::uint64_t KiB = 1024, MiB = 1024 * KiB;

TEST(Race, AColumnStopsAfterOneSampleOverTwiceTheBest) {
    EXPECT_EQ(race_stop(1 * MiB, {0.201}, 0.1), "over 2x after 1");
    EXPECT_EQ(race_stop(1 * MiB, {0.199}, 0.1), "");
    EXPECT_EQ(race_stop(64 * KiB, {0.3, 0.25, 0.1}, 0.1), "over 2x after 3");
}

TEST(Race, TheMedianCountsAndNotOneBadSample) { EXPECT_EQ(race_stop(1 * MiB, {0.9, 0.11, 0.12}, 0.1), ""); }

TEST(Race, LargeSizesTellColumnsApartAfterTwoSamples) {
    EXPECT_EQ(race_stop(4 * MiB, {1.6}, 1.0), "");
    EXPECT_EQ(race_stop(4 * MiB, {1.6, 1.6}, 1.0), "over 1.5x after 2");
    EXPECT_EQ(race_stop(4 * MiB, {1.4, 1.4}, 1.0), "");
    EXPECT_EQ(race_stop(4 * MiB - 1, {1.6, 1.6}, 1.0), "");
}

TEST(Race, NobodyStopsBeforeHisFirstSampleNorInShortCalls) {
    EXPECT_EQ(race_stop(16 * MiB, {}, 1.0), "");
    EXPECT_EQ(race_stop(64 * KiB, {500e-6}, 20e-6), "");
}

TEST(Race, WhatWasFarBehindAtAQuarterOfALargeSizeDoesNotStart) {
    EXPECT_EQ(race_left_out(16 * MiB, 1.21, 0.4), "left out: 3x at 4 MiB");
    EXPECT_EQ(race_left_out(64 * MiB, 1.21, 0.4), "left out: 3x at 16 MiB");
    EXPECT_EQ(race_left_out(16 * MiB, 1.19, 0.4), "");
    EXPECT_EQ(race_left_out(4 * MiB, 9.0, 0.4), "") << "only from 16 MiB on";
    EXPECT_EQ(race_left_out(16 * MiB, 0, 0.4), "") << "it was not measured there";
}

TEST(Race, TheRuleNamesItsNumbers) {
    const std::string rule = race_rule();
    for (const char* part : {"2 times", "1.5 times", "3 times", "4 MiB", "16 MiB"})
        EXPECT_NE(rule.find(part), std::string::npos) << part << ": " << rule;
}

TEST(Race, ThePredictionCountsTheFirstRoundAndWhatIsLeft) {
    // 3 always at 2 calls, 20 others at 3; then 3 always at 2 and 10 others at 1.4, three times.
    EXPECT_DOUBLE_EQ(predicted_screen_seconds({1 * MiB, 23, 3, 4, 0.1}), 0.1 * (66 + 3 * (6 + 14)));
    EXPECT_DOUBLE_EQ(predicted_screen_seconds({1 * MiB, 23, 3, 1, 0.1}), 0.1 * 66);
    EXPECT_LT(predicted_screen_seconds({16 * MiB, 23, 3, 4, 0.1}),
              predicted_screen_seconds({4 * MiB, 23, 3, 4, 0.1}));
    EXPECT_DOUBLE_EQ(predicted_decide_seconds(5, 10, 0.5), 50);
}

}  // namespace
}  // namespace thalweg::bench
