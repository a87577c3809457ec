// Channels that need no communicator of their own: a private communicator of the whole world, made in
// MPI_Init, carries those of any of its groups, told apart by a number in the tags. So setting up a
// communicator of the user creates none, which is dear, and which can wait for what another thread creates.
//
// A number belongs to a channel on all its ranks, and to no other channel on any of them: its ranks tell each
// other which numbers they have in use and pick one that none has (Communicator).
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

namespace thalweg {

class ChannelPool {
  public:
    // Makes the communicator. Collective over the world. False where MPI failed on this rank; the ranks then
    // have to agree on abandon().
    bool open();
    // Frees it, unless a process had to keep() a number: MPICH ends a program that frees a communicator for
    // which messages have come that nobody received. Collective over the world; does nothing where there is
    // none.
    void close();

    // Where some rank has none: leaves it to MPI_Finalize. Local.
    void abandon();

    // Null handle unless open.
    MPI_Comm comm() const { return comm_; }
    bool is_open() const { return capacity_ != 0; }

    // Bit i: this process has number i in use, or there is none. All set while not open.
    std::uint64_t in_use() const { return in_use_.load(std::memory_order_acquire); }
    // A number that the members' in_use(), or-ed, leave free: which one depends on `seed`, equal on all of
    // them. -1: none.
    static int pick(std::uint64_t in_use_anywhere, std::uint64_t seed);
    // Another one for each set-up that this process leads, so that two at a time rarely pick the same number.
    std::uint64_t next_seed(int world_rank);
    // False: another thread of this process was faster. Lock-free.
    bool claim(int number);
    // Pre: nothing that was sent or is to be received under this number is incomplete on this process.
    void give_back(int number);
    // A number that this process claimed is not given back, because messages of its may be on their way.
    void keep() { kept_.store(true, std::memory_order_relaxed); }

  private:
    MPI_Comm comm_{};
    unsigned capacity_ = 0;
    std::atomic<std::uint64_t> in_use_{~std::uint64_t{0}};
    std::atomic<std::uint64_t> set_ups_{0};
    std::atomic<bool> kept_{false};
};

}  // namespace thalweg
