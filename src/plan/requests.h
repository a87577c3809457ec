// MPI requests that stand for operations of ours.
//
// A nonblocking operation is a generalized request; a persistent one is a receive of nothing from oneself, on
// a private communicator, that a send of nothing completes. Both are real requests of the native library, so
// that they mix with its own in every call. The thread that completes requests finishes ours first: inside
// the wrapped calls, in front of the native one. A completion call that does not reach us waits; it never
// reports success early.
//
// One thread at a time completes, starts or frees a request, as MPI demands; any number may ask after it at
// once, by MPI_Request_get_status and its like. Different threads may use different requests.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "plan/ongoing.h"
#include "plan/shortcut.h"
#include "transport/mpi/host.h"

namespace thalweg {

struct Ticket;

// Requests of the program: handles, or Fortran's integers, which are translated as they are looked at, so
// that no call that completes requests needs memory. Refers to them.
struct RequestList {
    const MPI_Request* handles = nullptr;
    const int* integers = nullptr;  // where handles is null

    bool empty() const { return handles == nullptr && integers == nullptr; }
    MPI_Request operator[](int i) const {
        return handles != nullptr ? handles[i] : host()->request_of_fortran(integers[i]);
    }
};

// Requests of ours that exist. While there is none, everything here is one relaxed load for its caller.
inline std::uint64_t requests_alive() {
    return std::atomic_ref(thalweg_completion_calls.requests).load(std::memory_order_relaxed);
}

// The request of an operation that was started on `comm`, where its errors are raised. Null on success; the
// operation itself where MPI refuses, with its error code.
std::unique_ptr<Ongoing> make_request(std::unique_ptr<Ongoing> ongoing, MPI_Comm comm, MPI_Request* request,
                                      int& error);
// An inactive request for a persistent operation.
std::unique_ptr<Ongoing> make_persistent(std::unique_ptr<Ongoing> ongoing, MPI_Comm comm,
                                         MPI_Request* request, int& error);

// In front of the native call of the same effect; others' requests and null handles are left alone. Both give
// whatever of ours nobody else advances a poll now and then, whoever's it is (Ongoing::Options::unattended).
//
// `failed`, of a call that completes requests: those of ours that have failed, from null at first, for
// tell_failures() behind the native call, which must follow. The native library, to which they are requests
// of no communicator, would tell the wrong handler: it takes them for successful.
//
// Blocks until those of ours are complete, and completes them. False: only a while, because others are among
// them, which may be of a kind that nothing advances but a test of their own (MPICH's nonblocking collective
// file operations are): the caller tests all and calls `again`.
bool wait_for(RequestList requests, int count, bool again, Ticket** failed);
// Drives ours for a poll and completes those that are done. True: some of ours are pending and none is done,
// so that a native call for any of them would wait in vain. `failed` is null in a call that only asks.
bool help(RequestList requests, int count, Ticket** failed = nullptr);
// Passes a short time in which ours, or another thread, may progress: the first call of a wait says 0 and
// gets its beginning. Where ranks sleep (World::sleeps) no core is yielded.
std::uint64_t pause_between(std::uint64_t began_ns);

// What the native call says that it has completed.
struct Ended {
    RequestList requests;          // of the call
    int count = 0;                 // so many of them
    const int* indices = nullptr;  // which these are; null: the first ones
    int first_index = 0;           // what the first request of the call is called there: 1 in Fortran
    void* statuses = nullptr;      // of these, whatever their alignment; null: nobody wants them
    bool several = false;          // failures are told by statuses, and by MPI_ERR_IN_STATUS
};
// True: there is no failure that the program has not heard of.
bool no_failures();
// Behind the native call, which returned `error`: tells of our failures in its statuses, calls the handler of
// each communicator that they belong to once, and returns what the call returns.
int tell_failures(int error, const Ended& ended, Ticket* failed);

// After the native MPI_Start or MPI_Startall.
void start(RequestList requests, int count);

// MPI_Request_free and MPI_Cancel. False: the native call follows. True: `error` is what the call returns.
bool refuse_free(const MPI_Request& request, int& error);
bool refuse_cancel(const MPI_Request& request, int& error);

// Persistent requests of ours exist.
bool plans_alive();
// Before MPI_Finalize: what the program freed while it was active is waited for.
void finish_freed();
// And lets go of what inactive persistent requests have. False: some are active.
bool release_requests();

}  // namespace thalweg
