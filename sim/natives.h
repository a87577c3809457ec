// What MPICH and Open MPI would run by default, as choices of ours: their selection rules, from the
// libraries' public sources. Models of the natives, not measurements of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "algorithms/algorithm.h"
#include "topology/topology.h"

namespace thalweg::sim {

struct NativeModel {
    std::string_view family;  // "mpich", "openmpi"
    std::string_view text;    // which version's rules these are
    std::string_view source;  // where they are written
};
std::span<const NativeModel> native_models();

// The choice's text, or an empty one where the model has no rule for the collective. Pre: two ranks or more.
std::string native_choice(std::string_view family, Collective collective, std::uint64_t bytes,
                          const Topology& topology);

}  // namespace thalweg::sim
