/* What the generated wrappers share. The functions are exported by the core object to the objects with the
 * optional names. */
#ifndef THALWEG_INTERPOSE_RUNTIME_H
#define THALWEG_INTERPOSE_RUNTIME_H

#include <stdint.h>

#include "interpose/exchange_takes.h"
#include "interpose/handles.h"
#include "plan/shortcut.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Marks the thread as inside a wrapper. 1: it was not before, call thalweg_leave() when done; 0: MPI's own
 * code came back to us (a Fortran binding that calls the C function): pass the call on. `frame` is
 * __builtin_frame_address(0): a mark that a longjmp left behind is recognised by the stack having grown back.
 */
int thalweg_enter(void* frame);
void thalweg_leave(void);
/* Around the native call of a Fortran wrapper that has just asked about it, where the native binding calls
 * the C function: that wrapper does not ask again. The thread does not count as inside, because error
 * handlers of the program's run there. */
void thalweg_pass_on(void* frame);
void thalweg_passed_on(void);

/* Around the native call of the same name; the first is in front of MPI_Session_init as well. */
void thalweg_before_init(void);
void thalweg_after_init(void);
/* Inside the native MPI_Init, in front of the PMIx_Commit it makes. */
void thalweg_before_commit(void);
void thalweg_before_finalize(void);
void thalweg_after_session_init(void);
void thalweg_before_session_finalize(void);
/* Around the native call that makes a communicator of groups; what the first returned the second is told,
 * which is called where there was no error. */
int thalweg_before_session_comm(void);
void thalweg_after_session_comm(int begun_late, const void* comm);
void thalweg_after_session_comm_fortran(int begun_late, int comm);

/* Before MPI_Comm_free and MPI_Comm_disconnect, from C and from Fortran. A Fortran binding that calls the C
 * function asks twice, which does no harm; the native call is not marked as ours, because the program's own
 * attribute callbacks run inside it. 1: *error is what the wrapper returns; 0: pass the call on. */
int thalweg_before_MPI_Comm_free(const void* comm, int* error);
int thalweg_before_mpi_comm_free(int comm, int* error);
/* Behind the native call of either, where that was passed on. */
void thalweg_after_MPI_Comm_free(void);

/* 1: done, *error is what the wrapper returns; 0: pass the call on; 2: pass it on, and remember the function
 * it was passed on to. *trial as for the blocking alltoalls (exchange_takes.h): where it is set beside a 2,
 * thalweg_remember_broadcast() remembers, with that as `unasked`, and thalweg_remember() elsewhere. */
int thalweg_take_MPI_Bcast(void* buffer, ThalwegCount count, ThalwegHandle datatype, int root,
                           ThalwegHandle comm, int* error, void** trial);
int thalweg_take_MPI_Allgather(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                               void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                               ThalwegHandle comm, int* error, void** trial);
int thalweg_take_MPI_Allgatherv(const void* sendbuf, int sendcount, ThalwegHandle sendtype, void* recvbuf,
                                const void* recvcounts, const void* displs, ThalwegHandle recvtype,
                                ThalwegHandle comm, int* error, void** trial);
int thalweg_take_MPI_Allgatherv_c(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                  void* recvbuf, const void* recvcounts, const void* displs,
                                  ThalwegHandle recvtype, ThalwegHandle comm, int* error, void** trial);
int thalweg_take_MPI_Allreduce(const void* sendbuf, void* recvbuf, ThalwegCount count, ThalwegHandle datatype,
                               ThalwegHandle op, ThalwegHandle comm, int* error, void** trial);
/* The same from Fortran: handles are Fortran integers, and buffers may be Fortran's MPI_BOTTOM and
 * MPI_IN_PLACE. 1: done; 0: pass the call on. */
int thalweg_take_mpi_bcast(void* buffer, int count, int datatype, int root, int comm, int* error,
                           void** trial);
