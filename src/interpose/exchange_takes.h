/* What the wrappers of neighbourhood collectives and of blocking alltoalls ask; the other operations' are in
 * runtime.h. Functions that make a request set *request where they take the call. */
#ifndef THALWEG_INTERPOSE_EXCHANGE_TAKES_H
#define THALWEG_INTERPOSE_EXCHANGE_TAKES_H

#include "interpose/handles.h"
#include "plan/shortcut.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Of neighbourhoods. The blocking forms are as the blocking alltoalls below. */
int thalweg_take_MPI_Neighbor_allgather(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                        void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                        ThalwegHandle comm, int* error, void** trial);
int thalweg_take_MPI_Ineighbor_allgather(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                         void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                         ThalwegHandle comm, void* request, int* error);
int thalweg_take_MPI_Neighbor_allgather_init(const void* sendbuf, ThalwegCount sendcount,
                                             ThalwegHandle sendtype, void* recvbuf, ThalwegCount recvcount,
                                             ThalwegHandle recvtype, ThalwegHandle comm, ThalwegHandle info,
                                             void* request, int* error);
int thalweg_take_MPI_Neighbor_allgatherv(const void* sendbuf, int sendcount, ThalwegHandle sendtype,
                                         void* recvbuf, const void* recvcounts, const void* displs,
                                         ThalwegHandle recvtype, ThalwegHandle comm, int* error,
                                         void** trial);
int thalweg_take_MPI_Ineighbor_allgatherv(const void* sendbuf, int sendcount, ThalwegHandle sendtype,
                                          void* recvbuf, const void* recvcounts, const void* displs,
                                          ThalwegHandle recvtype, ThalwegHandle comm, void* request,
                                          int* error);
int thalweg_take_MPI_Neighbor_allgatherv_init(const void* sendbuf, int sendcount, ThalwegHandle sendtype,
                                              void* recvbuf, const void* recvcounts, const void* displs,
                                              ThalwegHandle recvtype, ThalwegHandle comm, ThalwegHandle info,
                                              void* request, int* error);
int thalweg_take_MPI_Neighbor_allgatherv_c(const void* sendbuf, ThalwegCount sendcount,
                                           ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                           const void* displs, ThalwegHandle recvtype, ThalwegHandle comm,
                                           int* error, void** trial);
int thalweg_take_MPI_Ineighbor_allgatherv_c(const void* sendbuf, ThalwegCount sendcount,
                                            ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                            const void* displs, ThalwegHandle recvtype, ThalwegHandle comm,
                                            void* request, int* error);
int thalweg_take_MPI_Neighbor_allgatherv_init_c(const void* sendbuf, ThalwegCount sendcount,
                                                ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                                const void* displs, ThalwegHandle recvtype,
                                                ThalwegHandle comm, ThalwegHandle info, void* request,
                                                int* error);
int thalweg_take_MPI_Neighbor_alltoall(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                       void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                       ThalwegHandle comm, int* error, void** trial);
int thalweg_take_MPI_Ineighbor_alltoall(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                        void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                        ThalwegHandle comm, void* request, int* error);
int thalweg_take_MPI_Neighbor_alltoall_init(const void* sendbuf, ThalwegCount sendcount,
                                            ThalwegHandle sendtype, void* recvbuf, ThalwegCount recvcount,
                                            ThalwegHandle recvtype, ThalwegHandle comm, ThalwegHandle info,
                                            void* request, int* error);
int thalweg_take_MPI_Neighbor_alltoallv(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                        ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                        const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                        int* error, void** trial);
int thalweg_take_MPI_Ineighbor_alltoallv(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                         ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                         const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                         void* request, int* error);
int thalweg_take_MPI_Neighbor_alltoallv_init(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                             ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                             const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                             ThalwegHandle info, void* request, int* error);
int thalweg_take_MPI_Neighbor_alltoallv_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                          ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                          const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                          int* error, void** trial);
int thalweg_take_MPI_Ineighbor_alltoallv_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                           ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                           const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                           void* request, int* error);
int thalweg_take_MPI_Neighbor_alltoallv_init_c(const void* sendbuf, const void* sendcounts,
                                               const void* sdispls, ThalwegHandle sendtype, void* recvbuf,
                                               const void* recvcounts, const void* rdispls,
                                               ThalwegHandle recvtype, ThalwegHandle comm, ThalwegHandle info,
                                               void* request, int* error);
int thalweg_take_MPI_Neighbor_alltoallw(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                        const void* sendtypes, void* recvbuf, const void* recvcounts,
                                        const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                        int* error, void** trial);
int thalweg_take_MPI_Ineighbor_alltoallw(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                         const void* sendtypes, void* recvbuf, const void* recvcounts,
                                         const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                         void* request, int* error);
int thalweg_take_MPI_Neighbor_alltoallw_init(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                             const void* sendtypes, void* recvbuf, const void* recvcounts,
                                             const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                             ThalwegHandle info, void* request, int* error);
int thalweg_take_MPI_Neighbor_alltoallw_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                          const void* sendtypes, void* recvbuf, const void* recvcounts,
                                          const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                          int* error, void** trial);
int thalweg_take_MPI_Ineighbor_alltoallw_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                           const void* sendtypes, void* recvbuf, const void* recvcounts,
                                           const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                           void* request, int* error);
int thalweg_take_MPI_Neighbor_alltoallw_init_c(const void* sendbuf, const void* sendcounts,
                                               const void* sdispls, const void* sendtypes, void* recvbuf,
                                               const void* recvcounts, const void* rdispls,
                                               const void* recvtypes, ThalwegHandle comm, ThalwegHandle info,
                                               void* request, int* error);

