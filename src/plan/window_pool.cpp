#include "plan/window_pool.h"

#include <bit>

namespace thalweg {

int WindowPool::alive() const { return std::popcount(alive_); }

int WindowPool::drain() {
    if (alive_ == 0) return MPI_SUCCESS;
    // In use anywhere: or-ed, because that operation is among the host's handles.
    std::uint64_t in_use = alive_ & ~returned_, in_use_anywhere = 0;
    int error = mpi_.Allreduce(&in_use, &in_use_anywhere, 1, mpi_.uint64, mpi_.bor, comm_);
    if (error != MPI_SUCCESS) return error;
    for (int place = 0; place < capacity; ++place) {
        if ((alive_ & ~in_use_anywhere & bit(place)) == 0) continue;
        alive_ &= ~bit(place);
        returned_ &= ~bit(place);
        const int failed = mpi_.Win_free(&windows_[place]);
        if (error == MPI_SUCCESS) error = failed;
    }
    return error;
}

int WindowPool::take(void* base, MPI_Aint bytes, int& error) {
    error = drain();
    if (error != MPI_SUCCESS) return -2;
    const int place = std::countr_one(alive_);
    if (place >= capacity) return -1;
    error = mpi_.Win_create(base, bytes, 1, mpi_.info_null, comm_, &windows_[place]);
    if (error != MPI_SUCCESS) return -2;
    alive_ |= bit(place);
    error = mpi_.Win_set_errhandler(windows_[place], mpi_.errors_return);
    return error == MPI_SUCCESS ? place : -2;
}

}  // namespace thalweg
