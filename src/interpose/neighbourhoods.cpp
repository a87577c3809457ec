// What the wrappers of the neighbourhood collectives call: the arguments of every family and of Fortran to
// the one form of entry.h.
#include <mpi.h>

#include <vector>

#include "interpose/arguments.h"

using namespace thalweg;
using namespace thalweg::arguments;

namespace {

ThalwegCall gatherv(ThalwegOperation operation, const void* send, MPI_Count send_count,
                    MPI_Datatype send_type, void* receive, const Arguments& received, MPI_Comm comm,
                    bool large) {
    ThalwegCall call = blocks(operation, send, send_count, send_type, receive, elements_without(received),
                              received.type, comm);
    call.received = arrays(received, large, false);
    return call;
}

std::vector<MPI_Datatype> converted(const int* types, int count) {
    std::vector<MPI_Datatype> handles;
    handles.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) handles.push_back(type_of(types[i]));
    return handles;
}

// A blocking call where `trial` is not null.
int offer_alltoallw(ThalwegOperation operation, void* send, Arguments sent, const int* send_types,
                    void* receive, Arguments received, const int* receive_types, int comm, int* request,
                    int* error, void** trial, void* frame) {
    const MPI_Comm handle = comm_of(comm);
    if (const int may = may_take(trial != nullptr, handle, error, frame); may <= 0) return may < 0;
    return with_memory(handle, error, [&] {
        int sources = 0, destinations = 0;
        if (!thalweg_entry_neighbours(handle, &sources, &destinations)) return 0;
        const std::vector<MPI_Datatype> out = converted(send_types, destinations);
        const std::vector<MPI_Datatype> in = converted(receive_types, sources);
        sent.types = out.data();
        received.types = in.data();
        const ThalwegCall call =
            letters(operation, buffer_of(send), sent, buffer_of(receive), received, handle, false);
        return trial != nullptr ? exchange_fortran(call, error, trial, frame)
                                : offer_fortran(call, request, error, frame);
    });
}

}  // namespace

