// The figures of the tables: known answers, and verdicts that must go both ways.
#include "bench/statistics.h"

#include <gtest/gtest.h>

#include <random>

namespace thalweg::bench {
namespace {

// The medians of resamples, each sorted: what the intervals are made of.
double resampled(const std::vector<double>& from, std::mt19937_64& random) {
    std::uniform_int_distribution<std::size_t> any(0, from.size() - 1);
    std::vector<double> drawn;
    for (std::size_t i = 0; i < from.size(); ++i) drawn.push_back(from[any(random)]);
    return median(drawn);
}

TEST(Statistics, MedianAndPercentilesOfKnownValues) {
    EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
    EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
    EXPECT_DOUBLE_EQ(median({}), 0);
    EXPECT_DOUBLE_EQ(percentile({0, 10}, 0.25), 2.5);
    EXPECT_DOUBLE_EQ(percentile({5}, 0.99), 5);
}

TEST(Statistics, RatioOfEqualSeriesIncludesOne) {
    const std::vector<double> values{1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.02};
    const Ratio ratio = ratio_of_medians(values, values);
    EXPECT_DOUBLE_EQ(ratio.value, 1);
    EXPECT_LE(ratio.interval.low, 1);
    EXPECT_GE(ratio.interval.high, 1);
    EXPECT_EQ(verdict(ratio), Verdict::not_slower);
}

TEST(Statistics, IntervalsAreThoseOfSortedResamples) {
    constexpr int resamples = 50;
    std::mt19937_64 values(7);
    const auto some = [&values](std::size_t count, std::uint64_t different) {
        std::vector<double> made;
        for (std::size_t i = 0; i < count; ++i)
            made.push_back(1 + 0.1 * static_cast<double>(values() % different));
        return made;
    };
    for (std::size_t count = 1; count <= 12; ++count) {
        const std::vector<double> ours = some(count, 5), theirs = some(13 - count, 1000),
                                  paired = some(count, 30);
        std::mt19937_64 random(12345), again(12345);
        std::vector<double> ratios, medians, pairs;
        for (std::size_t i = 0; i < count; ++i) pairs.push_back(ours[i] / paired[i]);
        for (int i = 0; i < resamples; ++i) {
            const double numerator = resampled(ours, random);
            ratios.push_back(numerator / resampled(theirs, random));
            medians.push_back(resampled(pairs, again));
        }
        const Ratio ratio = ratio_of_medians(ours, theirs, resamples);
        EXPECT_EQ(ratio.interval.low, percentile(ratios, 0.025));
        EXPECT_EQ(ratio.interval.high, percentile(ratios, 0.975));
        const Ratio of_pairs = median_of_ratios(ours, paired, resamples);
        EXPECT_EQ(of_pairs.interval.low, percentile(medians, 0.025));
        EXPECT_EQ(of_pairs.interval.high, percentile(medians, 0.975));
    }
}

TEST(Statistics, AClearLossIsSlowerAndAWideIntervalIsUndecided) {
    EXPECT_EQ(verdict({1.20, {1.15, 1.25}}), Verdict::slower);
    EXPECT_EQ(verdict({1.06, {0.80, 1.40}}), Verdict::undecided);
    EXPECT_EQ(verdict({1.05, {0.98, 1.09}}), Verdict::not_slower);
    EXPECT_EQ(verdict({0.50, {0.45, 0.55}}), Verdict::not_slower);
    std::vector<double> slow(30), fast(30);
    for (int i = 0; i < 30; ++i) slow[i] = 1.2 + 0.001 * i, fast[i] = 1.0 + 0.001 * i;
    EXPECT_EQ(verdict(ratio_of_medians(slow, fast)), Verdict::slower);
}

TEST(Statistics, NothingMeasuredIsNotAVerdict) { EXPECT_EQ(ratio_of_medians({}, {1.0}).value, 0); }

TEST(Statistics, GeometricMean) {
    EXPECT_DOUBLE_EQ(geometric_mean({1, 4}), 2);
    EXPECT_DOUBLE_EQ(geometric_mean({}), 0);
}

// A ratio of 1.045 that may be 1.00 does not hide one of 1.035 that may not.
TEST(Statistics, OfSeveralRivalsTheWorstVerdictCounts) {
    const Ratio uncertain{1.045, {0.997, 1.098}}, sure{1.035, {1.03, 1.04}}, open{1.05, {0.9, 1.2}};
    EXPECT_TRUE(is_worse(sure, uncertain));
    EXPECT_FALSE(is_worse(uncertain, sure));
    EXPECT_TRUE(is_worse(open, uncertain));
    EXPECT_TRUE(is_worse(sure, open));
    EXPECT_TRUE(is_worse(uncertain, {1.0, {1, 1}}));
    EXPECT_FALSE(is_worse(sure, sure));
    EXPECT_TRUE(is_worse({0.5, {0.5, 0.5}}, {}));
}

}  // namespace
}  // namespace thalweg::bench
