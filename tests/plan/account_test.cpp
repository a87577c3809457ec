// What a plan has cost and gained, of times that are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "plan/plan_account.h"

namespace thalweg {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

// An even number of either: the break-even is that of the figures beside it.
TEST(plan_account, figures_and_break_even_are_of_the_same_medians) {
    const auto native = std::make_shared<NativeTimes>();
    for (const std::uint64_t seconds : {3, 5}) native->add(seconds * second);
    PlanAccount account(CallKind::alltoallv_init, "spread", 4, native, 0);
    account.set_init(10 * second);
    for (const std::uint64_t seconds : {9, 1, 3}) account.add_run(seconds * second, 0);  // not the first
    const PlanAccount::Figures figures = account.figures();
    EXPECT_EQ(figures.starts, 3u);
    EXPECT_EQ(figures.once, PlanAccount::Once::measured);
    EXPECT_DOUBLE_EQ(figures.plan_seconds, 2);
    EXPECT_DOUBLE_EQ(figures.once_seconds, 4);
    EXPECT_DOUBLE_EQ(figures.even.calls, 5);
    EXPECT_DOUBLE_EQ(figures.even.calls,
                     break_even(figures.init_seconds, figures.once_seconds, figures.plan_seconds));
}

// What one rank noted is replaced by what the slowest did, once; in between a reader has this rank's.
TEST(plan_account, native_calls_are_of_the_slowest_rank_once_agreed_on) {
    NativeTimes times;
    for (const std::uint64_t seconds : {1, 2}) times.note(seconds * second);
    NativeTimes::Words words = times.noted();
    EXPECT_EQ(words, (NativeTimes::Words{1'000'000'000, 2'000'000'000, 0, 0}));
    EXPECT_EQ(times.samples(), (std::vector<double>{1, 2}));
    words[0] = 3 * second;
    times.settle(words);
    EXPECT_EQ(times.samples(), (std::vector<double>{3, 2}));
    EXPECT_EQ(times.noted(), NativeTimes::Words{});
    times.settle(times.noted());
    EXPECT_EQ(times.samples().size(), 2u);
}

TEST(plan_account, what_calls_of_other_sizes_take_says_nothing) {
    constexpr std::uint64_t large = 1 << 20, small = 64, quick_ns = 30'000, slow_ns = 80'000'000;
    const auto native = std::make_shared<NativeTimes>();
    for (int i = 0; i < 4; ++i) native->note(slow_ns, large);
    native->settle(native->noted());
    const auto once = [&](std::uint64_t sends) {
        PlanAccount plan(CallKind::alltoallv_init, "spread", 4, native, 1'000'000'000, sends);
        plan.add_run(20'000, 0);
        return plan.figures();
    };
    EXPECT_EQ(once(small).once, PlanAccount::Once::model);
    EXPECT_DOUBLE_EQ(once(2 * large).once_seconds, 80e-3);
    EXPECT_EQ(once(2 * large + 1).once, PlanAccount::Once::model);
    native->add(quick_ns, small + 8);
    EXPECT_EQ(once(small).once, PlanAccount::Once::measured);
    EXPECT_DOUBLE_EQ(once(small).once_seconds, 30e-6);
    // Of a rank that sends nothing in either, there is no other measure.
    EXPECT_EQ(once(0).once, PlanAccount::Once::model);
    native->add(quick_ns, 0);
    EXPECT_DOUBLE_EQ(once(0).once_seconds, 30e-6);
}

// A communicator's first calls may be slow: they are forgotten, and what is known of another size is not.
TEST(plan_account, the_latest_native_calls_of_each_size_count) {
    constexpr std::uint64_t small = 64, large = 1 << 20;
    NativeTimes times;
    for (int i = 0; i < 4; ++i) times.add(5 * second, large);
    for (int i = 0; i < 40; ++i) times.add(2 * second, small);
    for (int i = 0; i < 40; ++i) times.add(second, small);
    EXPECT_EQ(times.samples(large), std::vector<double>(4, 5));
    EXPECT_EQ(times.samples(small), std::vector<double>(28, 1));
    for (int i = 0; i < 14; ++i) times.add(3 * second, large);
    EXPECT_EQ(times.samples(small).size(), 16u);
    const std::vector<double> samples = times.samples(large);
    EXPECT_EQ(samples.size(), 16u);
    EXPECT_EQ(std::count(samples.begin(), samples.end(), 3), 14);

    NativeTimes unsized;
    for (int i = 0; i < 100; ++i) unsized.add(static_cast<std::uint64_t>(i < 60 ? 9 : 1) * second);
    EXPECT_EQ(unsized.samples(), std::vector<double>(32, 1));
}

// Two ranks agree, one of which had no memory for its times: it takes part, and changes nothing.
TEST(plan_account, a_rank_without_memory_for_its_times_answers_the_others) {
    NativeTimes first;
    first.note(2 * second);
    NativeTimes::Words slowest{};
    int answers = 0;
    const auto say = [&](NativeTimes::Words& words) {
        for (std::size_t i = 0; i < words.size(); ++i) slowest[i] = std::max(slowest[i], words[i]);
        ++answers;
        words = slowest;
    };
    settle_together(&first, say);
    settle_together(nullptr, say);
    EXPECT_EQ(answers, 2);
    EXPECT_EQ(slowest, (NativeTimes::Words{2'000'000'000, 0, 0, 0}));
    EXPECT_EQ(first.samples(), (std::vector<double>{2}));
    EXPECT_EQ(first.noted(), NativeTimes::Words{}) << "they have been agreed on";
}

TEST(plan_account, repeated_calls_have_what_the_ranks_found_together) {
    PlanAccount account(CallKind::alltoallv, "spread", 4, nullptr, 0);
    EXPECT_EQ(account.figures().once, PlanAccount::Once::unknown);
    account.add_run(second / 2, 0);
    account.set_tried({6, 4, 1, {4, 4, 4}, {1, 1, 1}});
    const PlanAccount::Figures gains = account.figures();
    EXPECT_EQ(gains.once, PlanAccount::Once::measured);
    EXPECT_EQ(gains.starts, 1u);
    EXPECT_DOUBLE_EQ(gains.plan_seconds, 1);
    EXPECT_DOUBLE_EQ(gains.even.calls, 2);
    EXPECT_DOUBLE_EQ(gains.even.high, 2);
    account.set_tried({6, 4, 4, {}, {}});
    EXPECT_EQ(account.figures().even.calls, never);
}

// Where sizes take turns nothing is known of a single call's time.
TEST(plan_account, calls_whose_sizes_take_turns_have_no_interval) {
    const auto account = std::make_shared<PlanAccount>(CallKind::alltoallv, "spread", 4, nullptr, 0);
    account->add_run(second, 0);
    account->set_tried({6, 4, 1, {}, {}});
    const PlanAccount::Figures figures = account->figures();
    EXPECT_DOUBLE_EQ(figures.even.calls, 2);
    EXPECT_TRUE(std::isnan(figures.even.low)) << figures.even.low;
    EXPECT_TRUE(std::isnan(figures.even.high)) << figures.even.high;
    keep_account(account);
    const std::string json = plans_json();
    EXPECT_NE(json.find("\"break_even\": 2, \"break_even_low\": null, \"break_even_high\": null"),
              std::string::npos)
        << json;
}

}  // namespace
}  // namespace thalweg
