// Typed data of more bytes than an int counts, to and from packed bytes, where the library has no MPI_Pack_c:
// as a message of this rank to itself.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace thalweg {

// One element of `type`, `bytes` bytes of data, from `data` to `packed` and back. Local: makes a communicator
// of this rank alone, out of `comm`'s group, and frees it; runs no callback of the program. Pre: the thread
// may call MPI. Errors: transport_failed (MPI refused).
Status pack_by_message(const void* data, MPI_Datatype type, std::byte* packed, std::uint64_t bytes,
                       MPI_Comm comm);
Status unpack_by_message(const std::byte* packed, std::uint64_t bytes, void* data, MPI_Datatype type,
                         MPI_Comm comm);

}  // namespace thalweg
