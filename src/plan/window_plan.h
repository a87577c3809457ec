// Persistent alltoalls over MPI windows, where one of algorithms/over_windows.h is asked for by name:
// operations like the others, whose one step is an epoch (transport/rma).
//
// With fences and locks MPI_Start and the completion wait inside MPI until the other ranks have come, which
// is not what the standard promises of a persistent request. To be of use all the same, plans of one
// communicator are completed in the order in which they were started, whichever the program waits for. With
// post and start, and with gets, the agent advances an epoch where the program has MPI_THREAD_MULTIPLE;
// elsewhere nobody does but the calls that complete it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include "plan/collective_call.h"
#include "plan/left_behind.h"
#include "plan/rma_alltoallv.h"
#include "plan/window_pool.h"

namespace thalweg {

class WindowTransport;

// The private communicator and the windows of one communicator's plans. The plans hold it.
class WindowGround {
  public:
    // Collective over `comm`, whose rank 0 `leads`: what an earlier communicator has left behind, if no
    // window of it is in use any more, else a new one. Null, on all ranks alike: MPI refused, or a rank lacks
    // memory.
    static std::shared_ptr<WindowGround> make(MPI_Comm comm, bool leads, const World& world);
    // What close() and close_windows() did not free is MPI_Finalize's.
    ~WindowGround() = default;
    WindowGround(const WindowGround&) = delete;
    WindowGround& operator=(const WindowGround&) = delete;

    MPI_Comm comm() const { return comm_; }
    WindowPool& pool() { return pool_; }
    // Collective, while the program frees its communicator: frees the windows that all ranks have given back,
    // and the communicator where none is left. False: there is one. May be called again.
    bool close();

    // Where it stands among all grounds of the world.
    const GroundOrder& order() const { return order_; }
    bool may_be_taken_over() const { return pool_.is_unused(); }

  private:
    friend class WindowTransport;
    explicit WindowGround(MPI_Comm comm) : comm_(comm), pool_(*host(), comm) {}

    MPI_Comm comm_;
    WindowPool pool_;
    GroundOrder order_;
    bool closed_ = false;
    // Started epochs whose completion blocks, oldest first.
    std::mutex mutex_;
    WindowTransport* started_ = nullptr;
};

// Collective over the world, in MPI_Finalize: closes what plans still used when their communicators were
// freed, and what belongs to communicators that never were. In an order that all ranks share: two threads may
// have made theirs at once, which each rank has in another one.
void close_windows();
// Windows that exist on this rank.
std::uint64_t windows_alive();

// What the standard demands of a persistent request and these do not give, as one phrase; empty: nothing.
const char* shortcoming_of(EpochWay way);

// The operation; its account is the caller's to open. Collective over call.comm. Null, on all ranks alike:
// windows cannot be used for it, and nothing was done.
std::unique_ptr<Ongoing> make_window_plan(const CollectiveCall& call, const CallShape& shape,
                                          Communicator& communicator, World& world, RmaOptions options);

}  // namespace thalweg
