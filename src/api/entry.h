/* What the generated wrappers call: the only door between interpose/ and the rest. C, so that the wrappers
 * can be.
 *
 * Every call is made inside the wrapper of the MPI function of the same name, with the caller's own
 * arguments. */
#ifndef THALWEG_API_ENTRY_H
#define THALWEG_API_ENTRY_H

#include <mpi.h>
#include <stdint.h>

#include "plan/shortcut.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Before thalweg_entry_initialized: whether every call that completes, restarts or frees requests arrives at
 * the wrappers, as far as that can be told; and which makers of persistent alltoalls do, a bit each. */
void thalweg_entry_completions_intercepted(int all, unsigned planners);
/* After the native MPI_Init or MPI_Init_thread succeeded. Collective over the world: finds out whether all
 * ranks have us, and agrees on rank 0's settings. `finalizing` does what the wrapper of MPI_Finalize does in
 * front of the native call, once: it is called inside that where a tool in front of us answered MPI_Finalize
 * with PMPI_Finalize. `creations_arrive` is asked where communicators are to be set up as they are made:
 * whether every call that makes one arrives here. */
void thalweg_entry_initialized(void (*finalizing)(void), int (*creations_arrive)(void));
/* Before the native MPI_Finalize: calls `leave`, after which no call arrives here, frees what we made and
 * writes the report. Where a rank has persistent operations left, all that waits until the native library
 * deletes the attributes of MPI_COMM_SELF, and comes after the program's own callbacks, which may start them.
 * Collective over the world. */
void thalweg_entry_finalizing(void (*leave)(void));
/* After the native MPI_Session_init / before MPI_Session_finalize: local. */
void thalweg_entry_session_opened(void);
void thalweg_entry_session_closing(void);
/* After the native MPI_Init or MPI_Session_init, in front of all else: neither the world nor a session was
 * open. */
void thalweg_entry_mpi_begins(void);
/* Before the native call that makes a communicator of a session's groups, and after it, with what the former
 * returned: local, but that the latter may wait for the end of an MPI_Init that is under way. */
int thalweg_entry_session_comm_begins(void);
void thalweg_entry_session_comm_made(int begun_late, MPI_Comm comm);
/* After the native call that has made comm of ranks of parent, in front of thalweg_entry_comm_created where
 * that is called: local. */
void thalweg_entry_comm_descends(MPI_Comm parent, MPI_Comm comm);

/* Before the native MPI_Comm_free or MPI_Comm_disconnect of comm: collective over it, frees what we made for
 * it. 1: comm is no communicator, of which the program's error handler knows; *error is what the call
 * returns. 0: call the native library. */
int thalweg_entry_comm_freeing(MPI_Comm comm, int* error, void* frame);
/* After the native call, from the same wrapper. */
void thalweg_entry_comm_freed(void* frame);

/* 1: the broadcast is done and *error is what MPI_Bcast returns; 0: declined, call the native library, with
 * *trial as for thalweg_entry_exchange; 2: declined, and nobody need ask again while the bypass is open
 * (plan/bypass.h), or, where *trial is set, for the next ones that are described alike: if before the native
 * call the wrapper has what it keeps of them filled, with *trial as `unasked`. `datatype` is a handle. */
int thalweg_entry_bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                        int* error, void** trial);
void thalweg_entry_remember_broadcast(ThalwegBroadcastShortcut* shortcut, void* native, void* unasked,
                                      MPI_Count count, intptr_t datatype);

/* In a blocking collective on comm, before anything of it happened: a place where it may be set up for
 * nonblocking ones. Cheap while no communicator waits for that. Returns as thalweg_entry_comm_freeing. */
int thalweg_entry_meeting(MPI_Comm comm, int* error);
/* In a call that creates a communicator, in front of the native one. Returns as
 * thalweg_entry_comm_freeing. */
int thalweg_entry_comm_creating(MPI_Comm parent, int* error);
/* In the collective call on parent that creates a communicator, after the native one; comm is it where this
 * rank has `made` it. parent is MPI_COMM_NULL where only the ranks of comm take part. */
void thalweg_entry_comm_created(MPI_Comm parent, int made, MPI_Comm comm);

/* One collective, or one of a neighbourhood; what a call does not have is 0. */
typedef enum ThalwegOperation {
    thalweg_ibcast,
    thalweg_bcast_init,
    thalweg_iallgather,
    thalweg_allgather_init,
    thalweg_iallgatherv,
    thalweg_allgatherv_init,
    thalweg_iallreduce,
    thalweg_allreduce_init,
    thalweg_ibarrier,
    thalweg_barrier_init,
    thalweg_ialltoall,
    thalweg_alltoall_init,
    thalweg_ialltoallv,
    thalweg_alltoallv_init,
    thalweg_ialltoallw,
    thalweg_alltoallw_init,
    /* Of neighbourhoods; the last five are blocking, and make no request. */
    thalweg_ineighbor_allgather,
    thalweg_neighbor_allgather_init,
    thalweg_ineighbor_allgatherv,
    thalweg_neighbor_allgatherv_init,
    thalweg_ineighbor_alltoall,
    thalweg_neighbor_alltoall_init,
    thalweg_ineighbor_alltoallv,
    thalweg_neighbor_alltoallv_init,
    thalweg_ineighbor_alltoallw,
    thalweg_neighbor_alltoallw_init,
    thalweg_neighbor_allgather,
    thalweg_neighbor_allgatherv,
    thalweg_neighbor_alltoall,
    thalweg_neighbor_alltoallv,
    thalweg_neighbor_alltoallw,
    /* Blocking: of thalweg_entry_collective. */
    thalweg_allgather,
    thalweg_allgatherv,
    thalweg_allreduce,
    /* Blocking alltoalls. */
    thalweg_alltoall,
    thalweg_alltoallv,
    thalweg_alltoallw
} ThalwegOperation;