int thalweg_take_mpi_allgather(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                               int recvtype, int comm, int* error, void** trial);
int thalweg_take_mpi_allgatherv(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                const int* recvcounts, const int* displs, int recvtype, int comm, int* error,
                                void** trial);
int thalweg_take_mpi_allreduce(void* sendbuf, void* recvbuf, int count, int datatype, int op, int comm,
                               int* error, void** trial);

/* For the next ones that are described so, as many as a trial leaves to the native library. */
void thalweg_remember_broadcast(ThalwegBroadcastShortcut* shortcut, void* native, void* unasked,
                                ThalwegCount count, ThalwegHandle datatype);
/* `shortcut` stands for `native`, for the calls that nobody wants to see, until that changes. Of allgathers
 * whose blocks differ no wrapper can tell which are short. */
enum { thalweg_of_bcast, thalweg_of_allgather, thalweg_of_allreduce, thalweg_of_allgatherv };
void thalweg_remember(ThalwegShortcut* shortcut, void* native, int kind);
/* The same for the operations that make a request; *request is set where it is taken. Arrays of large counts
 * have functions of their own. From thalweg_handed_on on: pass the call on, and nobody need ask again, if the
 * wrapper tells thalweg_remember_request() this answer. */
enum { thalweg_handed_on = 2 };
void thalweg_remember_request(ThalwegRequestShortcut* shortcut, void* native, int answer);
/* Before a wrapper of Fortran asks, whose native binding calls the C function: 1 where the wrapper of that
 * hands such calls on and counts them. */
int thalweg_leaves_requests(void);
int thalweg_take_MPI_Ibcast(void* buffer, ThalwegCount count, ThalwegHandle datatype, int root,
                            ThalwegHandle comm, void* request, int* error);
int thalweg_take_MPI_Bcast_init(void* buffer, ThalwegCount count, ThalwegHandle datatype, int root,
                                ThalwegHandle comm, ThalwegHandle info, void* request, int* error);
int thalweg_take_MPI_Iallgather(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                ThalwegHandle comm, void* request, int* error);
int thalweg_take_MPI_Allgather_init(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                    void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                    ThalwegHandle comm, ThalwegHandle info, void* request, int* error);
int thalweg_take_MPI_Iallgatherv(const void* sendbuf, int sendcount, ThalwegHandle sendtype, void* recvbuf,
                                 const void* recvcounts, const void* displs, ThalwegHandle recvtype,
                                 ThalwegHandle comm, void* request, int* error);
int thalweg_take_MPI_Iallgatherv_c(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                   void* recvbuf, const void* recvcounts, const void* displs,
                                   ThalwegHandle recvtype, ThalwegHandle comm, void* request, int* error);
int thalweg_take_MPI_Allgatherv_init(const void* sendbuf, int sendcount, ThalwegHandle sendtype,
                                     void* recvbuf, const void* recvcounts, const void* displs,
                                     ThalwegHandle recvtype, ThalwegHandle comm, ThalwegHandle info,
                                     void* request, int* error);
int thalweg_take_MPI_Allgatherv_init_c(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                       void* recvbuf, const void* recvcounts, const void* displs,
                                       ThalwegHandle recvtype, ThalwegHandle comm, ThalwegHandle info,
                                       void* request, int* error);
int thalweg_take_MPI_Iallreduce(const void* sendbuf, void* recvbuf, ThalwegCount count,
                                ThalwegHandle datatype, ThalwegHandle op, ThalwegHandle comm, void* request,
                                int* error);
int thalweg_take_MPI_Allreduce_init(const void* sendbuf, void* recvbuf, ThalwegCount count,
                                    ThalwegHandle datatype, ThalwegHandle op, ThalwegHandle comm,
                                    ThalwegHandle info, void* request, int* error);
int thalweg_take_MPI_Ibarrier(ThalwegHandle comm, void* request, int* error);
int thalweg_take_MPI_Barrier_init(ThalwegHandle comm, ThalwegHandle info, void* request, int* error);

