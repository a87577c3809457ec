// Memory that the peers of a persistent exchange put into: exposed in the _init, attached by those that send
// there, and let go with the plan's lane. Nothing of it is made between a start and its completion.
#pragma once

#include <mpi.h>

#include "plan/lane.h"
#include "plan/ongoing.h"

namespace thalweg {

// Collective over `comm`, by all ranks of the plan; `ongoing` is null where this rank has none. Afterwards
// direct messages of the plan's one schedule are puts, on all ranks; or, where the transport has none or one
// rank cannot, messages as the others.
void open_direct(MPI_Comm comm, Lane& lane, Ongoing* ongoing, int rank, int size);

}  // namespace thalweg