/* Of an alltoallv or an alltoallw, one entry per rank, or per neighbour: counts and displacements of either
 * kind, and `types` where each message has its own. */
typedef struct ThalwegArrays {
    const int* counts;
    const int* displacements;
    const MPI_Count* large_counts;
    const MPI_Aint* large_displacements;
    const MPI_Datatype* types;
} ThalwegArrays;

typedef struct ThalwegCall {
    ThalwegOperation operation;
    const void* send;
    MPI_Count send_count;
    MPI_Datatype send_type;
    void* receive; /* the buffer of a broadcast */
    MPI_Count receive_count;
    MPI_Datatype receive_type;
    const int* counts; /* of an allgatherv: these two, or the two behind them */
    const int* displacements;
    const MPI_Count* large_counts;
    const MPI_Aint* large_displacements;
    ThalwegArrays sent, received;
    int root;
    MPI_Op reduction;
    MPI_Comm comm;
} ThalwegCall;

/* As thalweg_entry_meeting, in a collective whose arguments are known: wrong ones are the MPI library's to
 * report, and no place of that kind. */
int thalweg_entry_meeting_of(const ThalwegCall* call, int* error);
int thalweg_entry_meeting_of_bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root,
                                   MPI_Comm comm, int* error);

/* One of the blocking operations: as thalweg_entry_bcast, but that *trial is not set beside a 2. */
int thalweg_entry_collective(const ThalwegCall* call, int* error, void** trial);

/* One of the others. 1: taken, or failed, and *error is what the call returns; *request is set where it is
 * MPI_SUCCESS. 0: declined, call the native library. 2: the same, and nobody need ask again while the bypass
 * is open for requests. `request` is null where the operation is blocking: 1 says that it is done. */
int thalweg_entry_operation(const ThalwegCall* call, MPI_Request* request, int* error);

/* How many neighbours comm's topology gives this rank, as entries of the arrays of a call. 0: it has none. */
int thalweg_entry_neighbours(MPI_Comm comm, int* sources, int* destinations);
/* Whether thalweg_entry_exchange, for a blocking call, or thalweg_entry_operation has anything to do with
 * calls on comm: asked before their arguments are made ready. -1: comm is no communicator, and *error is what
 * the call returns, as for thalweg_entry_comm_freeing. 0: call the native library. */
int thalweg_entry_may_take(int blocking, MPI_Comm comm, int* error);
/* A blocking alltoall. 1: done, or failed, and *error is what the call returns. 0: declined, call the native
 * library; where *trial is set, between the two functions that follow, which take the time. 2: declined, and
 * nobody need ask for the next ones, if before the native call the wrapper has what it keeps of it filled,
 * with *trial as `unasked`. */
int thalweg_entry_exchange(const ThalwegCall* call, int* error, void** trial);
/* The trial of those that need not be asked about, for *trial. */
void* thalweg_entry_remember_exchange(ThalwegExchangeShortcut* shortcut, void* native, void* unasked);
/* The same alone. Null: `unasked` is, or has no such calls on `comm` any more. */
void* thalweg_entry_trial_of(void* unasked, MPI_Comm comm);
void thalweg_entry_native_begins(void* trial);
int thalweg_entry_native_ended(void* trial); /* 0: it is gone */

/* Requests as the program has them: handles, or Fortran's integers. */
typedef struct ThalwegRequests {
    const MPI_Request* handles;
    const int* integers; /* where handles is null */
} ThalwegRequests;

/* Those of ours that have failed, in a call that completes requests; null at first. */
typedef struct ThalwegFailed ThalwegFailed;
/* What that has completed, as Ended of plan/requests.h. */
typedef struct ThalwegEnded {
    ThalwegRequests requests;
    int count;
    const int* indices;
    int first_index;
    void* statuses;
    int several;
} ThalwegEnded;

/* How many requests of ours exist. While it is 0 nobody need ask anything below: plan/requests.h. */
unsigned thalweg_entry_requests(void);
/* 1: none of ours is pending. 0: the caller tests all of them and asks `again`, as wait_for() says. */
int thalweg_entry_wait(int count, ThalwegRequests requests, int again, ThalwegFailed** failed);
/* 1: some of ours are pending and none of them is done. `failed` is null in a call that only asks. */
int thalweg_entry_help(int count, ThalwegRequests requests, ThalwegFailed** failed);
/* Behind the native call that completes requests, which returned `error`: what the call returns, as
 * tell_failures() says. Nobody need ask where `failed` is null and thalweg_entry_all_well() says 1. */
int thalweg_entry_tell(int error, const ThalwegEnded* ended, ThalwegFailed* failed);
int thalweg_entry_all_well(void);
uint64_t thalweg_entry_pause(uint64_t began_ns);
void thalweg_entry_started(int count, ThalwegRequests requests);
/* 1: *error is what MPI_Request_free or MPI_Cancel returns; 0: call the native library. */
int thalweg_entry_request_free(MPI_Request request, int* error);
int thalweg_entry_cancel(MPI_Request request, int* error);

#ifdef __cplusplus
}
#endif
#endif
