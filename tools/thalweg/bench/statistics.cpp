#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "model/resampling.h"

namespace thalweg::bench {
namespace {

constexpr double accepted_ratio = 1.03;  // medians of interleaved pairs resolve no less
constexpr double accepted_interval_end = 1.10;

// The numbers of std::mt19937_64 from the seed on. They are the same for every interval, and making them took
// half of a page's time: a thread keeps those that it has made.
class Draws {
  public:
    using result_type = std::mt19937_64::result_type;
    static constexpr result_type min() { return std::mt19937_64::min(); }
    static constexpr result_type max() { return std::mt19937_64::max(); }

    result_type operator()() {
        if (at_ == made_.numbers.size()) made_.numbers.push_back(made_.random());
        return made_.numbers[at_++];
    }

  private:
    struct Made {
        std::mt19937_64 random{12345};
        std::vector<result_type> numbers;
    };
    static thread_local Made all_made;
    Made& made_ = all_made;
    std::size_t at_ = 0;
};
thread_local Draws::Made Draws::all_made;

// A page shows many figures twice, at its beginning and in its tables; each is made once.
template <class Figure>
using Known = std::map<std::pair<int, std::vector<std::vector<double>>>, Figure>;

template <class Figure, class Make>
Figure once(Known<Figure>& known, std::vector<std::vector<double>> samples, int resamples, Make make) {
    const auto [at, unknown] = known.try_emplace({resamples, std::move(samples)});
    if (unknown) at->second = make();
    return at->second;
}

Interval interval_of(std::vector<double> resampled) {
    const double low = percentile(resampled, 0.025);
    return {low, percentile(std::move(resampled), 0.975)};
}

}  // namespace

double percentile(std::vector<double> values, double fraction) {
    if (values.empty()) return 0;
    const double at = fraction * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const auto low = values.begin() + static_cast<std::ptrdiff_t>(below);
    std::nth_element(values.begin(), low, values.end());
    const double above = low + 1 == values.end() ? *low : *std::min_element(low + 1, values.end());
    return *low + (at - static_cast<double>(below)) * (above - *low);
}

double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

Ratio ratio_of_medians(const std::vector<double>& ours, const std::vector<double>& theirs, int resamples) {
    static thread_local Known<Ratio> known;
    return once(known, {ours, theirs}, resamples, [&] {
        Ratio ratio;
        const double denominator = median(theirs);
        if (ours.empty() || denominator <= 0) return ratio;
        ratio.value = median(ours) / denominator;
        Draws random;
        Resampling of_ours(ours), of_theirs(theirs);
        std::vector<double> ratios(static_cast<std::size_t>(resamples));
        for (auto& value : ratios) {
            const double numerator = of_ours.median(random);
            value = numerator / of_theirs.median(random);
        }
        ratio.interval = interval_of(std::move(ratios));
        return ratio;
    });
}

Ratio median_of_ratios(const std::vector<double>& ours, const std::vector<double>& theirs, int resamples) {
    std::vector<double> pairs;
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
        if (theirs[i] > 0) pairs.push_back(ours[i] / theirs[i]);
    static thread_local Known<Ratio> known;
    return once(known, {pairs}, resamples, [&] {
        Ratio ratio;
        if (pairs.empty()) return ratio;
        ratio.value = median(pairs);
        Draws random;
        Resampling of_pairs(pairs);
        std::vector<double> medians(static_cast<std::size_t>(resamples));
        for (auto& value : medians) value = of_pairs.median(random);
        ratio.interval = interval_of(std::move(medians));
        return ratio;
    });
}

BreakEven pays_after(const std::vector<double>& init, const std::vector<double>& each,
                     const std::vector<double>& plan) {
    static thread_local Known<BreakEven> known;
    return once(known, {init, each, plan}, 0, [&] { return break_even(init, each, plan); });
}

Verdict verdict(const Ratio& ratio) {
    if (ratio.value <= accepted_ratio) return Verdict::not_slower;
    if (ratio.interval.low <= 1.0 && ratio.interval.high <= accepted_interval_end) return Verdict::not_slower;
    return ratio.interval.low > 1.0 ? Verdict::slower : Verdict::undecided;
}

bool is_worse(const Ratio& one, const Ratio& other) {
    const auto badness = [](const Ratio& ratio) {
        const Verdict told = verdict(ratio);
        return std::make_pair(told == Verdict::slower ? 2 : told == Verdict::undecided ? 1 : 0, ratio.value);
    };
    return badness(one) > badness(other);
}

bool any_undecided(std::initializer_list<Ratio> ratios) {
    return std::any_of(ratios.begin(), ratios.end(), [](const Ratio& each) {
        return each.value > 0 && verdict(each) == Verdict::undecided;
    });
}

bool resolves_three_percent(const Ratio& same) {
    return same.interval.low >= 0.97 && same.interval.high <= 1.03;
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
