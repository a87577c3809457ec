// What is computed in the standard modes is the same whatever a thread's own are, and leaves no trace in
// them. Sums of the program's are in tests/engine/float_modes.cpp.
#include "base/float_modes.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include "directions.h"

namespace thalweg {
namespace {

using test::in_each_direction;

// The compiler can compute none of them beforehand.
volatile double one = 1, three = 3, zero = 0, most = std::numeric_limits<double>::max();
volatile long double long_one = 1, long_three = 3;

constexpr double third = 1.0 / 3;
constexpr long double long_third = 1.0L / 3;

TEST(float_modes, a_quotient_is_rounded_to_the_nearest_in_every_direction) {
    in_each_direction([](int) {
        EXPECT_EQ(in_standard_modes([] { return one / three; }), third);
        EXPECT_EQ(in_standard_modes([] { return -one / three; }), -third);
        EXPECT_EQ(with_texts_in_standard_modes([] { return one / three; }), third);
        EXPECT_EQ(with_texts_in_standard_modes([] { return long_one / long_three; }), long_third);
    });
}

TEST(float_modes, texts_are_read_and_written_alike_in_every_direction) {
    in_each_direction([](int) {
        EXPECT_EQ(with_texts_in_standard_modes([] { return std::strtod("0.1", nullptr); }), 0.1);
        char text[32];
        with_texts_in_standard_modes([&] { std::snprintf(text, sizeof text, "%.3f", 2.0 / 3); });
        EXPECT_STREQ(text, "0.667");
    });
}

// Plain variables, which the compiler may have in registers all the while.
[[gnu::noinline]] double divided(double left, double right) {
    return in_standard_modes([&] { return left / right; });
}

TEST(float_modes, what_goes_in_and_comes_out_is_computed_inside) {
    in_each_direction([](int) {
        EXPECT_EQ(divided(1, 3), third);
        double inside = 0;
        in_standard_modes([&] { inside = one / three; });
        EXPECT_EQ(inside, third);
    });
}

TEST(float_modes, nothing_is_raised_and_what_was_stays_raised) {
    std::feclearexcept(FE_ALL_EXCEPT);
    std::feraiseexcept(FE_UNDERFLOW);
    const int before = std::fetestexcept(FE_ALL_EXCEPT);
    const auto all = [] {
        const double by_zero = one / zero, none = zero / zero, beyond = most * three;
        return by_zero > 0 && none != none && beyond > most;
    };
    EXPECT_TRUE(in_standard_modes(all));
    EXPECT_TRUE(with_texts_in_standard_modes(all));
    EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), before);
    std::feclearexcept(FE_ALL_EXCEPT);
}

TEST(float_modes, modes_come_back_where_an_exception_leaves) {
    in_each_direction([](int) {
        EXPECT_THROW(in_standard_modes([] { throw std::runtime_error("left"); }), std::runtime_error);
    });
}

#if defined(__GLIBC__)
TEST(float_modes, nothing_traps_and_traps_come_back) {
    constexpr int all = FE_OVERFLOW | FE_INVALID | FE_DIVBYZERO | FE_INEXACT;
    std::feclearexcept(FE_ALL_EXCEPT);
    if (feenableexcept(all) < 0) GTEST_SKIP() << "this machine cannot trap";
    const bool infinite = in_standard_modes([] { return one / zero > most && zero / zero != 0; });
    const double quotient = in_standard_modes([] { return one / three; });
    const int trapping = fegetexcept();
    fedisableexcept(FE_ALL_EXCEPT);
    EXPECT_TRUE(infinite);
    EXPECT_EQ(quotient, third);
    EXPECT_EQ(trapping, all);
}
#endif

#if defined(__x86_64__)
TEST(float_modes, small_numbers_are_kept) {
    constexpr unsigned flushing = 0x8040;  // results to zero, operands taken for zero
    volatile double least = std::numeric_limits<double>::min();
    const unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | flushing);
    const double half = in_standard_modes([&] { return least / 2; });
    const double whole = in_standard_modes([&] { return half + half; });
    const unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    EXPECT_EQ(whole, least);
    EXPECT_EQ(after & flushing, flushing);
}
#endif

}  // namespace
}  // namespace thalweg