int thalweg_take_MPI_Ialltoall(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                               void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                               ThalwegHandle comm, void* request, int* error);
int thalweg_take_MPI_Alltoall_init(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                   void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                   ThalwegHandle comm, ThalwegHandle info, void* request, int* error);
int thalweg_take_MPI_Ialltoallv(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                void* request, int* error);
int thalweg_take_MPI_Ialltoallv_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                  ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                  const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                  void* request, int* error);
int thalweg_take_MPI_Alltoallv_init(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                    ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                    const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                    ThalwegHandle, void* request, int* error);
int thalweg_take_MPI_Alltoallv_init_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                      ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                      const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                      ThalwegHandle info, void* request, int* error);
int thalweg_take_MPI_Ialltoallw(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                const void* sendtypes, void* recvbuf, const void* recvcounts,
                                const void* rdispls, const void* recvtypes, ThalwegHandle comm, void* request,
                                int* error);
int thalweg_take_MPI_Ialltoallw_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                  const void* sendtypes, void* recvbuf, const void* recvcounts,
                                  const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                  void* request, int* error);
int thalweg_take_MPI_Alltoallw_init(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                    const void* sendtypes, void* recvbuf, const void* recvcounts,
                                    const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                    ThalwegHandle, void* request, int* error);
int thalweg_take_MPI_Alltoallw_init_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                      const void* sendtypes, void* recvbuf, const void* recvcounts,
                                      const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                      ThalwegHandle, void* request, int* error);

/* From Fortran: handles are integers, and buffers may be Fortran's MPI_BOTTOM and MPI_IN_PLACE. */
int thalweg_take_mpi_ibcast(void* buffer, int count, int datatype, int root, int comm, int* request,
                            int* error);
int thalweg_take_mpi_bcast_init(void* buffer, int count, int datatype, int root, int comm, int info,
                                int* request, int* error);
int thalweg_take_mpi_iallgather(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                                int recvtype, int comm, int* request, int* error);
int thalweg_take_mpi_allgather_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                                    int recvtype, int comm, int info, int* request, int* error);
int thalweg_take_mpi_iallgatherv(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                 const int* recvcounts, const int* displs, int recvtype, int comm,
                                 int* request, int* error);
int thalweg_take_mpi_allgatherv_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                     const int* recvcounts, const int* displs, int recvtype, int comm,
                                     int info, int* request, int* error);
int thalweg_take_mpi_iallreduce(void* sendbuf, void* recvbuf, int count, int datatype, int op, int comm,
                                int* request, int* error);
int thalweg_take_mpi_allreduce_init(void* sendbuf, void* recvbuf, int count, int datatype, int op, int comm,
                                    int info, int* request, int* error);
int thalweg_take_mpi_ibarrier(int comm, int* request, int* error);
int thalweg_take_mpi_barrier_init(int comm, int info, int* request, int* error);
int thalweg_take_mpi_ialltoall(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                               int recvtype, int comm, int* request, int* error);
int thalweg_take_mpi_alltoall_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                                   int recvtype, int comm, int info, int* request, int* error);
int thalweg_take_mpi_ialltoallv(void* sendbuf, const int* sendcounts, const int* sdispls, int sendtype,
                                void* recvbuf, const int* recvcounts, const int* rdispls, int recvtype,
                                int comm, int* request, int* error);
int thalweg_take_mpi_alltoallv_init(void* sendbuf, const int* sendcounts, const int* sdispls, int sendtype,
                                    void* recvbuf, const int* recvcounts, const int* rdispls, int recvtype,
                                    int comm, int info, int* request, int* error);
int thalweg_take_mpi_ialltoallw(void* sendbuf, const int* sendcounts, const int* sdispls,
                                const int* sendtypes, void* recvbuf, const int* recvcounts,
                                const int* rdispls, const int* recvtypes, int comm, int* request, int* error);
