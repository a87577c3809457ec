// Samples drawn anew from samples, of which a percentile bootstrap makes its intervals (Efron and Tibshirani,
// An Introduction to the Bootstrap, 1993, section 13.3).
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace thalweg {

// Medians of as many samples as there are, drawn with replacement: counted by rank, which takes a fifth of
// sorting them. Pre: there are samples.
class Resampling {
  public:
    explicit Resampling(std::span<const double> from)
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

    // Random: std::mt19937_64, or what gives the same numbers.
    template <class Random>
    double median(Random& random) {
        std::fill(counts_.begin(), counts_.end(), std::size_t{0});
        for (std::size_t i = 0; i < counts_.size(); ++i) ++counts_[ranks_[any_(random)]];
        // The middle, or half way between the two in the middle.
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

}  // namespace thalweg
