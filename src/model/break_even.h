// After how many calls a plan that costs something once has paid for itself.
//
// N calls take N · T_once without the plan and T_init + N · T_plan with it. They meet at
//
//     N* = T_init / (T_once - T_plan)     where T_once > T_plan; elsewhere the plan never pays
//
// N* is not rounded: 0.4 says that the first call already wins more than twice what the plan cost. Each T is
// the time of the last rank; T_init is making the plan and freeing it.
#pragma once

#include <limits>
#include <span>
#include <string>

namespace thalweg {

// N* of a plan that never pays.
inline constexpr double never = std::numeric_limits<double>::infinity();
// A plan whose measured N* is at most this pays at once: the tenth is what measurements of one call resolve.
inline constexpr double immediate_payoff = 1.1;

// N* of times in seconds. A plan that costs nothing pays from 0 calls on, but only if it gains.
double break_even(double init_seconds, double once_seconds, double plan_seconds);

struct BreakEven {
    double calls = never;              // N* of the medians (median.h)
    double low = never, high = never;  // its 95 % interval; high is `never` where that cannot be ruled out
    double gain_seconds = 0;           // T_once - T_plan of the medians; negative: each call loses
    double gain_low = 0, gain_high = 0;

    // Whether the samples tell if the plan gains: the gain's interval does not include zero.
    bool decided() const { return gain_low > 0 || gain_high < 0; }
};

// N* of samples in seconds, by percentile bootstrap of the three medians. A resample without gain counts as
// `never`, so that the interval of a ratio whose denominator may be zero stays honest. All defaults where one
// has no samples. Deterministic. Takes milliseconds: not for the path of a call.
BreakEven break_even(std::span<const double> init, std::span<const double> once, std::span<const double> plan,
                     int resamples = 2000);

// "0.43", "12.0", "3.4e+06", "never".
std::string calls_text(double calls);

}  // namespace thalweg
