#include "transport/mpi/error_handler.h"

#include <utility>

#include "transport/mpi/host.h"

namespace thalweg {

thread_local constinit std::uintptr_t outermost_frame [[gnu::tls_model("initial-exec")]] = 0;

// No mark stays behind where the handler does not return.
void call_error_handler(MPI_Comm comm, int error) {
    const std::uintptr_t frame = std::exchange(outermost_frame, 0);
    host()->Comm_call_errhandler(comm, error);
    outermost_frame = frame;
}

}  // namespace thalweg
