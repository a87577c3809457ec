// What the wrappers of the alltoalls call: the arguments of every family and of
// Fortran to the one form of entry.h.
#include <mpi.h>

#include <vector>

#include "interpose/arguments.h"
#include "interpose/inside.h"

using namespace thalweg;
using namespace thalweg::arguments;

namespace {

// Fortran's types of all ranks as handles. Intercommunicators, where there are others, nobody takes.
bool convert(const int* types, MPI_Comm comm, std::vector<MPI_Datatype>& handles) {
    int size = 0, inter = 1;
    const Host& mpi = *host();
    if (mpi.Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0 ||
        mpi.Comm_size(comm, &size) != MPI_SUCCESS)
        return false;
    handles.reserve(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) handles.push_back(type_of(types[rank]));
    return true;
}

// Calls `use` with Fortran's types of both sides as handles. 0: the native library has the call.
template <typename Use>
int with_types(void* sendbuf, const int* sendtypes, const int* recvtypes, int comm, bool blocking, int* error,
               void* frame, Use use) {
    const MPI_Comm handle = comm_of(comm);
    if (const int may = may_take(blocking, handle, error, frame); may <= 0) return may < 0;
    return with_memory(handle, error, [&] {
        std::vector<MPI_Datatype> sent, received;
        const void* const send = buffer_of(sendbuf);
        if (!convert(recvtypes, handle, received)) return 0;
        if (send != MPI_IN_PLACE && !convert(sendtypes, handle, sent)) return 0;
        return use(send, sent.data(), received.data());
    });
}

int offer_alltoallw(ThalwegOperation operation, void* sendbuf, const int* sendcounts, const int* sdispls,
                    const int* sendtypes, void* recvbuf, const int* recvcounts, const int* rdispls,
                    const int* recvtypes, int comm, int* request, int* error, void* frame) {
    const auto use = [&](const void* send, const MPI_Datatype* sent, const MPI_Datatype* received) {
        return offer_fortran(letters(operation, send, {sendcounts, sdispls, {}, sent}, buffer_of(recvbuf),
                                     {recvcounts, rdispls, {}, received}, comm_of(comm), false),
                             request, error, frame);
    };
    return with_types(sendbuf, sendtypes, recvtypes, comm, false, error, frame, use);
}

}  // namespace

extern "C" {

int thalweg_take_MPI_Ialltoall(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                               void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                               ThalwegHandle comm, void* request, int* error) {
    return offer(blocks(thalweg_ialltoall, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcount,
                        TYPE(recvtype), COMM(comm)),
                 request, error, FRAME);
}
int thalweg_take_MPI_Alltoall_init(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                                   void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                                   ThalwegHandle comm, ThalwegHandle, void* request, int* error) {
    return offer(blocks(thalweg_alltoall_init, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcount,
                        TYPE(recvtype), COMM(comm)),
                 request, error, FRAME);
}
int thalweg_take_MPI_Ialltoallv(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                void* request, int* error) {
    return offer(letters(thalweg_ialltoallv, sendbuf, {sendcounts, sdispls, TYPE(sendtype), nullptr}, recvbuf,
                         {recvcounts, rdispls, TYPE(recvtype), nullptr}, COMM(comm), false),
                 request, error, FRAME);
}
int thalweg_take_MPI_Ialltoallv_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                  ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                  const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                  void* request, int* error) {
    return offer(letters(thalweg_ialltoallv, sendbuf, {sendcounts, sdispls, TYPE(sendtype), nullptr}, recvbuf,
                         {recvcounts, rdispls, TYPE(recvtype), nullptr}, COMM(comm), true),
                 request, error, FRAME);
}
int thalweg_take_MPI_Alltoallv_init(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                    ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                    const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                    ThalwegHandle, void* request, int* error) {
    return offer(letters(thalweg_alltoallv_init, sendbuf, {sendcounts, sdispls, TYPE(sendtype), nullptr},
                         recvbuf, {recvcounts, rdispls, TYPE(recvtype), nullptr}, COMM(comm), false),
                 request, error, FRAME);
}
int thalweg_take_MPI_Alltoallv_init_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                      ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                      const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm,
                                      ThalwegHandle, void* request, int* error) {
    return offer(letters(thalweg_alltoallv_init, sendbuf, {sendcounts, sdispls, TYPE(sendtype), nullptr},
                         recvbuf, {recvcounts, rdispls, TYPE(recvtype), nullptr}, COMM(comm), true),
                 request, error, FRAME);
}
int thalweg_take_MPI_Ialltoallw(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                const void* sendtypes, void* recvbuf, const void* recvcounts,
                                const void* rdispls, const void* recvtypes, ThalwegHandle comm, void* request,
                                int* error) {
    return offer(letters(thalweg_ialltoallw, sendbuf, {sendcounts, sdispls, {}, types_at(sendtypes)}, recvbuf,
                         {recvcounts, rdispls, {}, types_at(recvtypes)}, COMM(comm), false),
                 request, error, FRAME);
}
int thalweg_take_MPI_Ialltoallw_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                  const void* sendtypes, void* recvbuf, const void* recvcounts,
                                  const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                  void* request, int* error) {
    return offer(letters(thalweg_ialltoallw, sendbuf, {sendcounts, sdispls, {}, types_at(sendtypes)}, recvbuf,
                         {recvcounts, rdispls, {}, types_at(recvtypes)}, COMM(comm), true),
                 request, error, FRAME);
}
int thalweg_take_MPI_Alltoallw_init(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                    const void* sendtypes, void* recvbuf, const void* recvcounts,
                                    const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                    ThalwegHandle, void* request, int* error) {
    return offer(letters(thalweg_alltoallw_init, sendbuf, {sendcounts, sdispls, {}, types_at(sendtypes)},
                         recvbuf, {recvcounts, rdispls, {}, types_at(recvtypes)}, COMM(comm), false),
                 request, error, FRAME);
}
int thalweg_take_MPI_Alltoallw_init_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                      const void* sendtypes, void* recvbuf, const void* recvcounts,
                                      const void* rdispls, const void* recvtypes, ThalwegHandle comm,
                                      ThalwegHandle, void* request, int* error) {
    return offer(letters(thalweg_alltoallw_init, sendbuf, {sendcounts, sdispls, {}, types_at(sendtypes)},
                         recvbuf, {recvcounts, rdispls, {}, types_at(recvtypes)}, COMM(comm), true),
                 request, error, FRAME);
}

