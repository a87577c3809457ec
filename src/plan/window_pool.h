// The windows of one private communicator. Making and freeing a window is collective, but MPI_Request_free is
// local and comes in another order on every rank: so a plan only gives its window back, and it is freed at
// the next collective moment at which all ranks have given it back.
//
// A window is over the buffer of the one plan that took it and is never handed to another: memory that was
// freed and mapped again at the same address would be reached through stale registrations.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "transport/mpi/host.h"

namespace thalweg {

class WindowPool {
  public:
    static constexpr int capacity = 64;  // windows alive at a time

    // `comm` is private and outlives the pool.
    WindowPool(const Host& mpi, MPI_Comm comm) : mpi_(mpi), comm_(comm) {}
    ~WindowPool() = default;  // windows are freed by drain() alone, because that is collective
    WindowPool(const WindowPool&) = delete;
    WindowPool& operator=(const WindowPool&) = delete;

    // A window over `bytes` bytes at `base`, of displacement unit 1, whose errors are returned. Collective;
    // the base and size may differ. Frees what all ranks have given back. Returns its place, the same on all
    // ranks; -1 on all of them: `capacity` windows are in use; -2 on all of them: some rank was not `ready`,
    // or MPI failed, with `error` here. Where MPI made the window on some ranks only it can never be freed,
    // and the pool gives no more. -2 on this rank alone, which is out_of_step() then.
    int take(void* base, MPI_Aint bytes, bool ready, int& error);
    MPI_Win window(int place) const { return windows_[place]; }
    // Local, and by any thread, while another may take or drain. Pre: no epoch of ours is open on it.
    void give_back(int place) { returned_.fetch_or(bit(place), std::memory_order_acq_rel); }
    // Frees what all ranks have given back. Collective. Returns an MPI error code.
    int drain();
    // MPI failed on this rank in a call by which the ranks agree: the others may have gone on, and nobody can
    // tell them.
    bool out_of_step() const { return out_of_step_; }
    void fall_out_of_step() { out_of_step_ = true; }
    // Windows alive. Equal on all ranks.
    int alive() const;
    // This rank has given all back, and the pool may give more. Pre: no other thread takes or drains.
    bool is_unused() const {
        return (alive_ & ~returned_.load(std::memory_order_acquire)) == 0 && !unusable_ && !out_of_step_;
    }

  private:
    static constexpr std::uint64_t bit(int place) { return std::uint64_t{1} << place; }

    const Host& mpi_;
    MPI_Comm comm_;
    MPI_Win windows_[capacity] = {};
    std::uint64_t alive_ = 0;                 // equal on all ranks
    std::atomic<std::uint64_t> returned_{0};  // of those, by this rank
    bool unusable_ = false;                   // equal on all ranks
    bool out_of_step_ = false;
};

}  // namespace thalweg
