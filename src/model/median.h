// The one median of this room and those above it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace thalweg {

// The value in the middle; of an even number the mean of the two there. 0: there are none. Reorders `values`,
// allocates nothing.
inline double median_of(std::span<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 != 0) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace thalweg