int thalweg_take_mpi_ialltoall(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                               int recvtype, int comm, int* request, int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(blocks(thalweg_ialltoall, buffer_of(sendbuf), sendcount, type_of(sendtype),
                                buffer_of(recvbuf), recvcount, type_of(recvtype), comm_of(comm)),
                         request, error, FRAME);
}
int thalweg_take_mpi_alltoall_init(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                                   int recvtype, int comm, int, int* request, int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(blocks(thalweg_alltoall_init, buffer_of(sendbuf), sendcount, type_of(sendtype),
                                buffer_of(recvbuf), recvcount, type_of(recvtype), comm_of(comm)),
                         request, error, FRAME);
}
int thalweg_take_mpi_ialltoallv(void* sendbuf, const int* sendcounts, const int* sdispls, int sendtype,
                                void* recvbuf, const int* recvcounts, const int* rdispls, int recvtype,
                                int comm, int* request, int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(
        letters(thalweg_ialltoallv, buffer_of(sendbuf), {sendcounts, sdispls, type_of(sendtype), nullptr},
                buffer_of(recvbuf), {recvcounts, rdispls, type_of(recvtype), nullptr}, comm_of(comm), false),
        request, error, FRAME);
}
int thalweg_take_mpi_alltoallv_init(void* sendbuf, const int* sendcounts, const int* sdispls, int sendtype,
                                    void* recvbuf, const int* recvcounts, const int* rdispls, int recvtype,
                                    int comm, int, int* request, int* error) {
    if (!fortran_asks()) return 0;
    return offer_fortran(
        letters(thalweg_alltoallv_init, buffer_of(sendbuf), {sendcounts, sdispls, type_of(sendtype), nullptr},
                buffer_of(recvbuf), {recvcounts, rdispls, type_of(recvtype), nullptr}, comm_of(comm), false),
        request, error, FRAME);
}
int thalweg_take_mpi_ialltoallw(void* sendbuf, const int* sendcounts, const int* sdispls,
                                const int* sendtypes, void* recvbuf, const int* recvcounts,
                                const int* rdispls, const int* recvtypes, int comm, int* request,
                                int* error) {
    if (!fortran_asks()) return 0;
    return offer_alltoallw(thalweg_ialltoallw, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
                           rdispls, recvtypes, comm, request, error, FRAME);
}
int thalweg_take_mpi_alltoallw_init(void* sendbuf, const int* sendcounts, const int* sdispls,
                                    const int* sendtypes, void* recvbuf, const int* recvcounts,
                                    const int* rdispls, const int* recvtypes, int comm, int, int* request,
                                    int* error) {
    if (!fortran_asks()) return 0;
    return offer_alltoallw(thalweg_alltoallw_init, sendbuf, sendcounts, sdispls, sendtypes, recvbuf,
                           recvcounts, rdispls, recvtypes, comm, request, error, FRAME);
}

void* thalweg_remember_exchange(ThalwegExchangeShortcut* shortcut, void* native, void* unasked) {
    return thalweg_entry_remember_exchange(shortcut, native, unasked);
}
void* thalweg_trial_of(void* unasked, ThalwegHandle comm) {
    return thalweg_entry_trial_of(unasked, COMM(comm));
}
void thalweg_native_begins(void* trial) { thalweg_entry_native_begins(trial); }
int thalweg_native_ended(void* trial) { return thalweg_entry_native_ended(trial); }

