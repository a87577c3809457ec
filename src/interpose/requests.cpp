// What the wrappers of calls with requests call: handles of every family and of Fortran to those of entry.h.
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <utility>

#include "api/entry.h"
#include "base/loaded_objects.h"
#include "interpose/inside.h"
#include "interpose/offer.h"
#include "interpose/runtime.h"
#include "plan/bypass.h"
#include "transport/mpi/host.h"

using namespace thalweg;

namespace {

// While no request of ours exists nobody's call concerns us: this is all that it costs.
bool concerns_us() {
    if (__builtin_expect(thalweg_entry_requests() != 0, 0) && taking.load(std::memory_order_acquire))
        return true;
    if (__builtin_expect(probing, 0)) probe_arrived = true;
    return false;
}

const MPI_Request* as_requests(const void* requests) { return static_cast<const MPI_Request*>(requests); }

ThalwegRequests of_c(const void* requests) { return {as_requests(requests), nullptr}; }
ThalwegRequests of_fortran(const int* requests) { return {nullptr, requests}; }

// What the calling thread has told the others of last: whether a communicator was made, and which. A Fortran
// binding that calls the C function has done so before its own wrapper does, and ranks that agree do it
// equally often, whatever language each calls in.
struct Told {
    bool anything;
    MPI_Comm parent;
    bool made;
    MPI_Comm comm;
};
thread_local constinit Told told [[gnu::tls_model("initial-exec")]] = {};

// The calling thread's latest start was one in C: that of a Fortran binding, where it has announced itself.
thread_local constinit bool started_in_c [[gnu::tls_model("initial-exec")]] = false;

bool passes_by(void* frame) { return !taking.load(std::memory_order_acquire) || inside(frame); }

// Of MPI_Comm_create. MPICH and its kin see that a rank of the group is not in the communicator when all of
// that have taken part, which then wait for our word; that it is no group they see before.
bool group_is_looked_into([[maybe_unused]] ThalwegHandle group) {
#if defined(OPEN_MPI)
    return false;
#else
    return (MPI_Group)group != MPI_GROUP_NULL;
#endif
}

// Where this rank's arguments are wrong the library says so before it takes part: the others wait for its
// right ones, and not for our word. A failure of the library's own is of another class.
bool is_refused_on_sight(int error, bool looks_into_group) {
    int error_class = MPI_SUCCESS;
    if (host()->Error_class(error, &error_class) != MPI_SUCCESS) return false;
    switch (error_class) {
        case MPI_ERR_GROUP:
            return !looks_into_group;
        case MPI_ERR_COMM:
        case MPI_ERR_ARG:
        case MPI_ERR_DIMS:
        case MPI_ERR_TOPOLOGY:
        case MPI_ERR_RANK:
        case MPI_ERR_COUNT:
        case MPI_ERR_INFO:
            return true;
        default:
            return false;
    }
}

// Behind the native call that has returned `error`.
void tell_of_creation(MPI_Comm parent, int error, bool looks_into_group, const void* comm) {
    const bool made = error == MPI_SUCCESS;
    if (!made && is_refused_on_sight(error, looks_into_group)) return;
    const MPI_Comm it = made ? *static_cast<const MPI_Comm*>(comm) : host()->comm_null;
    if (made) thalweg_entry_comm_descends(parent, it);
    thalweg_entry_comm_created(parent, made, it);
    told = {true, parent, made, it};
}

// The same of a Fortran binding, unless the C function that it calls has done so.
void tell_of_fortran_creation(int parent, int error, bool looks_into_group, int comm) {
    const Host& mpi = *host();
    const bool made = error == MPI_SUCCESS;
    const MPI_Comm from = mpi.comm_of_fortran(parent),
                   handle = made ? mpi.comm_of_fortran(comm) : mpi.comm_null;
    const Told last = std::exchange(told, Told{});
    if (last.anything && last.parent == from && last.made == made && last.comm == handle) return;
    if (!passes_by(__builtin_frame_address(0))) tell_of_creation(from, error, looks_into_group, &handle);
}

}  // namespace

