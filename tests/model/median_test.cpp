#include "model/median.h"

#include <gtest/gtest.h>

#include <vector>

namespace thalweg {
namespace {

double median(std::vector<double> values) { return median_of(values); }

TEST(model_median, of_an_even_number_is_between_the_two_in_the_middle) {
    EXPECT_EQ(median({}), 0);
    EXPECT_EQ(median({7}), 7);
    EXPECT_EQ(median({4, 2}), 3);
    EXPECT_EQ(median({9, 1, 5}), 5);
    EXPECT_EQ(median({100, 1, 6, 4}), 5);
    EXPECT_EQ(median({2, 2, 2, 2}), 2);
}

}  // namespace
}  // namespace thalweg
