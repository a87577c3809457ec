// What MPICH and Open MPI would run by default, as choices of ours: their selection rules, from the
// libraries' public sources. Models of the natives, not measurements of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "algorithms/algorithm.h"
#include "sim/replay.h"
#include "sim/variants.h"
#include "topology/topology.h"

namespace thalweg::sim {

struct NativeModel {
    std::string_view family;  // "mpich", "openmpi", "mvapich"
    std::string_view text;    // which version's rules these are
    std::string_view source;  // where they are written
    Copies copies;            // what its progress does with large messages of its own host
};
std::span<const NativeModel> native_models();

// nullptr: there is none of that name.
const NativeModel* native_model(std::string_view family);

// What runs an exchange with a rank's neighbours: everything is posted, then waited for
// (MPI_Neighbor_alltoallw of MPICH and Open MPI, and what stencils write by hand).
inline constexpr std::string_view native_faces = "spread:in_flight=0";

// The choice's text, or an empty one where the model has no rule for the collective. Pre: two ranks or more.
std::string native_choice(std::string_view family, Collective collective, std::uint64_t bytes,
                          const Topology& topology);

// Whether the library finishes each exchange of that algorithm before the next (variants.h, in_turn): MPICH's
// trees and rings are blocking sends and receives; Open MPI's post what they can.
bool native_in_turn(std::string_view family, Collective collective);

// In which order it posts an exchange of that algorithm, with all ranks or with neighbours (`faces`).
Posting native_posting(std::string_view family, std::string_view algorithm, bool faces);

}  // namespace thalweg::sim
