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
// `failed`, of a call that completes one request: becomes what the call returns where ours has failed. The
// communicator's handler has heard of it then, and the native call does not where it is a nonblocking one.
// Elsewhere the native library tells that one's error by the world's handler, as that of a request that is
// nobody's.
//
// Blocks until those of ours are complete, and completes them. False: only a while, because others are among
// them, which may be of a kind that nothing advances but a test of their own (MPICH's nonblocking collective
// file operations are): the caller tests all and calls `again`.
bool wait_for(RequestList requests, int count, bool again = false, int* failed = nullptr);
// Drives ours for a poll and completes those that are done. True: some of ours are pending and none is done,
// so that a native call for any of them would wait in vain.
bool help(RequestList requests, int count, int* failed = nullptr);
// Passes a short time in which ours, or another thread, may progress: the first call of a wait says 0 and
// gets its beginning. Where ranks sleep (World::sleeps) no core is yielded.
std::uint64_t pause_between(std::uint64_t began_ns);

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
