#include "bench/race.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/statistics.h"

namespace thalweg::bench {
namespace {

constexpr double average_over_good = 3, kept_over_good = 2, racing_over_good = 1.4;

std::string size_text(std::uint64_t bytes) {
    return bytes % (1u << 20) == 0 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
}

}  // namespace

std::string race_stop(std::uint64_t bytes, const std::vector<double>& seconds, double best) {
    if (seconds.empty() || best < race_shortest_seconds) return "";
    const double own = median(seconds);
    if (own > race_ratio * best) return fmt::format("over {:g}x after {}", race_ratio, seconds.size());
    if (bytes >= race_large_bytes && seconds.size() >= race_large_samples && own > race_large_ratio * best)
        return fmt::format("over {:g}x after {}", race_large_ratio, seconds.size());
    return "";
}

std::string race_left_out(std::uint64_t bytes, double previous, double previous_best) {
    if (bytes < left_out_from_bytes || previous_best < race_shortest_seconds ||
        previous <= left_out_ratio * previous_best)
        return "";
    return fmt::format("left out: {:g}x at {}", left_out_ratio, size_text(bytes / 4));
}

std::string race_rule() {
    return fmt::format(
        "Screening is a race: every column gets one sample; one whose median is more than {:g} times the "
        "best so far gets no more, from {} on more than {:g} times after {} samples. From {} on a column "
        "does "
        "not start that was more than {:g} times the best at a quarter of the size. The native default, its "
        "repetition (A/A) and the automatic choice always get all samples; what resembles the native default "
        "is never left out. Calls below {:g} ms are not raced.",
        race_ratio, size_text(race_large_bytes), race_large_ratio, race_large_samples,
        size_text(left_out_from_bytes), left_out_ratio, race_shortest_seconds * 1e3);
}

double predicted_screen_seconds(const ScreenPlan& plan) {
    const int others = plan.columns - plan.always;
    const double starting =
        plan.bytes >= left_out_from_bytes ? others * 2.0 / 3 : static_cast<double>(others);
    const double first = plan.always * kept_over_good + starting * average_over_good;
    const double further = plan.always * kept_over_good + starting / 2 * racing_over_good;
    return plan.call * (first + std::max(0, plan.samples - 1) * further);
}

double predicted_decide_seconds(int columns, int calls, double call) {
    return columns * calls * kept_over_good * call;
}

}  // namespace thalweg::bench
