// What wrappers of calls that complete requests call behind the native one: what that says of failures of
// ours.
#include <mpi.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstring>
#include <new>

#include "api/entry.h"
#include "interpose/runtime.h"
#include "transport/mpi/host.h"

namespace {

// Most calls: nothing of ours has failed.
bool all_well(const ThalwegFailed* failed) {
    return __builtin_expect(failed == nullptr && thalweg_entry_all_well() != 0, 1);
}

ThalwegRequests of_c(const void* requests) { return {static_cast<const MPI_Request*>(requests), nullptr}; }
ThalwegRequests of_fortran(const int* requests) { return {nullptr, requests}; }

// What a call without a status for each of several has completed: `index` is null where that is its only one.
int tell_of_one(int error, bool ended, ThalwegRequests requests, const int* index, int first_index,
                ThalwegFailed* failed) {
    ThalwegEnded all{};
    all.requests = requests;
    // Of no request the index is MPI_UNDEFINED, which is negative.
    if (error == MPI_SUCCESS && ended) all.count = index == nullptr || *index >= first_index;
    all.indices = index;
    all.first_index = first_index;
    return thalweg_entry_tell(error, &all, failed);
}

int tell_of_several(int error, int count, ThalwegRequests requests, const int* indices, int first_index,
                    void* statuses, ThalwegFailed* failed) {
    ThalwegEnded all{};
    all.requests = requests;
    if (error == MPI_SUCCESS || error == MPI_ERR_IN_STATUS) all.count = count > 0 ? count : 0;
    all.indices = indices;
    all.first_index = first_index;
    all.statuses = statuses;
    all.several = 1;
    return thalweg_entry_tell(error, &all, failed);
}

#if !defined(OPEN_MPI) && !defined(MPI_ABI_VERSION)
int say_nothing(void*, MPI_Status* status) {
    const thalweg::Host& mpi = *thalweg::host();
    mpi.Status_set_elements(status, mpi.byte, 0);
    mpi.Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}
int free_nothing(void*) { return MPI_SUCCESS; }
int cancel_nothing(void*, int) { return MPI_SUCCESS; }

// Whether the forms of mpi_f08 count requests from 0, as those of MPICH 4.0 do: seen by one that is complete,
// the second of two, under a name of the library's that is not ours as well.
bool f08_counts_from_zero() {
    using TestAny = void(const int*, int*, int*, int*, MPI_Status*, int*);
    const thalweg::Host& mpi = *thalweg::host();
    auto* const test_any = reinterpret_cast<TestAny*>(thalweg::find_native("pmpir_testany_f08_"));
    MPI_Request complete{};
    if (test_any == nullptr ||
        mpi.Grequest_start(say_nothing, free_nothing, cancel_nothing, nullptr, &complete) != MPI_SUCCESS)
        return false;
    mpi.Grequest_complete(complete);
    const int count = 2;
    int requests[count] = {mpi.request_to_fortran(mpi.request_null), mpi.request_to_fortran(complete)};
    int index = 0, flag = 0, error = MPI_SUCCESS;
    MPI_Status status;
    test_any(&count, requests, &index, &flag, &status, &error);
    return flag != 0 && index == 1;
}
#else
bool f08_counts_from_zero() { return false; }
#endif

// What the first request is called in the indices of a wrapper in Fortran.
int first_index_of(const char* form) {
    static constinit std::atomic<int> first_of_f08{-1};
    if (std::strstr(form, "_f08") == nullptr) return 1;
    int first = first_of_f08.load(std::memory_order_relaxed);
    if (first < 0) {
        first = f08_counts_from_zero() ? 0 : 1;
        first_of_f08.store(first, std::memory_order_relaxed);
    }
    return first;
}

// Requests of which MPI_Testall needs no statuses: in the MPICH family one, which is what it looks at last.
#if defined(OPEN_MPI)
constexpr int most_without = INT_MAX;
#else
constexpr int most_without = 1;
#endif

void* wanted_of_c(void* statuses) {
    return statuses == static_cast<void*>(MPI_STATUSES_IGNORE) ? nullptr : statuses;
}
void* wanted_of_fortran(int* statuses) {
    return thalweg::is_fortran_statuses_ignore(statuses) ? nullptr : statuses;
}

}  // namespace

