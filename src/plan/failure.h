// What a failure of ours is called in MPI.
#pragma once

#include <mpi.h>

#include "base/log.h"
#include "base/status.h"

namespace thalweg {

// What MPI itself reported, where it did: a program that survives a lost peer asks for that very class.
inline int mpi_error_of(Status status, int native_error) {
    if (status == Status::transport_failed && native_error != MPI_SUCCESS) return native_error;
    switch (status) {
        case Status::ok:
            return MPI_SUCCESS;
        case Status::mismatch:
        case Status::truncated:
            return MPI_ERR_TRUNCATE;
        case Status::out_of_memory:
            return MPI_ERR_NO_MEM;
        default:
            return MPI_ERR_OTHER;
    }
}

// For people. Of messages whose sizes differ, which MPI forbids and many a library lets pass.
inline const char* why_failed(Status status) {
    return status == Status::mismatch
               ? "a message has not the size that the counts and types here say. MPI demands that both ends "
                 "agree; with THALWEG=off the MPI library may let it pass"
               : describe(status);
}

// Says that `what` failed; the code to return. The communicator's error handler is still to hear of it
// (call_error_handler), where nothing of ours is held any more: one that jumps lets go of nothing.
inline int tell_failure(const char* what, Status status, int native_error) {
    THALWEG_LOG_AT(error, "%s failed: %s", what, why_failed(status));
    return mpi_error_of(status, native_error);
}

}  // namespace thalweg
