#include "api/as_call.h"

namespace thalweg {

namespace {

// Of every ThalwegOperation.
constexpr Collective collectives[] = {
    Collective::bcast, Collective::bcast, Collective::allgather, Collective::allgather, Collective::allgather,
    Collective::allgather, Collective::allreduce, Collective::allreduce, Collective::barrier,
    Collective::barrier, Collective::alltoallv, Collective::alltoallv, Collective::alltoallv,
    Collective::alltoallv, Collective::alltoallv, Collective::alltoallv,
    // neighbourhoods
    Collective::alltoallv, Collective::alltoallv, Collective::alltoallv, Collective::alltoallv,
    Collective::alltoallv, Collective::alltoallv, Collective::alltoallv, Collective::alltoallv,
    Collective::alltoallv, Collective::alltoallv, Collective::alltoallv, Collective::alltoallv,
    Collective::alltoallv, Collective::alltoallv, Collective::alltoallv,
    // blocking
    Collective::allgather, Collective::allgather, Collective::allreduce, Collective::alltoallv,
    Collective::alltoallv, Collective::alltoallv};
static_assert(static_cast<int>(CallKind::ibcast) == thalweg_ibcast + 1 &&
              static_cast<int>(CallKind::alltoallw_init) == thalweg_alltoallw_init + 1 &&
              static_cast<int>(CallKind::neighbor_alltoallw) == thalweg_neighbor_alltoallw + 1 &&
              static_cast<int>(CallKind::allreduce) == thalweg_allreduce + 1 &&
              static_cast<int>(CallKind::alltoallw) == thalweg_alltoallw + 1 &&
              sizeof collectives / sizeof *collectives == thalweg_alltoallw + 1);

LetterArrays as_arrays(const ThalwegArrays& arrays, MPI_Datatype type) {
    return {arrays.counts, arrays.displacements, arrays.large_counts, arrays.large_displacements,
            type,          arrays.types};
}

}  // namespace

Collective collective_of(const ThalwegCall& call) { return collectives[call.operation]; }

CollectiveCall as_call(const ThalwegCall& call) {
    CollectiveCall same;
    same.kind = static_cast<CallKind>(call.operation + 1);
    same.neighbours =
        call.operation >= thalweg_ineighbor_allgather && call.operation <= thalweg_neighbor_alltoallw;
    same.blocking = call.operation >= thalweg_neighbor_allgather;
    same.collective = collective_of(call);
    same.persistent = !same.blocking && call.operation % 2 == 1;
    same.gathers = call.operation == thalweg_neighbor_allgather ||
                   call.operation == thalweg_neighbor_allgatherv ||
                   (same.neighbours && call.operation <= thalweg_neighbor_allgatherv_init);
    same.send = call.send;
    same.send_count = call.send_count;
    same.send_type = call.send_type;
    same.receive = call.receive;
    same.receive_count = call.receive_count;
    same.receive_type = call.receive_type;
    same.counts = call.counts;
    same.displacements = call.displacements;
    same.large_counts = call.large_counts;
    same.large_displacements = call.large_displacements;
    same.sent = as_arrays(call.sent, call.send_type);
    same.received = as_arrays(call.received, call.receive_type);
    same.root = call.root;
    same.operation = call.reduction;
    same.comm = call.comm;
    return same;
}

}  // namespace thalweg
