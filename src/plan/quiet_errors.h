// While we speak on the user's communicator its error handler must not see our errors: they only mean that
// the native library gets the call.
#pragma once

#include <mpi.h>

#include "transport/mpi/host.h"

namespace thalweg {

class QuietErrors {
  public:
    explicit QuietErrors(MPI_Comm comm) : comm_(comm) {
        const Host& mpi = *host();
        quiet_ = mpi.Comm_get_errhandler(comm, &handler_) == MPI_SUCCESS &&
                 mpi.Comm_set_errhandler(comm, mpi.errors_return) == MPI_SUCCESS;
    }
    ~QuietErrors() {
        if (!quiet_) return;
        const Host& mpi = *host();
        // Another thread of the program may have set one meanwhile, and that stays.
        MPI_Errhandler current;
        if (mpi.Comm_get_errhandler(comm_, &current) == MPI_SUCCESS) {
            if (current == mpi.errors_return) mpi.Comm_set_errhandler(comm_, handler_);
            mpi.Errhandler_free(&current);
        }
        mpi.Errhandler_free(&handler_);
    }
    QuietErrors(const QuietErrors&) = delete;
    QuietErrors& operator=(const QuietErrors&) = delete;

  private:
    MPI_Comm comm_;
    MPI_Errhandler handler_;
    bool quiet_ = false;
};

}  // namespace thalweg