int thalweg_take_mpi_alltoallw_init(void* sendbuf, const int* sendcounts, const int* sdispls,
                                    const int* sendtypes, void* recvbuf, const int* recvcounts,
                                    const int* rdispls, const int* recvtypes, int comm, int info,
                                    int* request, int* error);

/* A wrapper in C that was asked while no request of ours exists need not be asked again until one does. */
void thalweg_remember_completion(enum ThalwegCompletion call, void* native);

/* Requests of ours that have failed, which a call that completes requests finds in front of the native one:
 * null at first. That takes them for successful; behind it one of thalweg_after_one() and its like follows.
 */
typedef struct ThalwegFailed ThalwegFailed;
/* In front of the native call that waits for these requests, or that tests them. Costs a call and two loads
 * while no request of ours exists. Asked twice where a Fortran binding calls the C function, which does no
 * harm. thalweg_before_test() is for calls that only ask. */
void thalweg_before_wait(const void* request, ThalwegFailed** failed);
void thalweg_before_wait_fortran(const int* request, ThalwegFailed** failed);
void thalweg_before_end(int count, const void* requests, ThalwegFailed** failed);
void thalweg_before_end_fortran(int count, const int* requests, ThalwegFailed** failed);
void thalweg_before_test(int count, const void* requests);
void thalweg_before_test_fortran(int count, const int* requests);
void thalweg_before_test_of_one(ThalwegHandle request);
/* The same for all of several. 0: some of ours are pending, and the others want to be tested before the next
 * call, which says `again`. */
int thalweg_before_waitall(int count, const void* requests, int again, ThalwegFailed** failed);
int thalweg_before_waitall_fortran(int count, const int* requests, int again, ThalwegFailed** failed);
/* Tests them, one by one: MPI_Testall of MPICH 5 and Intel MPI 2021 takes a persistent collective that goes
 * on for an error. `native_test`: MPI_Test or mpi_test, as this wrapper's successor has it. `early`: null at
 * first; what ended keeps its status there until the native MPI_Waitall, to which its request is null or
 * inactive. */
typedef struct ThalwegEarly ThalwegEarly;
void thalweg_test_others(int count, void* requests, void* native_test, ThalwegEarly** early);
void thalweg_test_others_fortran(int count, int* requests, void* native_test, ThalwegEarly** early);
/* Behind the native call, which returned `error`: what MPI_Waitall returns for all. Frees `early`. */
int thalweg_add_early(int error, int count, void* statuses, ThalwegEarly* early);
int thalweg_add_early_fortran(int error, int count, int* statuses, ThalwegEarly* early);
/* Whether the native MPI_Waitany or MPI_Waitsome would wait without seeing ours complete. */
int thalweg_would_wait(int count, const void* requests, ThalwegFailed** failed);
int thalweg_would_wait_fortran(int count, const int* requests, ThalwegFailed** failed);
/* For MPI_Testall of several requests, where the program wants no statuses: memory for some. Without any
 * MPICH completes all as messages where those are that it looks at last, of 64 at once or as many as
 * MPIR_CVAR_REQUEST_BATCH_SIZE says, and ends the job on a generalized request, or (version 5) completes it
 * without a word. Null: it is called as it is. Given back behind it. */
void* thalweg_lend_statuses(int count, void* statuses);
int* thalweg_lend_statuses_fortran(int count, int* statuses);
void thalweg_take_statuses_back(void* own);
/* Passes a short time between two tests; takes what it returned, 0 at first. */
uint64_t thalweg_pause(uint64_t began_ns);
/* Behind the native call, which returned `error`: what the wrapper returns. Of ours that have failed the
 * handlers of their communicators have heard then. `flag`: of a test, else null; `form`: the name of the
 * Fortran wrapper, where it has indices. */
int thalweg_after_one(int error, const int* flag, const void* request, ThalwegFailed* failed);
int thalweg_after_one_fortran(int error, const int* flag, const int* request, ThalwegFailed* failed);
int thalweg_after_all(int error, const int* flag, int count, const void* requests, void* statuses,
                      ThalwegFailed* failed);
