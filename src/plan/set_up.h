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

// MPI failed on this rank in a call by which the ranks agree. The others may have agreed without it, and no
// message can tell them any more. So the program's call fails, and the error handler of its communicator
// decides, MPI's own by ending the job: to go on natively would leave the others waiting for this rank.
struct AgreementFailed {
    int error;  // MPI's
};

// For a call whose result all ranks rely on. Whatever fails before an agreement is carried into it instead.
// Throws AgreementFailed.
inline void demand(int error) {
    if (error != MPI_SUCCESS) throw AgreementFailed{error};
}

// MPI_Allreduce and MPI_Bcast of `count` words of 64 bits, whose callers wait as our operations do: where
// ranks sleep (World::sleeps) because they exceed cores, one that polled without end would keep the core from
// the rank that it waits for. The same calls on all ranks. MPI's error code.
int combine_words(const std::uint64_t* own, std::uint64_t* all, int count, MPI_Op operation, MPI_Comm comm);
int hand_out_words(std::uint64_t* words, int count, int root, MPI_Comm comm);

// Completes a nonblocking call of MPI, as a caller of the above waits. MPI's error code.
int complete(MPI_Request& request);

// Each rank's values combined: the largest, or all bits. Throws AgreementFailed.
template <int count>
void agree_on(MPI_Comm comm, MPI_Op operation, std::uint64_t (&values)[count]) {
    std::uint64_t all[count];
    demand(combine_words(values, all, count, operation, comm));
    std::memcpy(values, all, sizeof all);
}

// THALWEG_SETUP=early counts unless `creations_arrive` says on some rank that it is not asked about every
// communicator that is made: the others would wait for it. Collective over the world.
void keep_early(World& world, int (*creations_arrive)(void));

// After AgreementFailed in a call on `comm`: nothing more of ours runs on it, and its error handler is
// called. What the program's call returns, where the handler returns.
int give_up_on(MPI_Comm comm, const AgreementFailed& failure);

// A number of the world's pool that all ranks of `comm` have claimed, where all of them are `ready`.
// `beyond_cap`: whatever THALWEG_MAX_COMMUNICATORS says, because it is given back at once. Collective. Null,
// on all ranks, with `why`. Throws AgreementFailed.
std::shared_ptr<LaneNumber> claim_number(MPI_Comm comm, World& world, bool leads, bool ready, Reason& why,
                                         bool beyond_cap = false);

}  // namespace thalweg
