// What wrappers of calls that complete requests call behind the native one: what that says of failures of
// ours.
#include <mpi.h>

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

void* wanted_of_c(void* statuses) {
    return statuses == static_cast<void*>(MPI_STATUSES_IGNORE) ? nullptr : statuses;
}
void* wanted_of_fortran(int* statuses) {
    return thalweg::is_fortran_statuses_ignore(statuses) ? nullptr : statuses;
}

}  // namespace

extern "C" {

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
int thalweg_after_any_fortran(int error, const int* flag, const int* index, const int* requests,
                              ThalwegFailed* failed) {
    if (all_well(failed)) return error;
    return tell_of_one(error, flag == nullptr || *flag != 0, of_fortran(requests), index, 1, failed);
}

int thalweg_after_some(int error, const int* outcount, const void* indices, const void* requests,
                       void* statuses, ThalwegFailed* failed) {
    if (all_well(failed)) return error;
    return tell_of_several(error, *outcount, of_c(requests), static_cast<const int*>(indices), 0,
                           wanted_of_c(statuses), failed);
}
int thalweg_after_some_fortran(int error, const int* outcount, const int* indices, const int* requests,
                               int* statuses, ThalwegFailed* failed) {
    if (all_well(failed)) return error;
    return tell_of_several(error, *outcount, of_fortran(requests), indices, 1, wanted_of_fortran(statuses),
                           failed);
}

}  // extern "C"
