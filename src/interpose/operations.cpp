// What the wrappers of nonblocking and persistent collectives call.
#include <mpi.h>

#include "interpose/arguments.h"
#include "interpose/offer.h"

using namespace thalweg;
using namespace thalweg::arguments;

extern "C" {

void thalweg_remember_request(ThalwegRequestShortcut* shortcut, void* native, int answer) {
    Bypass::remember(*shortcut, native, static_cast<CallKind>(answer - thalweg_handed_on + 1));
}
int thalweg_leaves_requests(void) { return fortran_asks() && Bypass::open(Bypass::requests); }

int thalweg_take_MPI_Ibcast(void* buffer, ThalwegCount count, ThalwegHandle datatype, int root,
                            ThalwegHandle comm, void* request, int* error) {
    return offer(broadcast(thalweg_ibcast, buffer, count, TYPE(datatype), root, COMM(comm)), request, error,
                 FRAME);
}
int thalweg_take_MPI_Bcast_init(void* buffer, ThalwegCount count, ThalwegHandle datatype, int root,
                                ThalwegHandle comm, ThalwegHandle, void* request, int* error) {
    return offer(broadcast(thalweg_bcast_init, buffer, count, TYPE(datatype), root, COMM(comm)), request,
                 error, FRAME);
}
int thalweg_take_MPI_Iallgather(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                ThalwegHandle comm, void* request, int* error) {
    return offer(blocks(thalweg_iallgather, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcount,
                        TYPE(recvtype), COMM(comm)),
                 request, error, FRAME);
}
int thalweg_take_MPI_Allgather_init(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                    void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                    ThalwegHandle comm, ThalwegHandle, void* request, int* error) {
    return offer(blocks(thalweg_allgather_init, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcount,
                        TYPE(recvtype), COMM(comm)),
                 request, error, FRAME);
}
int thalweg_take_MPI_Iallgatherv(const void* sendbuf, int sendcount, ThalwegHandle sendtype, void* recvbuf,
                                 const void* recvcounts, const void* displs, ThalwegHandle recvtype,
                                 ThalwegHandle comm, void* request, int* error) {
    return offer(allgatherv(thalweg_iallgatherv, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcounts,
                            displs, TYPE(recvtype), COMM(comm), false),
                 request, error, FRAME);
}
int thalweg_take_MPI_Iallgatherv_c(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                   void* recvbuf, const void* recvcounts, const void* displs,
                                   ThalwegHandle recvtype, ThalwegHandle comm, void* request, int* error) {
    return offer(allgatherv(thalweg_iallgatherv, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcounts,
                            displs, TYPE(recvtype), COMM(comm), true),
                 request, error, FRAME);
}
int thalweg_take_MPI_Allgatherv_init(const void* sendbuf, int sendcount, ThalwegHandle sendtype,
                                     void* recvbuf, const void* recvcounts, const void* displs,
                                     ThalwegHandle recvtype, ThalwegHandle comm, ThalwegHandle, void* request,
                                     int* error) {
    return offer(allgatherv(thalweg_allgatherv_init, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcounts,
                            displs, TYPE(recvtype), COMM(comm), false),
                 request, error, FRAME);
}
int thalweg_take_MPI_Allgatherv_init_c(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                       void* recvbuf, const void* recvcounts, const void* displs,
                                       ThalwegHandle recvtype, ThalwegHandle comm, ThalwegHandle,
                                       void* request, int* error) {
    return offer(allgatherv(thalweg_allgatherv_init, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcounts,
                            displs, TYPE(recvtype), COMM(comm), true),
                 request, error, FRAME);
}
int thalweg_take_MPI_Iallreduce(const void* sendbuf, void* recvbuf, ThalwegCount count,
                                ThalwegHandle datatype, ThalwegHandle op, ThalwegHandle comm, void* request,
                                int* error) {
    return offer(allreduce(thalweg_iallreduce, sendbuf, recvbuf, count, TYPE(datatype), OP(op), COMM(comm)),
                 request, error, FRAME);
}
int thalweg_take_MPI_Allreduce_init(const void* sendbuf, void* recvbuf, ThalwegCount count,
                                    ThalwegHandle datatype, ThalwegHandle op, ThalwegHandle comm,
                                    ThalwegHandle, void* request, int* error) {
    return offer(
        allreduce(thalweg_allreduce_init, sendbuf, recvbuf, count, TYPE(datatype), OP(op), COMM(comm)),
        request, error, FRAME);
}
int thalweg_take_MPI_Ibarrier(ThalwegHandle comm, void* request, int* error) {
    return offer(barrier(thalweg_ibarrier, COMM(comm)), request, error, FRAME);
}
int thalweg_take_MPI_Barrier_init(ThalwegHandle comm, ThalwegHandle, void* request, int* error) {
    return offer(barrier(thalweg_barrier_init, COMM(comm)), request, error, FRAME);
}

int thalweg_take_mpi_ibcast(void* buffer, int count, int datatype, int root, int comm, int* request,
                            int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(
        broadcast(thalweg_ibcast, buffer_of(buffer), count, type_of(datatype), root, comm_of(comm)), request,
        error, FRAME);
}
int thalweg_take_mpi_bcast_init(void* buffer, int count, int datatype, int root, int comm, int, int* request,
                                int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(
        broadcast(thalweg_bcast_init, buffer_of(buffer), count, type_of(datatype), root, comm_of(comm)),
        request, error, FRAME);
}
int thalweg_take_mpi_iallgather(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                                int recvtype, int comm, int* request, int* error) {
    if (!fortran_asks()) return 0;
    void* const send = buffer_of(sendbuf);
    return offer_fortran(blocks(thalweg_iallgather, send, sendcount, type_of(sendtype), buffer_of(recvbuf),
                                recvcount, type_of(recvtype), comm_of(comm)),
                         request, error, FRAME);
}
int thalweg_take_mpi_allgather_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                                    int recvtype, int comm, int, int* request, int* error) {
    if (!fortran_asks()) return 0;
    void* const send = buffer_of(sendbuf);
    return offer_fortran(blocks(thalweg_allgather_init, send, sendcount, type_of(sendtype),
                                buffer_of(recvbuf), recvcount, type_of(recvtype), comm_of(comm)),
                         request, error, FRAME);
}
int thalweg_take_mpi_iallgatherv(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                 const int* recvcounts, const int* displs, int recvtype, int comm,
                                 int* request, int* error) {
    if (!fortran_asks()) return 0;
    void* const send = buffer_of(sendbuf);
    return offer_fortran(
        allgatherv(thalweg_iallgatherv, send, sendcount, type_of(sendtype), buffer_of(recvbuf), recvcounts,
                   displs, type_of(recvtype), comm_of(comm), false),
        request, error, FRAME);
}
int thalweg_take_mpi_allgatherv_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                     const int* recvcounts, const int* displs, int recvtype, int comm, int,
                                     int* request, int* error) {
    if (!fortran_asks()) return 0;
    void* const send = buffer_of(sendbuf);
    return offer_fortran(
        allgatherv(thalweg_allgatherv_init, send, sendcount, type_of(sendtype), buffer_of(recvbuf),
                   recvcounts, displs, type_of(recvtype), comm_of(comm), false),
        request, error, FRAME);
}
int thalweg_take_mpi_iallreduce(void* sendbuf, void* recvbuf, int count, int datatype, int op, int comm,
                                int* request, int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(allreduce(thalweg_iallreduce, buffer_of(sendbuf), buffer_of(recvbuf), count,
                                   type_of(datatype), op_of(op), comm_of(comm)),
                         request, error, FRAME);
}
int thalweg_take_mpi_allreduce_init(void* sendbuf, void* recvbuf, int count, int datatype, int op, int comm,
                                    int, int* request, int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(allreduce(thalweg_allreduce_init, buffer_of(sendbuf), buffer_of(recvbuf), count,
                                   type_of(datatype), op_of(op), comm_of(comm)),
                         request, error, FRAME);
}
int thalweg_take_mpi_ibarrier(int comm, int* request, int* error) {
    return fortran_asks() ? offer_fortran(barrier(thalweg_ibarrier, comm_of(comm)), request, error, FRAME)
                          : 0;
}
int thalweg_take_mpi_barrier_init(int comm, int, int* request, int* error) {
    return fortran_asks() ? offer_fortran(barrier(thalweg_barrier_init, comm_of(comm)), request, error, FRAME)
                          : 0;
}

}  // extern "C"
