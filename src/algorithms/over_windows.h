// Ways to exchange that are no schedules: over MPI windows, whose epochs the MPI library orders. They are
// asked for by name where an algorithm is (THALWEG_ALLTOALLV=rma_fence), serve persistent operations only,
// and are never chosen by themselves.
#pragma once

#include <algorithm>
#include <string_view>

#include "algorithms/algorithm.h"

namespace thalweg {

inline constexpr std::string_view over_windows[] = {"rma_fence", "rma_lock", "rma_pscw", "rma_get"};

constexpr bool is_over_windows(Collective collective, std::string_view name) {
    return collective == Collective::alltoallv &&
           std::find(std::begin(over_windows), std::end(over_windows), name) != std::end(over_windows);
}

}  // namespace thalweg
