// The arguments of a collective in the one form of entry.h.
#pragma once

#include <mpi.h>

#include "interpose/offer.h"

namespace thalweg::arguments {

inline ThalwegCall broadcast(ThalwegOperation operation, void* buffer, MPI_Count count, MPI_Datatype type,
                             int root, MPI_Comm comm) {
    ThalwegCall call{};
    call.operation = operation;
    call.receive = buffer;
    call.receive_count = count;
    call.receive_type = type;
    call.root = root;
    call.comm = comm;
    return call;
}

inline ThalwegCall allgather(ThalwegOperation operation, const void* send, MPI_Count send_count,
                             MPI_Datatype send_type, void* receive, MPI_Count receive_count,
                             MPI_Datatype receive_type, MPI_Comm comm) {
    ThalwegCall call = broadcast(operation, receive, receive_count, receive_type, 0, comm);
    call.send = send;
    call.send_count = send_count;
    call.send_type = send_type;
    return call;
}

inline ThalwegCall allgatherv(ThalwegOperation operation, const void* send, MPI_Count send_count,
                              MPI_Datatype send_type, void* receive, const void* counts,
                              const void* displacements, MPI_Datatype receive_type, MPI_Comm comm,
                              bool large) {
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

inline ThalwegCall allreduce(ThalwegOperation operation, const void* send, void* receive, MPI_Count count,
                             MPI_Datatype type, MPI_Op reduction, MPI_Comm comm) {
    ThalwegCall call = broadcast(operation, receive, count, type, 0, comm);
    call.send = send;
    call.reduction = reduction;
    return call;
}

inline ThalwegCall barrier(ThalwegOperation operation, MPI_Comm comm) {
    ThalwegCall call{};
    call.operation = operation;
    call.comm = comm;
    return call;
}

}  // namespace thalweg::arguments
