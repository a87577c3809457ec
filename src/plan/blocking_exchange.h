// MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw and the blocking collectives of neighbourhoods, served by plans
// that are kept from call to call, where that pays.
//
// No argument of an alltoallv is equal on all ranks, and any rank may change its own at any call. So what
// decides is the number of the call on its communicator, which all ranks count alike, and times that they
// agree on: some calls run natively and some as a schedule, both are timed, and the faster way has the rest.
// How a pair's message travels follows from its bytes, which both ends know: nobody's consent is needed.
#pragma once

#include <cstdint>
#include <memory>

#include "plan/nonblocking.h"
#include "plan/plan_account.h"
#include "plan/trials.h"
#include "plan/unasked.h"

namespace thalweg {

// True: done, and `error` is what the call returns. False: the native library has the call; where `trial` is
// set, between Trial::begin_native() and end_native(); where `unasked` is set, the next ones may be had
// without being asked for. Trial::take_back() is told of one that is refused, if it is missed. Every rank
// takes the same way. May be collective, as the call is.
bool exchange_now(const CollectiveCall& call, int& error, Trial*& trial, UnaskedCalls*& unasked);
// Whether that could be true for any call: two loads and a look at the settings. Equal on all ranks.
bool may_exchange();

// Whether the other ranks wait for what a call would exchange that the library has refused this one alone; or
// that cannot be told: such a call is not ours either. Ranks that have nothing for this one may have gone on,
// and counted theirs. Local. Throws std::bad_alloc.
bool is_missed(const CollectiveCall& call);

// What native calls took that do what this persistent operation does; null: nobody times those, or no memory.
std::shared_ptr<NativeTimes> native_times_of(Communicator& communicator, const CollectiveCall& call);

// The account of a persistent operation, whose _init began at began_ns and has chosen `algorithm` for pairs
// of `bytes`; this rank exchanges `total` in all. `state` may be null, then no model speaks. Throws
// std::bad_alloc.
std::shared_ptr<PlanAccount> open_account(NonblockingState* state, Communicator& communicator,
                                          const CollectiveCall& call, const std::string& algorithm,
                                          std::uint64_t bytes, std::uint64_t total, std::uint64_t began_ns);

}  // namespace thalweg