// The blocking ones.
int thalweg_take_MPI_Alltoall(const void* sendbuf, ThalwegCount sendcount, ThalwegHandle sendtype,
                              void* recvbuf, ThalwegCount recvcount, ThalwegHandle recvtype,
                              ThalwegHandle comm, int* error, void** trial) {
    return exchange_now(blocks(thalweg_alltoall, sendbuf, sendcount, TYPE(sendtype), recvbuf, recvcount,
                               TYPE(recvtype), COMM(comm)),
                        error, trial, FRAME);
}
int thalweg_take_MPI_Alltoallv(const void* sendbuf, const void* sendcounts, const void* sdispls,
                               ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                               const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm, int* error,
                               void** trial) {
    return exchange_now(letters(thalweg_alltoallv, sendbuf, {sendcounts, sdispls, TYPE(sendtype), nullptr},
                                recvbuf, {recvcounts, rdispls, TYPE(recvtype), nullptr}, COMM(comm), false),
                        error, trial, FRAME);
}
int thalweg_take_MPI_Alltoallv_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                 ThalwegHandle sendtype, void* recvbuf, const void* recvcounts,
                                 const void* rdispls, ThalwegHandle recvtype, ThalwegHandle comm, int* error,
                                 void** trial) {
    return exchange_now(letters(thalweg_alltoallv, sendbuf, {sendcounts, sdispls, TYPE(sendtype), nullptr},
                                recvbuf, {recvcounts, rdispls, TYPE(recvtype), nullptr}, COMM(comm), true),
                        error, trial, FRAME);
}
int thalweg_take_MPI_Alltoallw(const void* sendbuf, const void* sendcounts, const void* sdispls,
                               const void* sendtypes, void* recvbuf, const void* recvcounts,
                               const void* rdispls, const void* recvtypes, ThalwegHandle comm, int* error,
                               void** trial) {
    return exchange_now(letters(thalweg_alltoallw, sendbuf, {sendcounts, sdispls, {}, types_at(sendtypes)},
                                recvbuf, {recvcounts, rdispls, {}, types_at(recvtypes)}, COMM(comm), false),
                        error, trial, FRAME);
}
int thalweg_take_MPI_Alltoallw_c(const void* sendbuf, const void* sendcounts, const void* sdispls,
                                 const void* sendtypes, void* recvbuf, const void* recvcounts,
                                 const void* rdispls, const void* recvtypes, ThalwegHandle comm, int* error,
                                 void** trial) {
    return exchange_now(letters(thalweg_alltoallw, sendbuf, {sendcounts, sdispls, {}, types_at(sendtypes)},
                                recvbuf, {recvcounts, rdispls, {}, types_at(recvtypes)}, COMM(comm), true),
                        error, trial, FRAME);
}

int thalweg_take_mpi_alltoall(void* sendbuf, int sendcount, int sendtype, void* recvbuf, int recvcount,
                              int recvtype, int comm, int* error, void** trial) {
    if (exchange_passes_by()) return 0;
    return exchange_fortran(blocks(thalweg_alltoall, buffer_of(sendbuf), sendcount, type_of(sendtype),
                                   buffer_of(recvbuf), recvcount, type_of(recvtype), comm_of(comm)),
                            error, trial, FRAME);
}
int thalweg_take_mpi_alltoallv(void* sendbuf, const int* sendcounts, const int* sdispls, int sendtype,
                               void* recvbuf, const int* recvcounts, const int* rdispls, int recvtype,
                               int comm, int* error, void** trial) {
    if (exchange_passes_by()) return 0;
    return exchange_fortran(
        letters(thalweg_alltoallv, buffer_of(sendbuf), {sendcounts, sdispls, type_of(sendtype), nullptr},
                buffer_of(recvbuf), {recvcounts, rdispls, type_of(recvtype), nullptr}, comm_of(comm), false),
        error, trial, FRAME);
}
int thalweg_take_mpi_alltoallw(void* sendbuf, const int* sendcounts, const int* sdispls, const int* sendtypes,
                               void* recvbuf, const int* recvcounts, const int* rdispls, const int* recvtypes,
                               int comm, int* error, void** trial) {
    if (exchange_passes_by()) return 0;
    return with_types(
        sendbuf, sendtypes, recvtypes, comm, true, error, FRAME,
        [&](const void* send, const MPI_Datatype* sent, const MPI_Datatype* received) {
            return exchange_fortran(
                letters(thalweg_alltoallw, send, {sendcounts, sdispls, {}, sent}, buffer_of(recvbuf),
                        {recvcounts, rdispls, {}, received}, comm_of(comm), false),
                error, trial, FRAME);
        });
}

}  // extern "C"
