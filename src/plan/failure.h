// What a failure of ours is called in MPI.
#pragma once

#include <mpi.h>

#include "base/status.h"

namespace thalweg {

// What MPI itself reported, where it did: a program that survives a lost peer asks for that very class.
inline int mpi_error_of(Status status, int native_error) {
    if (status == Status::transport_failed && native_error != MPI_SUCCESS) return native_error;
    switch (status) {
        case Status::ok:
            return MPI_SUCCESS;
        case Status::mismatch:
            return MPI_ERR_TRUNCATE;
        case Status::out_of_memory:
            return MPI_ERR_NO_MEM;
        default:
            return MPI_ERR_OTHER;
    }
}

}  // namespace thalweg
