// The native MPI underneath, by address: every MPI function and predefined handle that we use ourselves. The
// preload objects have no NEEDED entry on any MPI, so nothing here is linked; all is looked up once.
//
// host_calls.def has one row per function: HOST_CALL(name, required|optional). A required one that is missing makes
// us pass everything through with one sentence; an optional one is null. Internal traffic uses PMPI_*, so that
// profiling tools do not see it.
#pragma once

#include <mpi.h>

namespace thalweg {

struct Host {
#define HOST_CALL(name, need) decltype(&PMPI_##name) name = nullptr;
#include "transport/mpi/host_calls.def"
#undef HOST_CALL
    // Predefined handles: constants in the MPICH and standard ABIs, addresses of the library's data in Open MPI.
    MPI_Comm comm_world, comm_self, comm_null;
    MPI_Group group_null;
    MPI_Datatype byte, packed, uint64, datatype_null;
    MPI_Op min, max, band, bor;
    MPI_Request request_null;
    MPI_Errhandler errors_return;
};

// Null until the native library has been found (see find_host). Never changes afterwards.
const Host* host();

}  // namespace thalweg
