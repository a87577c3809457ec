#include "transport/mpi/error_handler.h"

#include "transport/mpi/host.h"

namespace thalweg {

thread_local constinit std::uintptr_t outermost_frame [[gnu::tls_model("initial-exec")]] = 0;

void call_error_handler(MPI_Comm comm, int error) {
    const Outside outside;
    host()->Comm_call_errhandler(comm, error);
}

}  // namespace thalweg
