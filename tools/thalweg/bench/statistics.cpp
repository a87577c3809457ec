#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "model/resampling.h"

namespace thalweg::bench {
namespace {

constexpr double accepted_ratio = 1.03;  // medians of interleaved pairs resolve no less
constexpr double accepted_interval_end = 1.10;

}  // namespace

double percentile(std::vector<double> values, double fraction) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const double at = fraction * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

Ratio ratio_of_medians(const std::vector<double>& ours, const std::vector<double>& theirs, int resamples) {
    Ratio ratio;
    const double denominator = median(theirs);
    if (ours.empty() || denominator <= 0) return ratio;
    ratio.value = median(ours) / denominator;
    std::mt19937_64 random(12345);
    Resampling of_ours(ours), of_theirs(theirs);
    std::vector<double> ratios(static_cast<std::size_t>(resamples));
    for (auto& value : ratios) {
        const double numerator = of_ours.median(random);
        value = numerator / of_theirs.median(random);
    }
    ratio.interval = {percentile(ratios, 0.025), percentile(ratios, 0.975)};
    return ratio;
}

Ratio median_of_ratios(const std::vector<double>& ours, const std::vector<double>& theirs, int resamples) {
    std::vector<double> pairs;
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
        if (theirs[i] > 0) pairs.push_back(ours[i] / theirs[i]);
    Ratio ratio;
    if (pairs.empty()) return ratio;
    ratio.value = median(pairs);
    std::mt19937_64 random(12345);
    Resampling of_pairs(pairs);
    std::vector<double> medians(static_cast<std::size_t>(resamples));
    for (auto& value : medians) value = of_pairs.median(random);
    ratio.interval = {percentile(medians, 0.025), percentile(medians, 0.975)};
    return ratio;
}

Verdict verdict(const Ratio& ratio) {
    if (ratio.value <= accepted_ratio) return Verdict::not_slower;
    if (ratio.interval.low <= 1.0 && ratio.interval.high <= accepted_interval_end) return Verdict::not_slower;
    return ratio.interval.low > 1.0 ? Verdict::slower : Verdict::undecided;
}

std::string_view name_of(Verdict value) {
    switch (value) {
        case Verdict::not_slower:
            return "not slower";
        case Verdict::slower:
            return "slower";
        case Verdict::undecided:
            return "undecided";
    }
    return "";
}

double geometric_mean(const std::vector<double>& values) {
    if (values.empty()) return 0;
    double sum = 0;
    for (const double value : values) sum += std::log(value);
    return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace thalweg::bench
