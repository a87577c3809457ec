// Short calls: the allowance, which rows are compared, and what the table says of them.
#include "bench/small.h"

#include <gtest/gtest.h>

#include "bench/columns.h"
#include "bench/table.h"
#include "launch_row.h"

namespace thalweg::bench {
namespace {

Row row(std::string_view column, std::uint64_t launch, double median_ns) {
    Row row = launch_row({.shape = "1x2", .rate = ""}, "bcast", small_phase, column, launch, 8,
                         std::vector<double>(10, 1e-9 * median_ns));
    row.calls = {{"count", 1000000},       {"checked", 2000}, {"clock_ns", 20},
                 {"clock_step_ns", 10},    {"last_ns", 5000}, {"median_ns", median_ns},
                 {"p99_ns", 2 * median_ns}};
    return row;
}

TEST(Small, AllowedAreThreePercentOr150Nanoseconds) {
    EXPECT_DOUBLE_EQ(small_allowance_ns(1000), 150);
    EXPECT_DOUBLE_EQ(small_allowance_ns(5000), 150);
    EXPECT_DOUBLE_EQ(small_allowance_ns(10000), 300);
}

TEST(Small, TheVerdictGoesBothWays) {
    auto lines = summarize_small({row(native_default, 1, 1000), row(automatic, 1, 1150)});
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].decision, Verdict::not_slower);
    lines = summarize_small({row(native_default, 1, 1000), row(automatic, 1, 1151)});
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].decision, Verdict::slower);
    EXPECT_NEAR(lines[0].difference_ns.low, 151, 1e-6);
    EXPECT_NEAR(lines[0].difference_ns.high, 151, 1e-6);
}

TEST(Small, OnlyOneLaunchIsCompared) {
    EXPECT_TRUE(summarize_small({row(native_default, 1, 1000), row(automatic, 2, 900)}).empty());
    Row decided = row(automatic, 1, 900);
    decided.phase = "decide";
    EXPECT_TRUE(summarize_small({row(native_default, 1, 1000), decided}).empty());
}

TEST(Small, TheTableShowsTheDifferenceAndWhatIsAllowed) {
    const std::string text = format_small(
        {row(native_default, 1, 1000), row(native_again, 1, 1003), row(automatic, 1, 1040)}, false);
    for (const char* part :
         {"+40 ns [+40, +40] (+4.0 %)", "150 ns", "not slower", "+3 ns", "2080 ns", "20 ns by 10"})
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    EXPECT_NE(format_small({row(native_default, 1, 3000), row(automatic, 1, 3000)}, false).find("> 5.0 us"),
              std::string::npos);
    EXPECT_EQ(format_small({}, false), "");
}

}  // namespace
}  // namespace thalweg::bench
