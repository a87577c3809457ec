// How ranks agree while a communicator is set up.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "plan/lane.h"
#include "plan/statistics.h"
#include "transport/mpi/host.h"

namespace thalweg {

// Each rank's values combined: the largest, or all bits. False: MPI failed.
template <int count>
bool combined(MPI_Comm comm, MPI_Op operation, std::uint64_t (&values)[count]) {
    std::uint64_t all[count];
    const Host& mpi = *host();
    if (mpi.Allreduce(values, all, count, mpi.uint64, operation, comm) != MPI_SUCCESS) return false;
    std::memcpy(values, all, sizeof all);
    return true;
}

// A number of the world's pool that all ranks of `comm` have claimed, where all of them are `ready`.
// Collective. Null, on all ranks, with `why`.
std::shared_ptr<LaneNumber> claim_number(MPI_Comm comm, World& world, bool leads, bool ready, Reason& why);

}  // namespace thalweg
