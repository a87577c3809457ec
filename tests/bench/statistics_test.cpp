// The figures of the tables: known answers, and verdicts that must go both ways.
#include "bench/statistics.h"

#include <gtest/gtest.h>

namespace thalweg::bench {
namespace {

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

}  // namespace
}  // namespace thalweg::bench
