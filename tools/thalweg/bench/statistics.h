// The figures every table is made of: medians, ratios of medians with a bootstrap interval, and the verdict.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "model/break_even.h"

namespace thalweg::bench {

// Of the values; 0 for none. `values` need not be sorted.
double median(std::vector<double> values);
double percentile(std::vector<double> values, double fraction);

struct Interval {
    double low = 0, high = 0;
};

// median(ours) / median(theirs) and its 95 % percentile-bootstrap interval. Samples are resampled
// independently: interleaving has already given both the same noise. Deterministic: the seed is fixed.
struct Ratio {
    double value = 0;
    Interval interval;
};
Ratio ratio_of_medians(const std::vector<double>& ours, const std::vector<double>& theirs,
                       int resamples = 2000);

// The median of ours[i] / theirs[i], which were measured in turn, and its 95 % percentile-bootstrap interval:
// pairs are resampled, because what slows one of a pair down slows the other. 0 where there are none.
Ratio median_of_ratios(const std::vector<double>& ours, const std::vector<double>& theirs,
                       int resamples = 2000);

// break_even() of the model.
BreakEven pays_after(const std::vector<double>& init, const std::vector<double>& once,
                     const std::vector<double>& plan);

// "Never slower": the ratio of medians is at most 1.03, or its interval includes 1.00 and ends at or
// below 1.10. Slower: the interval lies above 1.00. Anything else is undecided.
enum class Verdict : std::uint8_t { not_slower, slower, undecided };
Verdict verdict(const Ratio& ratio);
// Whether the verdict of the one is worse than that of the other, not slower before undecided before slower,
// or the same and the ratio greater: of several rivals the worst one is that which tells what becomes of a
// call. A greater ratio alone may be too uncertain to tell anything.
bool is_worse(const Ratio& one, const Ratio& other);
// Whether one of these is undecided; those without a value were not measured.
bool any_undecided(std::initializer_list<Ratio> ratios);
std::string_view name_of(Verdict verdict);

// Whether samples of one thing against samples of the same, whose ratio this is, can tell 3 % from nothing:
// its interval lies within 0.97 to 1.03.
bool resolves_three_percent(const Ratio& same);

double geometric_mean(const std::vector<double>& values);

}  // namespace thalweg::bench
