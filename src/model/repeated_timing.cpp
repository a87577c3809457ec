#include "model/repeated_timing.h"

#include <algorithm>

namespace thalweg {

void RepeatedTiming::add(std::uint64_t duration_ns) {
    if (!wants_more()) return;
    ascending_[count_++] = duration_ns;
    std::sort(ascending_.begin(), ascending_.begin() + static_cast<std::ptrdiff_t>(count_));
}

bool RepeatedTiming::wants_more() const {
    if (count_ < 2) return true;
    return count_ == 2 && ascending_[1] - ascending_[0] > ascending_[0] / 8;
}

std::uint64_t RepeatedTiming::believed_ns() const { return ascending_[count_ == 3 ? 1 : 0]; }

}  // namespace thalweg
