#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace thalweg::bench {
namespace {

constexpr double accepted_ratio = 1.03;  // medians of interleaved pairs resolve no less
constexpr double accepted_interval_end = 1.10;

// Medians of as many samples, drawn with replacement: counted by rank, which takes a fifth of sorting them.
class Resampling {
  public:
    explicit Resampling(const std::vector<double>& from)
        : ranks_(from.size()), counts_(from.size()), any_(0, from.size() - 1) {
        std::vector<std::size_t> order(from.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(),
                  [&](std::size_t a, std::size_t b) { return from[a] < from[b]; });
        for (std::size_t rank = 0; rank < order.size(); ++rank) {
            ranks_[order[rank]] = rank;
            sorted_.push_back(from[order[rank]]);
        }
    }

    double median(std::mt19937_64& random) {
        std::fill(counts_.begin(), counts_.end(), std::size_t{0});
        for (std::size_t i = 0; i < counts_.size(); ++i) ++counts_[ranks_[any_(random)]];
        // As percentile() has it: the middle, or half way between the two in the middle.
        const std::size_t below = (counts_.size() - 1) / 2;
        std::size_t rank = 0, drawn = counts_[0];
        while (drawn <= below) drawn += counts_[++rank];
        const double low = sorted_[rank];
        if (counts_.size() % 2 == 1) return low;
        while (drawn <= below + 1) drawn += counts_[++rank];
        return low + 0.5 * (sorted_[rank] - low);
    }

  private:
    std::vector<double> sorted_;
    std::vector<std::size_t> ranks_, counts_;
    std::uniform_int_distribution<std::size_t> any_;
};

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
