// What the wrappers of blocking collectives other than broadcasts call.
#include <mpi.h>

#include "interpose/arguments.h"
#include "interpose/inside.h"
#include "interpose/offer.h"
#include "plan/bypass.h"
#include "transport/mpi/host.h"

using namespace thalweg;
using namespace thalweg::arguments;

namespace {

// `frame` is the wrapper's. Declined, it costs what a broadcast does, and writing the arguments down.
int take(const ThalwegCall& call, int* error, void** trial, void* frame) {
    if (!asked()) return answer_probe(error);
    if (was_asked(call.operation, call.comm, frame) || inside(frame)) return 0;
    const Inside mark(frame);
    if (thalweg_entry_meeting_of(&call, error)) return 1;
    return thalweg_entry_collective(&call, error, trial);
}

// Before Fortran's handles are translated, which may be those of C.
bool passes_by(Collective collective, int count, int datatype) {
    return !fortran_asks() || Bypass::open_for(collective, count, datatype);
}

int take_fortran(const ThalwegCall& call, int* error, void** trial, void* frame) {
    const bool done = take(call, error, trial, frame) == 1;
    if (!done) passed_on = {call.operation + 1, call.comm, 0};
    return done;
}

}  // namespace

extern "C" {

int thalweg_take_MPI_Allgather(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                               void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                               ThalwegHandle comm, int* error, void** trial) {
    return take(blocks(thalweg_allgather, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcount,
                       TYPE(recvtype), COMM(comm)),
                error, trial, FRAME);
}
int thalweg_take_MPI_Allgatherv(const void* sendbuf, int sendcount, ThalwegHandle sendtype, void* recvbuf,
                                const void* recvcounts, const void* displs, ThalwegHandle recvtype,
                                ThalwegHandle comm, int* error, void** trial) {
    return take(allgatherv(thalweg_allgatherv, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcounts,
                           displs, TYPE(recvtype), COMM(comm), false),
                error, trial, FRAME);
}
int thalweg_take_MPI_Allgatherv_c(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                  void* recvbuf, const void* recvcounts, const void* displs,
                                  ThalwegHandle recvtype, ThalwegHandle comm, int* error, void** trial) {
    return take(allgatherv(thalweg_allgatherv, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcounts,
                           displs, TYPE(recvtype), COMM(comm), true),
                error, trial, FRAME);
}
int thalweg_take_MPI_Allreduce(const void* sendbuf, void* recvbuf, ThalwegCount count, ThalwegHandle datatype,
                               ThalwegHandle op, ThalwegHandle comm, int* error, void** trial) {
    return take(allreduce(thalweg_allreduce, sendbuf, recvbuf, count, TYPE(datatype), OP(op), COMM(comm)),
                error, trial, FRAME);
}

int thalweg_take_mpi_allgather(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                               int recvtype, int comm, int* error, void** trial) {
    if (passes_by(Collective::allgather, recvcount, recvtype)) return 0;
    return take_fortran(blocks(thalweg_allgather, buffer_of(sendbuf), sendcount, type_of(sendtype),
                               buffer_of(recvbuf), recvcount, type_of(recvtype), comm_of(comm)),
                        error, trial, FRAME);
}
int thalweg_take_mpi_allgatherv(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                const int* recvcounts, const int* displs, int recvtype, int comm, int* error,
                                void** trial) {
    if (!fortran_asks() || Bypass::open_for_all(Collective::allgather)) return 0;
    return take_fortran(
        allgatherv(thalweg_allgatherv, buffer_of(sendbuf), sendcount, type_of(sendtype), buffer_of(recvbuf),
                   recvcounts, displs, type_of(recvtype), comm_of(comm), false),
        error, trial, FRAME);
}
int thalweg_take_mpi_allreduce(void* sendbuf, void* recvbuf, int count, int datatype, int op, int comm,
                               int* error, void** trial) {
    if (passes_by(Collective::allreduce, count, datatype)) return 0;
    return take_fortran(allreduce(thalweg_allreduce, buffer_of(sendbuf), buffer_of(recvbuf), count,
                                  type_of(datatype), op_of(op), comm_of(comm)),
                        error, trial, FRAME);
}

}  // extern "C"

namespace thalweg {

bool collectives_reach_us() {
    const Host& mpi = *host();
    const MPI_Comm self = mpi.comm_self;
    char from = 0, to = 0;
    const int none[1] = {0};
    const MPI_Datatype bytes[1] = {mpi.byte};
    const void* const send = &from;
    void* const receive = &to;
    return arrives<int(void*, int, MPI_Datatype, int, MPI_Comm)>("MPI_Bcast", receive, 0, mpi.byte, 0,
                                                                 self) &&
           arrives<int(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm)>(
               "MPI_Allgather", send, 0, mpi.byte, receive, 0, mpi.byte, self) &&
           arrives<int(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype,
                       MPI_Comm)>("MPI_Allgatherv", send, 0, mpi.byte, receive, none, none, mpi.byte, self) &&
           arrives<int(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm)>(
               "MPI_Allreduce", send, receive, 0, mpi.byte, mpi.bor, self) &&
           arrives<int(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm)>(
               "MPI_Alltoall", send, 0, mpi.byte, receive, 0, mpi.byte, self) &&
           arrives<int(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                       MPI_Datatype, MPI_Comm)>("MPI_Alltoallv", send, none, none, mpi.byte, receive, none,
                                                none, mpi.byte, self) &&
           arrives<int(const void*, const int*, const int*, const MPI_Datatype*, void*, const int*,
                       const int*, const MPI_Datatype*, MPI_Comm)>("MPI_Alltoallw", send, none, none, bytes,
                                                                   receive, none, none, bytes, self) &&
           // Where a communicator may be set up: not taken, and so called.
           arrives<int(MPI_Comm)>("MPI_Barrier", self) &&
           arrives<int(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm)>(
               "MPI_Reduce", send, receive, 0, mpi.byte, mpi.bor, 0, self);
}

}  // namespace thalweg
