// What a plan has cost and gained, of times that are known.
#include <gtest/gtest.h>

#include <memory>

#include "plan/plan_account.h"

namespace thalweg {
namespace {

// An even number of either: the break-even is that of the figures beside it.
TEST(plan_account, figures_and_break_even_are_of_the_same_medians) {
    const auto native = std::make_shared<NativeTimes>();
    for (const double seconds : {3.0, 5.0}) native->add(seconds);
    PlanAccount account(CallKind::alltoallv_init, "spread", 4, native, 0);
    account.set_init(10);
    for (const double seconds : {9.0, 1.0, 3.0}) account.add_run(seconds, 0);  // the first does not count
    const PlanAccount::Figures figures = account.figures();
    EXPECT_EQ(figures.starts, 3u);
    EXPECT_EQ(figures.once, PlanAccount::Once::measured);
    EXPECT_DOUBLE_EQ(figures.plan_seconds, 2);
    EXPECT_DOUBLE_EQ(figures.once_seconds, 4);
    EXPECT_DOUBLE_EQ(figures.even.calls, 5);
    EXPECT_DOUBLE_EQ(figures.even.calls,
                     break_even(figures.init_seconds, figures.once_seconds, figures.plan_seconds));
}

}  // namespace
}  // namespace thalweg
