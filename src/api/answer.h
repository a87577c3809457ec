// What stands between the program's calls and what they may throw.
#pragma once

#include <mpi.h>

#include <new>

#include "plan/communicator.h"
#include "plan/set_up.h"
#include "transport/mpi/error_handler.h"

namespace thalweg {

// An error handler of the program's, which we call, may leave by an exception of C++ or end its thread. That
// unwinds our frames, by the program's unwinder; but what cleans up in them is linked to an unwinder of our
// own (the objects need no library beyond libc's), which aborts where it has never unwound anything.
inline void make_ready_to_be_unwound() {
    struct Nothing {};
    try {
        throw Nothing();
    } catch (const Nothing&) {
    }
}

// What the program's call returns: what `run` does, or what its exceptions mean. `error` is that of the call.
template <typename Run>
int answer(MPI_Comm comm, int& error, Run run) {
    bool disagrees = false;
    try {
        return run();
    } catch (const NoCommunicator& none) {
        error = none.error;
        return 1;
    } catch (const AgreementFailed& failure) {
        error = failure.error;
        disagrees = true;
    } catch (const std::bad_alloc&) {
        // Alone we cannot decline what the others run: the user's error handler has to know.
        error = MPI_ERR_NO_MEM;
    }
    // Here, because one that jumps leaves what was caught behind.
    if (disagrees)
        give_up_on(comm, {error});
    else
        call_error_handler(comm, error);
    return 1;
}

}  // namespace thalweg
