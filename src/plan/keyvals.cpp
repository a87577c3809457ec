#include "plan/keyvals.h"

#include "plan/communicator.h"
#include "plan/datatype.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

Keyvals made;
bool watched = false;

// MPI's own NULL_COPY_FN is a symbol of the library in Open MPI, which a preload object must not refer to.
int do_not_copy_comm(MPI_Comm, int, void*, void*, void*, int* flag) {
    *flag = 0;
    return MPI_SUCCESS;
}
int do_not_copy_type(MPI_Datatype, int, void*, void*, void*, int* flag) {
    *flag = 0;
    return MPI_SUCCESS;
}
int communicator_deleted(MPI_Comm, int, void* state, void*) {
    Communicator::bury(static_cast<Communicator*>(state));
    return MPI_SUCCESS;
}
int type_deleted(MPI_Datatype, int, void* shape, void*) {
    delete static_cast<KeptShape*>(shape);
    return MPI_SUCCESS;
}

}  // namespace

const Keyvals& keyvals() { return made; }

void watch_self(int (*deleted)(MPI_Comm, int, void*, void*)) {
    const Host& mpi = *host();
    int key = 0;
    watched = mpi.Comm_create_keyval(do_not_copy_comm, deleted, &key, nullptr) == MPI_SUCCESS &&
              mpi.Comm_set_attr(mpi.comm_self, key, nullptr) == MPI_SUCCESS;
}
bool self_watched() { return watched; }

Status make_keyvals() {
    const Host& mpi = *host();
    if (mpi.Comm_create_keyval(do_not_copy_comm, communicator_deleted, &made.comm, nullptr) != MPI_SUCCESS ||
        mpi.Type_create_keyval(do_not_copy_type, type_deleted, &made.type, nullptr) != MPI_SUCCESS)
        return Status::unsupported;
    return Status::ok;
}

}  // namespace thalweg
