// The entries of calls that complete, start, cancel and free requests.
#include <mpi.h>

#include "api/entry.h"
#include "plan/requests.h"

using namespace thalweg;

namespace {

RequestList list_of(ThalwegRequests requests) { return {requests.handles, requests.integers}; }
Ticket* failed_of(ThalwegFailed* failed) { return reinterpret_cast<Ticket*>(failed); }

}  // namespace

extern "C" {

unsigned thalweg_entry_requests(void) { return requests_alive() != 0; }

int thalweg_entry_wait(int count, ThalwegRequests requests, int again, ThalwegFailed** failed) {
    Ticket* known = failed_of(*failed);
    const bool over = wait_for(list_of(requests), count, again != 0, &known);
    *failed = reinterpret_cast<ThalwegFailed*>(known);
    return over;
}
int thalweg_entry_help(int count, ThalwegRequests requests, ThalwegFailed** failed) {
    if (failed == nullptr) return help(list_of(requests), count);
    Ticket* known = failed_of(*failed);
    const bool vain = help(list_of(requests), count, &known);
    *failed = reinterpret_cast<ThalwegFailed*>(known);
    return vain;
}
int thalweg_entry_tell(int error, const ThalwegEnded* ended, ThalwegFailed* failed) {
    const Ended all{list_of(ended->requests), ended->count,    ended->indices,
                    ended->first_index,       ended->statuses, ended->several != 0};
    return tell_failures(error, all, failed_of(failed));
}
int thalweg_entry_all_well(void) { return no_failures(); }

std::uint64_t thalweg_entry_pause(std::uint64_t began_ns) { return pause_between(began_ns); }
void thalweg_entry_started(int count, ThalwegRequests requests) { start(list_of(requests), count); }
int thalweg_entry_request_free(MPI_Request request, int* error) { return refuse_free(request, *error); }
int thalweg_entry_cancel(MPI_Request request, int* error) { return refuse_cancel(request, *error); }

}  // extern "C"