extern "C" {

// Those of Fortran are as large. By operator new, which has memory of last resort (plan/reserve.h): a request
// that ended without a word would leave its ticket behind, to whoever is given the handle next.
void* thalweg_lend_statuses(int count, void* statuses) {
    if (count <= most_without || wanted_of_c(statuses) != nullptr) return nullptr;
    return operator new(static_cast<std::size_t>(count) * sizeof(MPI_Status), std::nothrow);
}
int* thalweg_lend_statuses_fortran(int count, int* statuses) {
    if (count <= most_without || wanted_of_fortran(statuses) != nullptr) return nullptr;
    return static_cast<int*>(operator new(static_cast<std::size_t>(count) * sizeof(MPI_Status),
                                          std::nothrow));
}
void thalweg_take_statuses_back(void* own) { operator delete(own); }

int thalweg_after_one(int error, const int* flag, const void* request, ThalwegFailed* failed) {
    if (all_well(failed)) return error;
    return tell_of_one(error, flag == nullptr || *flag != 0, of_c(request), nullptr, 0, failed);
}
int thalweg_after_one_fortran(int error, const int* flag, const int* request, ThalwegFailed* failed) {
    if (all_well(failed)) return error;
    return tell_of_one(error, flag == nullptr || *flag != 0, of_fortran(request), nullptr, 1, failed);
}

int thalweg_after_all(int error, const int* flag, int count, const void* requests, void* statuses,
                      ThalwegFailed* failed) {
    if (all_well(failed)) return error;
    const bool ended = flag == nullptr || *flag != 0;
    return tell_of_several(error, ended ? count : 0, of_c(requests), nullptr, 0, wanted_of_c(statuses),
                           failed);
}
int thalweg_after_all_fortran(int error, const int* flag, int count, const int* requests, int* statuses,
                              ThalwegFailed* failed) {
    if (all_well(failed)) return error;
    const bool ended = flag == nullptr || *flag != 0;
    return tell_of_several(error, ended ? count : 0, of_fortran(requests), nullptr, 1,
                           wanted_of_fortran(statuses), failed);
}

int thalweg_after_any(int error, const int* flag, const int* index, const void* requests,
                      ThalwegFailed* failed) {
    if (all_well(failed)) return error;
    return tell_of_one(error, flag == nullptr || *flag != 0, of_c(requests), index, 0, failed);
}
int thalweg_after_any_fortran(int error, const char* form, const int* flag, const int* index,
                              const int* requests, ThalwegFailed* failed) {
    if (all_well(failed)) return error;
    const bool ended = flag == nullptr || *flag != 0;
    return tell_of_one(error, ended, of_fortran(requests), index, first_index_of(form), failed);
}

int thalweg_after_some(int error, const int* outcount, const void* indices, const void* requests,
                       void* statuses, ThalwegFailed* failed) {
    if (all_well(failed)) return error;
    // The library has refused a call that has no place for it.
    const int count = outcount != nullptr ? *outcount : 0;
    return tell_of_several(error, count, of_c(requests), static_cast<const int*>(indices), 0,
                           wanted_of_c(statuses), failed);
}
int thalweg_after_some_fortran(int error, const char* form, const int* outcount, const int* indices,
                               const int* requests, int* statuses, ThalwegFailed* failed) {
    if (all_well(failed)) return error;
    return tell_of_several(error, *outcount, of_fortran(requests), indices, first_index_of(form),
                           wanted_of_fortran(statuses), failed);
}

}  // extern "C"