/* The same from Fortran, where handles are integers, and buffers may be Fortran's MPI_BOTTOM and
 * MPI_IN_PLACE; displacements of an alltoallw are addresses there, not integers. */
int thalweg_take_mpi_neighbor_allgather(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                        int recvcount, int recvtype, int comm, int* error, void** trial);
int thalweg_take_mpi_ineighbor_allgather(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                         int recvcount, int recvtype, int comm, int* request, int* error);
int thalweg_take_mpi_neighbor_allgather_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                             int recvcount, int recvtype, int comm, int info, int* request,
                                             int* error);
int thalweg_take_mpi_neighbor_allgatherv(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                         const int* recvcounts, const int* displs, int recvtype, int comm,
                                         int* error, void** trial);
int thalweg_take_mpi_ineighbor_allgatherv(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                          const int* recvcounts, const int* displs, int recvtype, int comm,
                                          int* request, int* error);
int thalweg_take_mpi_neighbor_allgatherv_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                              const int* recvcounts, const int* displs, int recvtype,
                                              int comm, int info, int* request, int* error);
int thalweg_take_mpi_neighbor_alltoall(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                       int recvcount, int recvtype, int comm, int* error, void** trial);
int thalweg_take_mpi_ineighbor_alltoall(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                        int recvcount, int recvtype, int comm, int* request, int* error);
int thalweg_take_mpi_neighbor_alltoall_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                            int recvcount, int recvtype, int comm, int info, int* request,
                                            int* error);
int thalweg_take_mpi_neighbor_alltoallv(void* sendbuf, const int* sendcounts, const int* sdispls,
                                        int sendtype, void* recvbuf, const int* recvcounts,
                                        const int* rdispls, int recvtype, int comm, int* error, void** trial);
int thalweg_take_mpi_ineighbor_alltoallv(void* sendbuf, const int* sendcounts, const int* sdispls,
                                         int sendtype, void* recvbuf, const int* recvcounts,
                                         const int* rdispls, int recvtype, int comm, int* request,
                                         int* error);
int thalweg_take_mpi_neighbor_alltoallv_init(void* sendbuf, const int* sendcounts, const int* sdispls,
                                             int sendtype, void* recvbuf, const int* recvcounts,
                                             const int* rdispls, int recvtype, int comm, int info,
                                             int* request, int* error);
int thalweg_take_mpi_neighbor_alltoallw(void* sendbuf, const int* sendcounts, const int* sdispls,
                                        const int* sendtypes, void* recvbuf, const int* recvcounts,
                                        const int* rdispls, const int* recvtypes, int comm, int* error,
                                        void** trial);
int thalweg_take_mpi_ineighbor_alltoallw(void* sendbuf, const int* sendcounts, const int* sdispls,
                                         const int* sendtypes, void* recvbuf, const int* recvcounts,
                                         const int* rdispls, const int* recvtypes, int comm, int* request,
                                         int* error);
int thalweg_take_mpi_neighbor_alltoallw_init(void* sendbuf, const int* sendcounts, const int* sdispls,
                                             const int* sendtypes, void* recvbuf, const int* recvcounts,
                                             const int* rdispls, const int* recvtypes, int comm, int info,
                                             int* request, int* error);
/* The blocking alltoalls. 1: done, *error is what the wrapper returns. 0: pass the call on; where *trial is
 * set, between the two functions that follow, which take the time. 2: pass it on, after the wrapper has told
 * thalweg_remember_exchange(), of `unasked` = *trial, and with what that returns as *trial; null at first.
 * From Fortran, which has no 2.
 * Where it was set, the native call has failed and the trial lives, the wrapper calls the same again, with
 * *trial as it is and what the call returned in *error: the trial counts none that is refused. So it does for
 * those that it passes on by itself, with thalweg_trial_of() of whose they are, if that is not null. */
int thalweg_take_MPI_Alltoall(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                              void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                              ThalwegHandle comm, int* error, void** trial);
int thalweg_take_MPI_Alltoallv(const void* sendbuf, const void* sendcounts, const void* sdispls,
                               ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                               const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm, int* error,
                               void** trial);
int thalweg_take_MPI_Alltoallv_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                 ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                 const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm, int* error,
                                 void** trial);
int thalweg_take_MPI_Alltoallw(const void* sendbuf, const void* sendcounts, const void* sdispls,
                               const void* sendtypes, void* recvbuf, const void* recvcounts,
                               const void* rdispls, const void* recvtypes, ThalwegHandle comm, int* error,
                               void** trial);
int thalweg_take_MPI_Alltoallw_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                 const void* sendtypes, void* recvbuf, const void* recvcounts,
                                 const void* rdispls, const void* recvtypes, ThalwegHandle comm, int* error,
                                 void** trial);
int thalweg_take_mpi_alltoall(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                              int recvtype, int comm, int* error, void** trial);
int thalweg_take_mpi_alltoallv(void* sendbuf, const int* sendcounts, const int* sdispls, int sendtype,
                               void* recvbuf, const int* recvcounts, const int* rdispls, int recvtype,
                               int comm, int* error, void** trial);
int thalweg_take_mpi_alltoallw(void* sendbuf, const int* sendcounts, const int* sdispls, const int* sendtypes,
                               void* recvbuf, const int* recvcounts, const int* rdispls, const int* recvtypes,
                               int comm, int* error, void** trial);
void* thalweg_remember_exchange(ThalwegExchangeShortcut* shortcut, void* native, void* unasked);
void* thalweg_trial_of(void* unasked, ThalwegHandle comm);
void thalweg_native_begins(void* trial);
/* 0: the trial is gone. */
int thalweg_native_ended(void* trial);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
