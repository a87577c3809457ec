// What the wrappers of nonblocking and persistent collectives call: the arguments of every family and of
// Fortran to the one form of entry.h.
#include <mpi.h>

#include "interpose/offer.h"

using namespace thalweg;

namespace {

ThalwegCall broadcast(ThalwegOperation operation, void* buffer, MPI_Count count, MPI_Datatype type, int root,
                      MPI_Comm comm) {
    ThalwegCall call{};
    call.operation = operation;
    call.receive = buffer;
    call.receive_count = count;
    call.receive_type = type;
    call.root = root;
    call.comm = comm;
    return call;
}

ThalwegCall allgather(ThalwegOperation operation, const void* send, MPI_Count send_count,
                      MPI_Datatype send_type, void* receive, MPI_Count receive_count,
                      MPI_Datatype receive_type, MPI_Comm comm) {
    ThalwegCall call = broadcast(operation, receive, receive_count, receive_type, 0, comm);
    call.send = send;
    call.send_count = send_count;
    call.send_type = send_type;
    return call;
}

ThalwegCall allgatherv(ThalwegOperation operation, const void* send, MPI_Count send_count,
                       MPI_Datatype send_type, void* receive, const void* counts, const void* displacements,
                       MPI_Datatype receive_type, MPI_Comm comm, bool large) {
    ThalwegCall call = allgather(operation, send, send_count, send_type, receive, 0, receive_type, comm);
    if (large) {
        call.large_counts = static_cast<const MPI_Count*>(counts);
        call.large_displacements = static_cast<const MPI_Aint*>(displacements);
    } else {
        call.counts = static_cast<const int*>(counts);
        call.displacements = static_cast<const int*>(displacements);
    }
    return call;
}

ThalwegCall allreduce(ThalwegOperation operation, const void* send, void* receive, MPI_Count count,
                      MPI_Datatype type, MPI_Op reduction, MPI_Comm comm) {
    ThalwegCall call = broadcast(operation, receive, count, type, 0, comm);
    call.send = send;
    call.reduction = reduction;
    return call;
}

ThalwegCall barrier(ThalwegOperation operation, MPI_Comm comm) {
    ThalwegCall call{};
    call.operation = operation;
    call.comm = comm;
    return call;
}

}  // namespace

extern "C" {

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
    return offer(allgather(thalweg_iallgather, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcount,
                           TYPE(recvtype), COMM(comm)),
                 request, error, FRAME);
}
int thalweg_take_MPI_Allgather_init(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                    void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                    ThalwegHandle comm, ThalwegHandle, void* request, int* error) {
    return offer(allgather(thalweg_allgather_init, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcount,
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
    if (!asked()) return 0;
    return offer_fortran(
        broadcast(thalweg_ibcast, buffer_of(buffer), count, type_of(datatype), root, comm_of(comm)), request,
        error, FRAME);
}
int thalweg_take_mpi_bcast_init(void* buffer, int count, int datatype, int root, int comm, int, int* request,
                                int* error) {
    if (!asked()) return 0;
    return offer_fortran(
        broadcast(thalweg_bcast_init, buffer_of(buffer), count, type_of(datatype), root, comm_of(comm)),
        request, error, FRAME);
}
int thalweg_take_mpi_iallgather(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                                int recvtype, int comm, int* request, int* error) {
    if (!asked()) return 0;
    void* const send = buffer_of(sendbuf);
    return offer_fortran(allgather(thalweg_iallgather, send, sendcount, type_of(sendtype), buffer_of(recvbuf),
                                   recvcount, type_of(recvtype), comm_of(comm)),
                         request, error, FRAME);
}
int thalweg_take_mpi_allgather_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                                    int recvtype, int comm, int, int* request, int* error) {
    if (!asked()) return 0;
    void* const send = buffer_of(sendbuf);
    return offer_fortran(allgather(thalweg_allgather_init, send, sendcount, type_of(sendtype),
                                   buffer_of(recvbuf), recvcount, type_of(recvtype), comm_of(comm)),
                         request, error, FRAME);
}
int thalweg_take_mpi_iallgatherv(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                 const int* recvcounts, const int* displs, int recvtype, int comm,
                                 int* request, int* error) {
    if (!asked()) return 0;
    void* const send = buffer_of(sendbuf);
    return offer_fortran(
        allgatherv(thalweg_iallgatherv, send, sendcount, type_of(sendtype), buffer_of(recvbuf), recvcounts,
                   displs, type_of(recvtype), comm_of(comm), false),
        request, error, FRAME);
}
int thalweg_take_mpi_allgatherv_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                     const int* recvcounts, const int* displs, int recvtype, int comm, int,
                                     int* request, int* error) {
    if (!asked()) return 0;
    void* const send = buffer_of(sendbuf);
    return offer_fortran(
        allgatherv(thalweg_allgatherv_init, send, sendcount, type_of(sendtype), buffer_of(recvbuf),
                   recvcounts, displs, type_of(recvtype), comm_of(comm), false),
        request, error, FRAME);
}
int thalweg_take_mpi_iallreduce(void* sendbuf, void* recvbuf, int count, int datatype, int op, int comm,
                                int* request, int* error) {
    if (!asked()) return 0;
    return offer_fortran(allreduce(thalweg_iallreduce, buffer_of(sendbuf), buffer_of(recvbuf), count,
                                   type_of(datatype), op_of(op), comm_of(comm)),
                         request, error, FRAME);
}
int thalweg_take_mpi_allreduce_init(void* sendbuf, void* recvbuf, int count, int datatype, int op, int comm,
                                    int, int* request, int* error) {
    if (!asked()) return 0;
    return offer_fortran(allreduce(thalweg_allreduce_init, buffer_of(sendbuf), buffer_of(recvbuf), count,
                                   type_of(datatype), op_of(op), comm_of(comm)),
                         request, error, FRAME);
}
int thalweg_take_mpi_ibarrier(int comm, int* request, int* error) {
    return asked() ? offer_fortran(barrier(thalweg_ibarrier, comm_of(comm)), request, error, FRAME) : 0;
}
int thalweg_take_mpi_barrier_init(int comm, int, int* request, int* error) {
    return asked() ? offer_fortran(barrier(thalweg_barrier_init, comm_of(comm)), request, error, FRAME) : 0;
}

}  // extern "C"
