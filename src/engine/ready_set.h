// A set of step ids that gives back its smallest member: two levels of bits, no allocation after
// construction.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "schedule/step.h"

namespace thalweg {

class ReadySet {
  public:
    static constexpr StepId none = ~StepId{0};

    explicit ReadySet(std::size_t ids = 0) : words_((ids + 63) / 64), summary_((words_.size() + 63) / 64) {}

    bool empty() const { return count_ == 0; }
    std::uint32_t count() const { return count_; }

    bool contains(StepId id) const { return (words_[id / 64] >> (id % 64)) & 1; }

    void insert(StepId id) {
        std::uint64_t& word = words_[id / 64];
        const std::uint64_t bit = std::uint64_t{1} << (id % 64);
        count_ += (word & bit) == 0;
        word |= bit;
        summary_[id / 4096] |= std::uint64_t{1} << (id / 64 % 64);
        if (id / 4096 < first_summary_) first_summary_ = id / 4096;
    }

    // Pre: contains(id).
    void erase(StepId id) {
        words_[id / 64] &= ~(std::uint64_t{1} << (id % 64));
        if (words_[id / 64] == 0) summary_[id / 4096] &= ~(std::uint64_t{1} << (id / 64 % 64));
        --count_;
    }

    // The smallest member, none when empty. Amortised O(1).
    StepId first() {
        if (count_ == 0) return none;
        while (summary_[first_summary_] == 0) ++first_summary_;
        const std::uint32_t word = first_summary_ * 64 + std::countr_zero(summary_[first_summary_]);
        return word * 64 + std::countr_zero(words_[word]);
    }

    void clear() {
        while (count_ != 0) erase(first());
    }

  private:
    std::vector<std::uint64_t> words_, summary_;
    std::uint32_t first_summary_ = 0;  // no member lies below this word of the summary
    std::uint32_t count_ = 0;
};

}  // namespace thalweg
