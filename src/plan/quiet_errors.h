// While we speak on the user's communicator its error handler must not see our errors: they only mean that
// the native library gets the call.
//
// Where several threads of the program may call MPI at once the handler stays where it is: another thread
// could ask for it meanwhile and get ours, or set its own, which nobody could tell from the one before. A
// call of ours that fails there is heard of by the handler, and an agreement that has failed is raised anyway
// (give_up_on).
#pragma once

#include <mpi.h>

#include "transport/mpi/host.h"

namespace thalweg {

class QuietErrors {
  public:
    // `in_any_case`: beside other threads too. In MPI_Init and MPI_Finalize, where there are none; and around
    // a call that may fail without harm, where that is worse to be heard of than a handler to be lost.
    explicit QuietErrors(MPI_Comm comm, bool in_any_case = false) : comm_(comm) {
        if (!in_any_case && threads_call_at_once()) return;
        const Host& mpi = *host();
        quiet_ = mpi.Comm_get_errhandler(comm, &handler_) == MPI_SUCCESS &&
                 mpi.Comm_set_errhandler(comm, mpi.errors_return) == MPI_SUCCESS;
    }
    ~QuietErrors() {
        if (!quiet_) return;
        const Host& mpi = *host();
        // One that was set meanwhile stays.
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
    static bool threads_call_at_once() {
        int level = MPI_THREAD_MULTIPLE;
        return host()->Query_thread(&level) != MPI_SUCCESS || level == MPI_THREAD_MULTIPLE;
    }

    MPI_Comm comm_;
    MPI_Errhandler handler_{};
    bool quiet_ = false;
};

}  // namespace thalweg
