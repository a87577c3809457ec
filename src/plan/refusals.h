// What the MPI library refuses one rank before it hears of the others, for what that rank alone has said. Its
// words reach the program, and the rank is where it was before (decision 58).
#pragma once

#include "plan/collective_call.h"

namespace thalweg {

// Whether it refuses memory that the call names, or one of its types. If not, `shape` also says of a call
// that names the same memory twice whether that is what MPI_IN_PLACE means. Local. Pre: `shape` is filled in.
// Throws std::bad_alloc.
bool refused_on_sight(const CollectiveCall& call, int rank, CallShape& shape);

// The same of the memory of messages that differ, those between neighbours included, where the call makes no
// plan: whether one begins at no address. Local. Pre: their letters are in `shape`. Throws std::bad_alloc.
bool lead_nowhere(const CollectiveCall& call, const CallShape& shape);

// Whether the library has returned `error` of a collective for such a reason, by its class. Local.
bool is_refusal(int error);

}  // namespace thalweg
