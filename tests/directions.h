// Every direction of rounding in turn, and flags that have to stay down.
#pragma once

#include <gtest/gtest.h>

#include <cfenv>

namespace thalweg::test {

// Calls `compute(direction)` in each, and expects that it leaves the direction and raises no flag.
template <typename Compute>
void in_each_direction(Compute compute) {
    for (const int direction : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
        std::feclearexcept(FE_ALL_EXCEPT);
        std::fesetround(direction);
        compute(direction);
        const int left = std::fegetround(), raised = std::fetestexcept(FE_ALL_EXCEPT);
        std::fesetround(FE_TONEAREST);
        EXPECT_EQ(left, direction);
        EXPECT_EQ(raised, 0);
    }
}

}  // namespace thalweg::test
