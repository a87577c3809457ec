// Communicators of our own.
#pragma once

#include <mpi.h>

#include "transport/mpi/host.h"

namespace thalweg {

// A communicator of the ranks of `comm`, in their order, whose errors return. Collective over `comm`. Not a
// duplicate, which would run the program's attribute callbacks. False: MPI refused on this rank.
inline bool make_private(MPI_Comm comm, MPI_Comm& own) {
    const Host& mpi = *host();
    MPI_Group group;
    own = mpi.comm_null;
    if (mpi.Comm_group(comm, &group) != MPI_SUCCESS) return false;
    const bool made = mpi.Comm_create(comm, group, &own) == MPI_SUCCESS;
    mpi.Group_free(&group);
    if (made) mpi.Comm_set_errhandler(own, mpi.errors_return);
    return made;
}

}  // namespace thalweg
