#include "model/break_even.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "model/median.h"
#include "model/resampling.h"

namespace thalweg {
namespace {

constexpr double low_tail = 0.025, high_tail = 0.975;

// The value at a share of the sorted ones, never between two of them: one may be infinite.
double at_share(const std::vector<double>& sorted, double share) {
    return sorted[static_cast<std::size_t>(std::llround(share * static_cast<double>(sorted.size() - 1)))];
}

}  // namespace

double break_even(double init_seconds, double once_seconds, double plan_seconds) {
    const double gain = once_seconds - plan_seconds;
    return gain > 0 ? std::max(0.0, init_seconds) / gain : never;
}

BreakEven break_even(std::span<const double> init, std::span<const double> once, std::span<const double> plan,
                     int resamples) {
    BreakEven result;
    if (init.empty() || once.empty() || plan.empty()) return result;
    const auto median = [](std::span<const double> from) {
        std::vector<double> copy(from.begin(), from.end());
        return median_of(copy);
    };
    result.gain_seconds = median(once) - median(plan);
    result.calls = break_even(median(init), median(once), median(plan));

    std::mt19937_64 random(12345);
    Resampling of_init(init), of_once(once), of_plan(plan);
    std::vector<double> calls, gains;
    for (int i = 0; i < std::max(resamples, 1); ++i) {
        const double cost = of_init.median(random), without = of_once.median(random),
                     with = of_plan.median(random);
        calls.push_back(break_even(cost, without, with));
        gains.push_back(without - with);
    }
    std::sort(calls.begin(), calls.end());
    std::sort(gains.begin(), gains.end());
    result.low = at_share(calls, low_tail);
    result.high = at_share(calls, high_tail);
    result.gain_low = at_share(gains, low_tail);
    result.gain_high = at_share(gains, high_tail);
    return result;
}

std::string calls_text(double calls) {
    if (!std::isfinite(calls)) return "never";
    char text[32];
    const char* form = calls < 1 ? "%.2f" : calls < 1e4 ? "%.1f" : "%.1e";
    std::snprintf(text, sizeof text, form, calls);
    return text;
}

}  // namespace thalweg
