// The communicators that the calling thread's MPI_Comm_free and MPI_Comm_disconnect are about. The program's
// own attribute callbacks run in there, on all ranks, and what they call on such a communicator is left to
// the library: a state that it got now would be lost with its channel, since MPI deletes the attributes
// already.
#pragma once

#include <mpi.h>

namespace thalweg {

// `frame` is that of a function which the wrapper calls before and after the native function.
void begin_freeing(MPI_Comm comm, void* frame);
void end_freeing(void* frame);
bool being_freed(MPI_Comm comm);

}  // namespace thalweg
