#include "plan/window_pool.h"

#include <bit>

namespace thalweg {

int WindowPool::alive() const { return std::popcount(alive_); }

int WindowPool::drain() {
    if (alive_ == 0) return MPI_SUCCESS;
    // In use anywhere: or-ed, because that operation is among the host's handles.
    std::uint64_t in_use = alive_ & ~returned_.load(std::memory_order_acquire), in_use_anywhere = 0;
    int error = mpi_.Allreduce(&in_use, &in_use_anywhere, 1, mpi_.uint64, mpi_.bor, comm_);
    out_of_step_ |= error != MPI_SUCCESS;
    if (error != MPI_SUCCESS) return error;
    for (int place = 0; place < capacity; ++place) {
        if ((alive_ & ~in_use_anywhere & bit(place)) == 0) continue;
        alive_ &= ~bit(place);
        returned_.fetch_and(~bit(place), std::memory_order_relaxed);
        const int failed = mpi_.Win_free(&windows_[place]);
        if (error == MPI_SUCCESS) error = failed;
    }
    return error;
}

int WindowPool::take(void* base, MPI_Aint bytes, bool ready, int& error) {
    // A window that could not be freed here was freed elsewhere: the others go on, and hear of it below.
    const int drained = drain();
    error = drained != MPI_SUCCESS ? drained : MPI_ERR_OTHER;
    if (out_of_step_ || unusable_) return -2;
    const int place = std::countr_one(alive_);
    if (place >= capacity) return -1;
    const int made = mpi_.Win_create(base, bytes, 1, mpi_.info_null, comm_, &windows_[place]);
    // One bit each: no window here, not ready.
    std::uint64_t mine = (made != MPI_SUCCESS ? 1u : 0u) | (ready && drained == MPI_SUCCESS ? 0u : 2u),
                  any = 0;
    const int agreed = mpi_.Allreduce(&mine, &any, 1, mpi_.uint64, mpi_.bor, comm_);
    if (agreed != MPI_SUCCESS) {
        out_of_step_ = true;
        error = agreed;
        return -2;
    }
    if ((any & 1) != 0) {
        unusable_ = true;
        if (made != MPI_SUCCESS) error = made;
        return -2;
    }
    alive_ |= bit(place);
    mpi_.Win_set_errhandler(windows_[place], mpi_.errors_return);
    if (any == 0) {
        error = MPI_SUCCESS;
        return place;
    }
    give_back(place);
    if (!ready) error = MPI_ERR_NO_MEM;
    return -2;
}

}  // namespace thalweg