int thalweg_after_all_fortran(int error, const int* flag, int count, const int* requests, int* statuses,
                              ThalwegFailed* failed);
int thalweg_after_any(int error, const int* flag, const int* index, const void* requests,
                      ThalwegFailed* failed);
int thalweg_after_any_fortran(int error, const char* form, const int* flag, const int* index,
                              const int* requests, ThalwegFailed* failed);
int thalweg_after_some(int error, const int* outcount, const void* indices, const void* requests,
                       void* statuses, ThalwegFailed* failed);
int thalweg_after_some_fortran(int error, const char* form, const int* outcount, const int* indices,
                               const int* requests, int* statuses, ThalwegFailed* failed);
/* After the native MPI_Start or MPI_Startall. From Fortran one has to be announced: where the native binding
 * calls the C function, what that has started may be over by then, and is not started again. */
void thalweg_before_start_fortran(void);
void thalweg_after_start(int count, const void* requests);
void thalweg_after_start_fortran(int count, const int* requests);
/* 1: *error is what the wrapper returns; 0: pass the call on. */
int thalweg_take_MPI_Request_free(const void* request, int* error);
int thalweg_take_mpi_request_free(const int* request, int* error);
int thalweg_take_MPI_Cancel(const void* request, int* error);
int thalweg_take_mpi_cancel(const int* request, int* error);

/* Before a blocking collective, before the native call that makes a communicator of the ranks of another, and
 * after that has returned `error`: where it may be set up. The first two return as
 * thalweg_before_MPI_Comm_free. */
int thalweg_meeting(ThalwegHandle comm, int* error);
void thalweg_remember_meeting(ThalwegMeetingShortcut* shortcut, void* native);
int thalweg_meeting_fortran(int comm, int* error);
/* The same of MPI_Reduce: whose arguments are wrong meets nobody. */
int thalweg_meeting_of_reduce(const void* sendbuf, const void* recvbuf, ThalwegCount count,
                              ThalwegHandle datatype, int root, ThalwegHandle comm, int* error);
int thalweg_meeting_of_reduce_fortran(void* sendbuf, void* recvbuf, int count, int datatype, int root,
                                      int comm, int* error);
int thalweg_before_creation(ThalwegHandle parent, int* error);
int thalweg_before_creation_fortran(int parent, int* error);
void thalweg_after_creation(ThalwegHandle parent, int error, const void* comm);
void thalweg_after_creation_of_group(ThalwegHandle parent, int error, ThalwegHandle group, const void* comm);
void thalweg_after_creation_in_group(ThalwegHandle parent, const void* comm);
void thalweg_after_creation_fortran(int parent, int error, int comm);
void thalweg_after_creation_of_group_fortran(int parent, int error, int group, int comm);
void thalweg_after_creation_in_group_fortran(int parent, int comm);
/* After a native call that makes one in which nothing may be set up, without an error. */
void thalweg_after_descent(ThalwegHandle parent, const void* comm);
void thalweg_after_descent_fortran(int parent, int comm);

/* P`name` (p`name` for Fortran) where the user asks for calls past tools (THALWEG_CALL_THROUGH=pmpi); else,
 * and where no library has that, null. */
void* thalweg_find_past_tools(const char* name);
/* Any definition of `name` but `self` in the loaded objects, else of P`name` (p`name` for Fortran); null when
 * there is none. */
void* thalweg_find_native(const char* name, void* self);
/* What an older library has in the place of MPI_x or mpi_x: MPIX_x or mpix_x, with the same arguments; null:
 * nothing. */
void* thalweg_find_extension(const char* name);
/* Says once per name that the MPI library of this process lacks a function that the program called. */
void thalweg_report_missing(const char* name);
/* What a wrapper returns when there is nothing to pass the call on to. Between MPI_Init and MPI_Finalize the
 * error handler of MPI_COMM_WORLD is called: nobody goes on with a request that was never made. */
int thalweg_missing_error(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
