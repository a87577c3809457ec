// Epochs that block: fence and lock.
#include "transport/rma/ways.h"

namespace thalweg {

int FenceEpoch::start() {
    int error = plan_.meets_first ? mpi_.Barrier(plan_.comm) : MPI_SUCCESS;
    // Nothing reaches a window before its rank's fence: so says MPI of accesses that follow a fence.
    if (error == MPI_SUCCESS) error = mpi_.Win_fence(MPI_MODE_NOPRECEDE, plan_.window);
    for (const Transfer& send : plan_.sends)
        if (error == MPI_SUCCESS) error = put(send);
    return error;
}

int FenceEpoch::wait() { return mpi_.Win_fence(MPI_MODE_NOSUCCEED, plan_.window); }

int FenceEpoch::test(bool& done) {
    done = true;
    return wait();
}

int LockEpoch::open() {
    mpi_.Comm_rank(plan_.comm, &rank_);
    return guard();
}

// Takes this rank's window, and returns when everybody has taken theirs. The paper does without this second
// meeting: then a fast rank starts its next epoch, and puts, before a slow one has its own window back, whose
// program still reads or fills that buffer.
int LockEpoch::guard() {
    const int error = mpi_.Win_lock(MPI_LOCK_EXCLUSIVE, rank_, 0, plan_.window);
    // The others wait for whoever could not.
    const int met = mpi_.Barrier(plan_.comm);
    return error != MPI_SUCCESS ? error : met;
}

int LockEpoch::close() { return mpi_.Win_unlock(rank_, plan_.window); }

int LockEpoch::start() {
    int error = mpi_.Win_unlock(rank_, plan_.window);
    if (error == MPI_SUCCESS) error = mpi_.Win_lock_all(0, plan_.window);
    for (const Transfer& send : plan_.sends)
        if (error == MPI_SUCCESS) error = put(send);
    return error;
}

int LockEpoch::wait() {
    int error = mpi_.Win_unlock_all(plan_.window);
    // Whoever is done would take its own window back before a slow peer has got its shared lock on it, and
    // would wait for the peer's bytes inside that lock.
    if (error == MPI_SUCCESS) error = mpi_.Barrier(plan_.comm);
    return error == MPI_SUCCESS ? guard() : error;
}

int LockEpoch::test(bool& done) {
    done = true;
    return wait();
}

}  // namespace thalweg