extern "C" {

int thalweg_take_MPI_Neighbor_allgather(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                        void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                        ThalwegHandle comm, int* error, void** trial) {
    return exchange_now(blocks(thalweg_neighbor_allgather, sendbuf, sendcount, TYPE(sendtype), recvbuf,
                               recvcount, TYPE(recvtype), COMM(comm)),
                        error, trial, FRAME);
}
int thalweg_take_MPI_Ineighbor_allgather(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                         void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                         ThalwegHandle comm, void* request, int* error) {
    return offer(blocks(thalweg_ineighbor_allgather, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcount,
                        TYPE(recvtype), COMM(comm)),
                 request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_allgather_init(const void* sendbuf, ThalwegCount sendcount,
                                             ThalwegHandle sendtype, void* recvbuf, ThalwegCount recvcount,
                                             ThalwegHandle recvtype, ThalwegHandle comm, ThalwegHandle,
                                             void* request, int* error) {
    return offer(blocks(thalweg_neighbor_allgather_init, sendbuf, sendcount, TYPE(sendtype), recvbuf,
                        recvcount, TYPE(recvtype), COMM(comm)),
                 request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_allgatherv(const void* sendbuf, int sendcount, ThalwegHandle sendtype,
                                         void* recvbuf, const void* recvcounts, const void* displs,
                                         ThalwegHandle recvtype, ThalwegHandle comm, int* error,
                                         void** trial) {
    return exchange_now(gatherv(thalweg_neighbor_allgatherv, sendbuf, sendcount, TYPE(sendtype), recvbuf,
                                {recvcounts, displs, TYPE(recvtype), nullptr}, COMM(comm), false),
                        error, trial, FRAME);
}
int thalweg_take_MPI_Ineighbor_allgatherv(const void* sendbuf, int sendcount, ThalwegHandle sendtype,
                                          void* recvbuf, const void* recvcounts, const void* displs,
                                          ThalwegHandle recvtype, ThalwegHandle comm, void* request,
                                          int* error) {
    return offer(gatherv(thalweg_ineighbor_allgatherv, sendbuf, sendcount, TYPE(sendtype), recvbuf,
                         {recvcounts, displs, TYPE(recvtype), nullptr}, COMM(comm), false),
                 request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_allgatherv_init(const void* sendbuf, int sendcount, ThalwegHandle sendtype,
                                              void* recvbuf, const void* recvcounts, const void* displs,
                                              ThalwegHandle recvtype, ThalwegHandle comm, ThalwegHandle,
                                              void* request, int* error) {
    return offer(gatherv(thalweg_neighbor_allgatherv_init, sendbuf, sendcount, TYPE(sendtype), recvbuf,
                         {recvcounts, displs, TYPE(recvtype), nullptr}, COMM(comm), false),
                 request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_allgatherv_c(const void* sendbuf, ThalwegCount sendcount,
                                           ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                           const void* displs, ThalwegHandle recvtype, ThalwegHandle comm,
                                           int* error, void** trial) {
    return exchange_now(gatherv(thalweg_neighbor_allgatherv, sendbuf, sendcount, TYPE(sendtype), recvbuf,
                                {recvcounts, displs, TYPE(recvtype), nullptr}, COMM(comm), true),
                        error, trial, FRAME);
}
int thalweg_take_MPI_Ineighbor_allgatherv_c(const void* sendbuf, ThalwegCount sendcount,
                                            ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                            const void* displs, ThalwegHandle recvtype, ThalwegHandle comm,
                                            void* request, int* error) {
    return offer(gatherv(thalweg_ineighbor_allgatherv, sendbuf, sendcount, TYPE(sendtype), recvbuf,
                         {recvcounts, displs, TYPE(recvtype), nullptr}, COMM(comm), true),
                 request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_allgatherv_init_c(const void* sendbuf, ThalwegCount sendcount,
                                                ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                                const void* displs, ThalwegHandle recvtype,
                                                ThalwegHandle comm, ThalwegHandle, void* request,
                                                int* error) {
    return offer(gatherv(thalweg_neighbor_allgatherv_init, sendbuf, sendcount, TYPE(sendtype), recvbuf,
                         {recvcounts, displs, TYPE(recvtype), nullptr}, COMM(comm), true),
                 request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_alltoall(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                       void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                       ThalwegHandle comm, int* error, void** trial) {
    return exchange_now(blocks(thalweg_neighbor_alltoall, sendbuf, sendcount, TYPE(sendtype), recvbuf,
                               recvcount, TYPE(recvtype), COMM(comm)),
                        error, trial, FRAME);
}
int thalweg_take_MPI_Ineighbor_alltoall(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                        void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                        ThalwegHandle comm, void* request, int* error) {
    return offer(blocks(thalweg_ineighbor_alltoall, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcount,
                        TYPE(recvtype), COMM(comm)),
                 request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_alltoall_init(const void* sendbuf, ThalwegCount sendcount,
                                            ThalwegHandle sendtype, void* recvbuf, ThalwegCount recvcount,
                                            ThalwegHandle recvtype, ThalwegHandle comm, ThalwegHandle,
                                            void* request, int* error) {
    return offer(blocks(thalweg_neighbor_alltoall_init, sendbuf, sendcount, TYPE(sendtype), recvbuf,
                        recvcount, TYPE(recvtype), COMM(comm)),
                 request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_alltoallv(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                        ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                        const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                        int* error, void** trial) {
    return exchange_now(
        letters(thalweg_neighbor_alltoallv, sendbuf, {sendcounts, sdispls, TYPE(sendtype), nullptr}, recvbuf,
                {recvcounts, rdispls, TYPE(recvtype), nullptr}, COMM(comm), false),
        error, trial, FRAME);
}
int thalweg_take_MPI_Ineighbor_alltoallv(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                         ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                         const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                         void* request, int* error) {
    return offer(letters(thalweg_ineighbor_alltoallv, sendbuf, {sendcounts, sdispls, TYPE(sendtype), nullptr},
                         recvbuf, {recvcounts, rdispls, TYPE(recvtype), nullptr}, COMM(comm), false),
                 request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_alltoallv_init(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                             ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                             const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                             ThalwegHandle, void* request, int* error) {
    return offer(
        letters(thalweg_neighbor_alltoallv_init, sendbuf, {sendcounts, sdispls, TYPE(sendtype), nullptr},
                recvbuf, {recvcounts, rdispls, TYPE(recvtype), nullptr}, COMM(comm), false),
        request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_alltoallv_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                          ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                          const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                          int* error, void** trial) {
    return exchange_now(
        letters(thalweg_neighbor_alltoallv, sendbuf, {sendcounts, sdispls, TYPE(sendtype), nullptr}, recvbuf,
                {recvcounts, rdispls, TYPE(recvtype), nullptr}, COMM(comm), true),
        error, trial, FRAME);
}
int thalweg_take_MPI_Ineighbor_alltoallv_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                           ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                           const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                           void* request, int* error) {
    return offer(letters(thalweg_ineighbor_alltoallv, sendbuf, {sendcounts, sdispls, TYPE(sendtype), nullptr},
                         recvbuf, {recvcounts, rdispls, TYPE(recvtype), nullptr}, COMM(comm), true),
                 request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_alltoallv_init_c(const void* sendbuf, const void* sendcounts,
                                               const void* sdispls, ThalwegHandle sendtype, void* recvbuf,
                                               const void* recvcounts, const void* rdispls,
                                               ThalwegHandle recvtype, ThalwegHandle comm, ThalwegHandle,
                                               void* request, int* error) {
    return offer(
        letters(thalweg_neighbor_alltoallv_init, sendbuf, {sendcounts, sdispls, TYPE(sendtype), nullptr},
                recvbuf, {recvcounts, rdispls, TYPE(recvtype), nullptr}, COMM(comm), true),
        request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_alltoallw(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                        const void* sendtypes, void* recvbuf, const void* recvcounts,
                                        const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                        int* error, void** trial) {
    return exchange_now(
        letters(thalweg_neighbor_alltoallw, sendbuf, {sendcounts, sdispls, {}, types_at(sendtypes)}, recvbuf,
                {recvcounts, rdispls, {}, types_at(recvtypes)}, COMM(comm), false),
        error, trial, FRAME);
}
int thalweg_take_MPI_Ineighbor_alltoallw(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                         const void* sendtypes, void* recvbuf, const void* recvcounts,
                                         const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                         void* request, int* error) {
    return offer(letters(thalweg_ineighbor_alltoallw, sendbuf, {sendcounts, sdispls, {}, types_at(sendtypes)},
                         recvbuf, {recvcounts, rdispls, {}, types_at(recvtypes)}, COMM(comm), false),
                 request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_alltoallw_init(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                             const void* sendtypes, void* recvbuf, const void* recvcounts,
                                             const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                             ThalwegHandle, void* request, int* error) {
    return offer(
        letters(thalweg_neighbor_alltoallw_init, sendbuf, {sendcounts, sdispls, {}, types_at(sendtypes)},
                recvbuf, {recvcounts, rdispls, {}, types_at(recvtypes)}, COMM(comm), false),
        request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_alltoallw_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                          const void* sendtypes, void* recvbuf, const void* recvcounts,
                                          const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                          int* error, void** trial) {
    return exchange_now(
        letters(thalweg_neighbor_alltoallw, sendbuf, {sendcounts, sdispls, {}, types_at(sendtypes)}, recvbuf,
                {recvcounts, rdispls, {}, types_at(recvtypes)}, COMM(comm), true),
        error, trial, FRAME);
}
int thalweg_take_MPI_Ineighbor_alltoallw_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                           const void* sendtypes, void* recvbuf, const void* recvcounts,
                                           const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                           void* request, int* error) {
    return offer(letters(thalweg_ineighbor_alltoallw, sendbuf, {sendcounts, sdispls, {}, types_at(sendtypes)},
                         recvbuf, {recvcounts, rdispls, {}, types_at(recvtypes)}, COMM(comm), true),
                 request, error, FRAME);
}
int thalweg_take_MPI_Neighbor_alltoallw_init_c(const void* sendbuf, const void* sendcounts,
                                               const void* sdispls, const void* sendtypes, void* recvbuf,
                                               const void* recvcounts, const void* rdispls,
                                               const void* recvtypes, ThalwegHandle comm, ThalwegHandle,
                                               void* request, int* error) {
    return offer(
        letters(thalweg_neighbor_alltoallw_init, sendbuf, {sendcounts, sdispls, {}, types_at(sendtypes)},
                recvbuf, {recvcounts, rdispls, {}, types_at(recvtypes)}, COMM(comm), true),
        request, error, FRAME);
}

int thalweg_take_mpi_neighbor_allgather(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                        int recvcount, int recvtype, int comm, int* error, void** trial) {
    if (exchange_passes_by()) return 0;
    return exchange_fortran(
        blocks(thalweg_neighbor_allgather, buffer_of(sendbuf), sendcount, type_of(sendtype),
               buffer_of(recvbuf), recvcount, type_of(recvtype), comm_of(comm)),
        error, trial, FRAME);
}
int thalweg_take_mpi_ineighbor_allgather(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                         int recvcount, int recvtype, int comm, int* request, int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(blocks(thalweg_ineighbor_allgather, buffer_of(sendbuf), sendcount, type_of(sendtype),
                                buffer_of(recvbuf), recvcount, type_of(recvtype), comm_of(comm)),
                         request, error, FRAME);
}
int thalweg_take_mpi_neighbor_allgather_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                             int recvcount, int recvtype, int comm, int, int* request,
                                             int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(
        blocks(thalweg_neighbor_allgather_init, buffer_of(sendbuf), sendcount, type_of(sendtype),
               buffer_of(recvbuf), recvcount, type_of(recvtype), comm_of(comm)),
        request, error, FRAME);
}
int thalweg_take_mpi_neighbor_allgatherv(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                         const int* recvcounts, const int* displs, int recvtype, int comm,
                                         int* error, void** trial) {
    if (exchange_passes_by()) return 0;
    return exchange_fortran(
        gatherv(thalweg_neighbor_allgatherv, buffer_of(sendbuf), sendcount, type_of(sendtype),
                buffer_of(recvbuf), {recvcounts, displs, type_of(recvtype), nullptr}, comm_of(comm), false),
        error, trial, FRAME);
}
int thalweg_take_mpi_ineighbor_allgatherv(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                          const int* recvcounts, const int* displs, int recvtype, int comm,
                                          int* request, int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(
        gatherv(thalweg_ineighbor_allgatherv, buffer_of(sendbuf), sendcount, type_of(sendtype),
                buffer_of(recvbuf), {recvcounts, displs, type_of(recvtype), nullptr}, comm_of(comm), false),
        request, error, FRAME);
}
int thalweg_take_mpi_neighbor_allgatherv_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                              const int* recvcounts, const int* displs, int recvtype,
                                              int comm, int, int* request, int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(
        gatherv(thalweg_neighbor_allgatherv_init, buffer_of(sendbuf), sendcount, type_of(sendtype),
                buffer_of(recvbuf), {recvcounts, displs, type_of(recvtype), nullptr}, comm_of(comm), false),
        request, error, FRAME);
}
int thalweg_take_mpi_neighbor_alltoall(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                       int recvcount, int recvtype, int comm, int* error, void** trial) {
    if (exchange_passes_by()) return 0;
    return exchange_fortran(
        blocks(thalweg_neighbor_alltoall, buffer_of(sendbuf), sendcount, type_of(sendtype),
               buffer_of(recvbuf), recvcount, type_of(recvtype), comm_of(comm)),
        error, trial, FRAME);
}
int thalweg_take_mpi_ineighbor_alltoall(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                        int recvcount, int recvtype, int comm, int* request, int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(blocks(thalweg_ineighbor_alltoall, buffer_of(sendbuf), sendcount, type_of(sendtype),
                                buffer_of(recvbuf), recvcount, type_of(recvtype), comm_of(comm)),
                         request, error, FRAME);
}
int thalweg_take_mpi_neighbor_alltoall_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf,
                                            int recvcount, int recvtype, int comm, int, int* request,
                                            int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(
        blocks(thalweg_neighbor_alltoall_init, buffer_of(sendbuf), sendcount, type_of(sendtype),
               buffer_of(recvbuf), recvcount, type_of(recvtype), comm_of(comm)),
        request, error, FRAME);
}
int thalweg_take_mpi_neighbor_alltoallv(void* sendbuf, const int* sendcounts, const int* sdispls,
                                        int sendtype, void* recvbuf, const int* recvcounts,
                                        const int* rdispls, int recvtype, int comm, int* error,
                                        void** trial) {
    if (exchange_passes_by()) return 0;
    return exchange_fortran(letters(thalweg_neighbor_alltoallv, buffer_of(sendbuf),
                                    {sendcounts, sdispls, type_of(sendtype), nullptr}, buffer_of(recvbuf),
                                    {recvcounts, rdispls, type_of(recvtype), nullptr}, comm_of(comm), false),
                            error, trial, FRAME);
}
int thalweg_take_mpi_ineighbor_alltoallv(void* sendbuf, const int* sendcounts, const int* sdispls,
                                         int sendtype, void* recvbuf, const int* recvcounts,
                                         const int* rdispls, int recvtype, int comm, int* request,
                                         int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(letters(thalweg_ineighbor_alltoallv, buffer_of(sendbuf),
                                 {sendcounts, sdispls, type_of(sendtype), nullptr}, buffer_of(recvbuf),
                                 {recvcounts, rdispls, type_of(recvtype), nullptr}, comm_of(comm), false),
                         request, error, FRAME);
}
int thalweg_take_mpi_neighbor_alltoallv_init(void* sendbuf, const int* sendcounts, const int* sdispls,
                                             int sendtype, void* recvbuf, const int* recvcounts,
                                             const int* rdispls, int recvtype, int comm, int, int* request,
                                             int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(letters(thalweg_neighbor_alltoallv_init, buffer_of(sendbuf),
                                 {sendcounts, sdispls, type_of(sendtype), nullptr}, buffer_of(recvbuf),
                                 {recvcounts, rdispls, type_of(recvtype), nullptr}, comm_of(comm), false),
                         request, error, FRAME);
}
int thalweg_take_mpi_neighbor_alltoallw(void* sendbuf, const int* sendcounts, const int* sdispls,
                                        const int* sendtypes, void* recvbuf, const int* recvcounts,
                                        const int* rdispls, const int* recvtypes, int comm, int* error,
                                        void** trial) {
    if (exchange_passes_by()) return 0;
    return offer_alltoallw(thalweg_neighbor_alltoallw, sendbuf, {sendcounts, sdispls, {}, nullptr}, sendtypes,
                           recvbuf, {recvcounts, rdispls, {}, nullptr}, recvtypes, comm, nullptr, error,
                           trial, FRAME);
}
int thalweg_take_mpi_ineighbor_alltoallw(void* sendbuf, const int* sendcounts, const int* sdispls,
                                         const int* sendtypes, void* recvbuf, const int* recvcounts,
                                         const int* rdispls, const int* recvtypes, int comm, int* request,
                                         int* error) {
    if (!fortran_asks()) return 0;
    return offer_alltoallw(thalweg_ineighbor_alltoallw, sendbuf, {sendcounts, sdispls, {}, nullptr},
                           sendtypes, recvbuf, {recvcounts, rdispls, {}, nullptr}, recvtypes, comm, request,
                           error, nullptr, FRAME);
}
int thalweg_take_mpi_neighbor_alltoallw_init(void* sendbuf, const int* sendcounts, const int* sdispls,
                                             const int* sendtypes, void* recvbuf, const int* recvcounts,
                                             const int* rdispls, const int* recvtypes, int comm, int,
                                             int* request, int* error) {
    if (!fortran_asks()) return 0;
    return offer_alltoallw(thalweg_neighbor_alltoallw_init, sendbuf, {sendcounts, sdispls, {}, nullptr},
                           sendtypes, recvbuf, {recvcounts, rdispls, {}, nullptr}, recvtypes, comm, request,
                           error, nullptr, FRAME);
}

}  // extern "C"