extern "C" {

void thalweg_remember_completion(enum ThalwegCompletion call, void* native) {
    if (std::atomic_ref(thalweg_completion_calls.native[call]).load(std::memory_order_relaxed) == nullptr &&
        Bypass::open(Bypass::completions))
        Bypass::remember(call, native);
}

void thalweg_before_wait(const void* request, ThalwegFailed** failed) {
    if (concerns_us()) thalweg_entry_wait(1, of_c(request), 0, failed);
}
void thalweg_before_wait_fortran(const int* request, ThalwegFailed** failed) {
    if (concerns_us()) thalweg_entry_wait(1, of_fortran(request), 0, failed);
}
void thalweg_before_end(int count, const void* requests, ThalwegFailed** failed) {
    if (concerns_us()) thalweg_entry_help(count, of_c(requests), failed);
}
void thalweg_before_end_fortran(int count, const int* requests, ThalwegFailed** failed) {
    if (concerns_us()) thalweg_entry_help(count, of_fortran(requests), failed);
}
int thalweg_before_waitall(int count, const void* requests, int again, ThalwegFailed** failed) {
    return !concerns_us() || thalweg_entry_wait(count, of_c(requests), again, failed);
}
int thalweg_before_waitall_fortran(int count, const int* requests, int again, ThalwegFailed** failed) {
    return !concerns_us() || thalweg_entry_wait(count, of_fortran(requests), again, failed);
}
void thalweg_before_test(int count, const void* requests) {
    if (concerns_us()) thalweg_entry_help(count, of_c(requests), nullptr);
}
void thalweg_before_test_fortran(int count, const int* requests) {
    if (concerns_us()) thalweg_entry_help(count, of_fortran(requests), nullptr);
}
void thalweg_before_test_of_one(ThalwegHandle request) {
    if (!concerns_us()) return;
    const auto handle = (MPI_Request)request;
    thalweg_entry_help(1, of_c(&handle), nullptr);
}
int thalweg_would_wait(int count, const void* requests, ThalwegFailed** failed) {
    return concerns_us() && thalweg_entry_help(count, of_c(requests), failed);
}
int thalweg_would_wait_fortran(int count, const int* requests, ThalwegFailed** failed) {
    return concerns_us() && thalweg_entry_help(count, of_fortran(requests), failed);
}
uint64_t thalweg_pause(uint64_t began_ns) { return thalweg_entry_pause(began_ns); }

void thalweg_before_start_fortran(void) { started_in_c = false; }
void thalweg_after_start(int count, const void* requests) {
    started_in_c = true;
    if (concerns_us()) thalweg_entry_started(count, of_c(requests));
}
void thalweg_after_start_fortran(int count, const int* requests) {
    if (!started_in_c && concerns_us()) thalweg_entry_started(count, of_fortran(requests));
}

int thalweg_take_MPI_Request_free(const void* request, int* error) {
    if (!concerns_us() || request == nullptr || inside(__builtin_frame_address(0))) return 0;
    return thalweg_entry_request_free(*as_requests(request), error);
}
int thalweg_take_mpi_request_free(const int* request, int* error) {
    if (!concerns_us()) return 0;
    return thalweg_entry_request_free(host()->request_of_fortran(*request), error);
}
int thalweg_take_MPI_Cancel(const void* request, int* error) {
    if (!concerns_us() || request == nullptr || inside(__builtin_frame_address(0))) return 0;
    return thalweg_entry_cancel(*as_requests(request), error);
}
int thalweg_take_mpi_cancel(const int* request, int* error) {
    if (!concerns_us()) return 0;
    return thalweg_entry_cancel(host()->request_of_fortran(*request), error);
}

int thalweg_meeting(ThalwegHandle comm, int* error) {
    void* const frame = __builtin_frame_address(0);
    if (__builtin_expect(probing, 0)) probe_arrived = true;
    if (passes_by(frame)) return 0;
    if (thalweg_entry_meeting((MPI_Comm)comm, error)) return 1;
    return Bypass::open(Bypass::meetings) ? 2 : 0;
}
void thalweg_remember_meeting(ThalwegMeetingShortcut* shortcut, void* native) {
    Bypass::remember(*shortcut, native);
}
int thalweg_meeting_fortran(int comm, int* error) {
    return taking.load(std::memory_order_acquire) &&
           thalweg_meeting((ThalwegHandle)host()->comm_of_fortran(comm), error) == 1;
}

int thalweg_meeting_of_reduce(const void* sendbuf, const void* recvbuf, ThalwegCount count,
                              ThalwegHandle datatype, int root, ThalwegHandle comm, int* error) {
    void* const frame = __builtin_frame_address(0);
    if (__builtin_expect(probing, 0)) probe_arrived = true;
    if (passes_by(frame)) return 0;
    {
        const Inside mark(frame);
        // What each rank gives is looked at as a broadcast's buffer is; only the root need have another.
        const void* const given = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
        if (thalweg_entry_meeting_of_bcast(const_cast<void*>(given), count, TYPE(datatype), root, COMM(comm),
                                           error))
            return 1;
    }
    return Bypass::open(Bypass::meetings) ? 2 : 0;
}
int thalweg_meeting_of_reduce_fortran(void* sendbuf, void* recvbuf, int count, int datatype, int root,
                                      int comm, int* error) {
    return taking.load(std::memory_order_acquire) &&
           thalweg_meeting_of_reduce(buffer_of(sendbuf), buffer_of(recvbuf), count,
                                     (ThalwegHandle)type_of(datatype), root, (ThalwegHandle)comm_of(comm),
                                     error) == 1;
}

int thalweg_before_creation(ThalwegHandle parent, int* error) {
    void* const frame = __builtin_frame_address(0);
    if (__builtin_expect(probing, 0)) probe_arrived = true;
    if (passes_by(frame)) return 0;
    return thalweg_entry_comm_creating((MPI_Comm)parent, error);
}
int thalweg_before_creation_fortran(int parent, int* error) {
    told = {};
    return taking.load(std::memory_order_acquire) &&
           thalweg_before_creation((ThalwegHandle)host()->comm_of_fortran(parent), error);
}
void thalweg_after_creation(ThalwegHandle parent, int error, const void* comm) {
    if (!passes_by(__builtin_frame_address(0))) tell_of_creation((MPI_Comm)parent, error, false, comm);
}
void thalweg_after_creation_of_group(ThalwegHandle parent, int error, ThalwegHandle group, const void* comm) {
    if (!passes_by(__builtin_frame_address(0)))
        tell_of_creation((MPI_Comm)parent, error, group_is_looked_into(group), comm);
}
void thalweg_after_creation_in_group(ThalwegHandle parent, const void* comm) {
    void* const frame = __builtin_frame_address(0);
    if (__builtin_expect(probing, 0)) probe_arrived = true;
    if (passes_by(frame)) return;
    const MPI_Comm made = *static_cast<const MPI_Comm*>(comm);
    thalweg_entry_comm_descends((MPI_Comm)parent, made);
    thalweg_entry_comm_created(host()->comm_null, 1, made);
}
void thalweg_after_descent(ThalwegHandle parent, const void* comm) {
    if (!passes_by(__builtin_frame_address(0)))
        thalweg_entry_comm_descends((MPI_Comm)parent, *static_cast<const MPI_Comm*>(comm));
}
void thalweg_after_descent_fortran(int parent, int comm) {
    if (!taking.load(std::memory_order_acquire)) return;
    const MPI_Comm handle = host()->comm_of_fortran(comm);
    thalweg_after_descent((ThalwegHandle)host()->comm_of_fortran(parent), &handle);
}
void thalweg_after_creation_fortran(int parent, int error, int comm) {
    if (taking.load(std::memory_order_acquire)) tell_of_fortran_creation(parent, error, false, comm);
}
void thalweg_after_creation_of_group_fortran(int parent, int error, int group, int comm) {
    if (taking.load(std::memory_order_acquire))
        tell_of_fortran_creation(parent, error, group_is_looked_into(group), comm);
}
void thalweg_after_creation_in_group_fortran(int parent, int comm) {
    if (!taking.load(std::memory_order_acquire)) return;
    const MPI_Comm handle = host()->comm_of_fortran(comm);
    thalweg_after_creation_in_group((ThalwegHandle)host()->comm_of_fortran(parent), &handle);
}

}  // extern "C"

