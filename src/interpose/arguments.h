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

// The same number of elements from or for every rank.
inline ThalwegCall blocks(ThalwegOperation operation, const void* send, MPI_Count send_count,
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
    ThalwegCall call = blocks(operation, send, send_count, send_type, receive, 0, receive_type, comm);
    // For the library to judge, as a negative count is.
    if (counts == nullptr || displacements == nullptr) {
        call.receive_count = -1;
        return call;
    }
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

// One side of a call with arrays: a type for all messages, or one for each.
struct Arguments {
    const void* counts;
    const void* displacements;
    MPI_Datatype type;
    const MPI_Datatype* types;
};

// How many elements go with each message where a side has no counts: for the library to judge, as a negative
// count is, unless there is no message. With counts nobody asks.
inline MPI_Count elements_without(const Arguments& side) { return side.counts == nullptr ? -1 : 0; }

// Displacements are addresses where each message has a type of its own, whatever the counts are.
inline ThalwegArrays arrays(const Arguments& side, bool large, bool addresses) {
    ThalwegArrays made{};
    if (large)
        made.large_counts = static_cast<const MPI_Count*>(side.counts);
    else
        made.counts = static_cast<const int*>(side.counts);
    if (large || addresses)
        made.large_displacements = static_cast<const MPI_Aint*>(side.displacements);
    else
        made.displacements = static_cast<const int*>(side.displacements);
    made.types = side.types;
    return made;
}

// Arrays on both sides.
inline ThalwegCall letters(ThalwegOperation operation, const void* send, const Arguments& sent, void* receive,
                           const Arguments& received, MPI_Comm comm, bool large) {
    ThalwegCall call = blocks(operation, send, elements_without(sent), sent.type, receive,
                              elements_without(received), received.type, comm);
    const bool addresses = operation == thalweg_neighbor_alltoallw ||
                           operation == thalweg_ineighbor_alltoallw ||
                           operation == thalweg_neighbor_alltoallw_init;
    call.sent = arrays(sent, large, addresses);
    call.received = arrays(received, large, addresses);
    return call;
}

inline const MPI_Datatype* types_at(const void* types) { return static_cast<const MPI_Datatype*>(types); }

}  // namespace thalweg::arguments
