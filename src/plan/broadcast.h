// The path of a broadcast that is large enough to look at.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "plan/trials.h"
#include "plan/unasked.h"
#include "plan/world.h"

namespace thalweg {

// True: done, and `error` is what MPI_Bcast returns. False: the native library has the call. Pre: bytes =
// count × the type's size. Collective over `comm`; every rank takes the same way, because it depends only on
// what is equal on all of them. `trial` and `unasked` are set as by exchange_now (blocking_exchange.h).
bool broadcast(World& world, void* buffer, std::uint64_t bytes, std::uint64_t count, MPI_Datatype type,
               int root, MPI_Comm comm, int& error, Trial*& trial, UnaskedCalls*& unasked);

}  // namespace thalweg