namespace thalweg {

// mpi_f08 of the standard ABI, whose handles are as wide as its library chose, is no name of ours: its calls
// make requests by way of MPI's C functions and complete them by way of PMPI's. Wherever it was loaded to;
// who is not told of any file, for want of memory, cannot rule it out.
bool completes_past_us() {
    [[maybe_unused]] constexpr const char* f08_wait = "mpi_wait_f08_";
#if defined(MPI_ABI_VERSION)
    if (dlsym(RTLD_DEFAULT, f08_wait) != nullptr) return true;
    const LoadedFiles files;
    return files.begin() == files.end() || std::any_of(files.begin(), files.end(), [](const char* file) {
               return symbol_of(file, f08_wait) != nullptr;
           });
#else
    return false;
#endif
}

bool completions_reach_us() {
    if (completes_past_us()) return false;
    const Host& mpi = *host();
    MPI_Request none = mpi.request_null;
    int flag = 0, index = 0, outcount = 0;
    MPI_Request* const list = &none;
    MPI_Status* const ignore = MPI_STATUS_IGNORE;
    MPI_Status* const ignore_all = MPI_STATUSES_IGNORE;
    bool all =
        arrives<int(MPI_Request*, MPI_Status*)>("MPI_Wait", list, ignore) &&
        arrives<int(MPI_Request*, int*, MPI_Status*)>("MPI_Test", list, &flag, ignore) &&
        arrives<int(int, MPI_Request*, MPI_Status*)>("MPI_Waitall", 0, list, ignore_all) &&
        arrives<int(int, MPI_Request*, int*, MPI_Status*)>("MPI_Testall", 0, list, &flag, ignore_all) &&
        arrives<int(int, MPI_Request*, int*, MPI_Status*)>("MPI_Waitany", 0, list, &index, ignore) &&
        arrives<int(int, MPI_Request*, int*, int*, MPI_Status*)>("MPI_Testany", 0, list, &index, &flag,
                                                                 ignore) &&
        arrives<int(int, MPI_Request*, int*, int*, MPI_Status*)>("MPI_Waitsome", 0, list, &outcount, &index,
                                                                 ignore_all) &&
        arrives<int(int, MPI_Request*, int*, int*, MPI_Status*)>("MPI_Testsome", 0, list, &outcount, &index,
                                                                 ignore_all) &&
        arrives<int(MPI_Request, int*, MPI_Status*)>("MPI_Request_get_status", none, &flag, ignore) &&
        arrives<int(int, MPI_Request*)>("MPI_Startall", 0, list);
    // The rest needs a request that is there: from oneself, under a tag that nobody else is likely to use.
    // Not from MPI_PROC_NULL and not on MPI_COMM_SELF: after either of them Intel MPI 2021.18 gets its own
    // MPI_Alltoallv_init wrong or hangs in it.
    constexpr int unlikely_tag = 32767;  // every MPI has it
    MPI_Request own;
    int rank = 0;
    if (!all || mpi.Comm_rank(mpi.comm_world, &rank) != MPI_SUCCESS ||
        mpi.Recv_init(nullptr, 0, mpi.byte, rank, unlikely_tag, mpi.comm_world, &own) != MPI_SUCCESS)
        return false;
    all = arrives<int(MPI_Request*)>("MPI_Start", &own);
    int done = 0;
    mpi.Test(&own, &done, ignore);
    // Started, through what stands in front of us, whether we heard of it or not. Left alone it would take a
    // message of the program.
    if (done == 0) {
        mpi.Cancel(&own);
        for (int tries = 0; done == 0 && tries < 1000; ++tries)
            if (mpi.Test(&own, &done, ignore) != MPI_SUCCESS) break;
    }
    if (all) all = arrives<int(MPI_Request*)>("MPI_Request_free", &own);
    if (own != mpi.request_null) mpi.Request_free(&own);
    return all;
}

}  // namespace thalweg
