// Persistent collectives under an MPI library that is older than they are: each start makes the nonblocking
// call of the same name, on a communicator of the plan's own, because ranks may start two plans in different
// orders. The MPI library advances it, as it would one of its own; the calls that complete requests complete
// it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "plan/collective_call.h"
#include "plan/left_behind.h"
#include "plan/ongoing.h"

namespace thalweg {

// The private communicators of one communicator's plans, used again by later ones. The plans hold it.
class NativeGround {
  public:
    ~NativeGround() = default;
    NativeGround() = default;
    NativeGround(const NativeGround&) = delete;
    NativeGround& operator=(const NativeGround&) = delete;

    // Collective over `comm`, whose rank 0 `leads`, where all ranks call it with their own `good`. False, on
    // all ranks alike: one is not good, or MPI refused. Where this one is new and the ranks have one that an
    // earlier communicator left behind, the slot is of that: `instead`. Throws AgreementFailed.
    bool take(MPI_Comm comm, bool leads, bool good, std::size_t& slot,
              std::shared_ptr<NativeGround>& instead);
    MPI_Comm comm(std::size_t slot);
    // Any thread. Not after a failure: nobody knows what is still on its way there.
    void give_back(std::size_t slot);
    // Collective, while the program frees `comm`: frees those that no rank uses. False: some rank uses
    // others. True, too, where the ranks cannot agree; then all of them are MPI_Finalize's.
    bool close(MPI_Comm comm, bool leads, const World& world);

    // What LeftBehind asks for, once close() has said false.
    const GroundOrder& order() const { return order_; }
    MPI_Comm comm();
    static bool may_be_taken_over() { return true; }  // its slots tell who uses them

  private:
    struct Slot {
        MPI_Comm comm;
        bool used;
        bool freed = false;  // equal on all ranks
    };
    // So many times 64 can be told apart; further ones serve one plan.
    static constexpr std::size_t words = 16;
    // A bit where a slot is not free. Pre: the lock is held.
    void tell_used(std::uint64_t* bits) const;

    std::mutex mutex_;
    std::vector<Slot> slots_;  // the same on all ranks, but for who uses them
    GroundOrder order_;
};

// Whether the library has neither MPI_Alltoallv_init, say, nor MPIX_Alltoallv_init. Equal on all ranks.
bool lacks_natively(CallKind kind);
// Such a plan of neighbours, which no nonblocking call can stand in for: a schedule of ours, whatever it
// costs.
bool nobody_else_serves(const CollectiveCall& call);

// The operation, not started. Collective over call.comm. Null with `error`, which has been said, and told the
// communicator's error handler: it cannot be served, the same on all ranks; or its arguments are wrong on
// this one (MPI_ERR_ARG), which is where it was before. Pre: persistent, declined and lacking. Throws
// AgreementFailed, std::bad_alloc.
std::unique_ptr<Ongoing> make_native_plan(const CollectiveCall& call, int& error);

}  // namespace thalweg
