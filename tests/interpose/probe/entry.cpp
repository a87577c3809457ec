// entry.h for the tests of the wrappers: counts what arrives, takes what PROBE_TAKE says, and tells at the
// end what it saw. With it the interposition is tested on its own, without plans and schedules.
//
//   PROBE_TAKE=none (default)   every call is declined
//   PROBE_TAKE=all              broadcasts run as PMPI_Bcast from here: a tool below us does not see them
//   PROBE_TAKE=direct           declined, and the wrappers need not ask until a communicator is freed
//   PROBE_TAKE=limited          the same, but of broadcasts below 1000 bytes only
//   PROBE_ASSUME=1              all ranks have us where the launcher has no store
//   PROBE_SECONDS=<s>           how long ranks wait for one that has left its word
//   PROBE_FILE=<prefix>         the counts are appended to <prefix>.<rank> at finalize, one line
#include "api/entry.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "plan/bypass.h"
#include "plan/presence.h"
#include "transport/mpi/host.h"

using namespace thalweg;

namespace {

std::atomic<int> initialized, finalizing, opened, closing, seen, taken, freeing;
std::atomic<int> exchanged, met, blocking, nonblocking, persistent, completed, started, released, created,
    completions, of_sessions;
bool take_all = false, direct = false, limited = false;
Presence presence = Presence::unknown;
double presence_us = 0;

void tell(const char* event) {
    const char* prefix = std::getenv("PROBE_FILE");
    if (prefix == nullptr) return;
    int rank = 0;
    if (initialized.load() > 0) host()->Comm_rank(host()->comm_world, &rank);
    char name[512];
    std::snprintf(name, sizeof name, "%s.%d", prefix, rank);
    if (std::FILE* file = std::fopen(name, "a")) {
        std::fprintf(file,
                     "%s initialized=%d finalizing=%d opened=%d closing=%d seen=%d taken=%d freed=%d "
                     "exchanged=%d met=%d blocking=%d nonblocking=%d persistent=%d completed=%d started=%d "
                     "released=%d created=%d of_sessions=%d "
                     "completions=%d presence=%s us=%.0f\n",
                     event, initialized.load(), finalizing.load(), opened.load(), closing.load(), seen.load(),
                     taken.load(), freeing.load(), exchanged.load(), met.load(), blocking.load(),
                     nonblocking.load(), persistent.load(), completed.load(), started.load(), released.load(),
                     created.load(), of_sessions.load(), completions.load(),
                     presence == Presence::all    ? "all"
                     : presence == Presence::some ? "some"
                                                  : "unknown",
                     presence_us);
        std::fclose(file);
    }
}

// Of what is there to be handed on.
void for_all(void (*change)(Bypass::Side)) {
    for (const Bypass::Side side :
         {Bypass::collectives, Bypass::exchanges, Bypass::requests, Bypass::meetings, Bypass::completions})
        change(side);
}

void read_environment() {
    const char* take = std::getenv("PROBE_TAKE");
    take_all = take != nullptr && std::strcmp(take, "all") == 0;
    limited = take != nullptr && std::strcmp(take, "limited") == 0;
    direct = limited || (take != nullptr && std::strcmp(take, "direct") == 0);
}

}  // namespace

extern "C" {

void thalweg_entry_initialized(void (*)(void), int (*)(void)) {
    ++initialized;
    read_environment();
    if (const char* width = std::getenv("PROBE_WIDTH")) set_circle_width(std::atoi(width));
    if (const char* limit = std::getenv("PROBE_SECONDS"))
        set_agreement_ns(static_cast<std::uint64_t>(1e9 * std::atof(limit)));
    timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    presence = find_presence(std::getenv("PROBE_ASSUME") != nullptr ? WithoutStore::assume_all
                                                                    : WithoutStore::pass_through);
    clock_gettime(CLOCK_MONOTONIC, &after);
    presence_us = (after.tv_sec - before.tv_sec) * 1e6 + (after.tv_nsec - before.tv_nsec) * 1e-3;
    if (presence != Presence::all) {
        take_all = false;
        if (presence_speaks()) std::fprintf(stderr, "probe: passes through: %s\n", presence_reason());
    }
    if (direct && limited)
        Bypass::set_limits({1000, Bypass::all, Bypass::all, Bypass::all, Bypass::all}, "limited",
                           sizes_in_handles.mask, sizes_in_handles.predefined, nullptr);
    if (direct) for_all(Bypass::let_go);
    tell("initialized");
}

void thalweg_entry_finalizing(void (*leave)(void)) {
    leave();
    ++finalizing;
    tell("finalizing");
}

void thalweg_entry_session_opened(void) {
    ++opened;
    read_environment();
    tell("opened");
}

void thalweg_entry_session_closing(void) {
    ++closing;
    tell("closing");
}

void thalweg_entry_mpi_begins(void) {}
int thalweg_entry_session_comm_begins(void) { return 0; }
void thalweg_entry_session_comm_made(int, MPI_Comm) { ++of_sessions; }
void thalweg_entry_comm_descends(MPI_Comm, MPI_Comm) {}

int thalweg_entry_comm_freeing(MPI_Comm, int*, void*) {
    ++freeing;
    if (direct) for_all(Bypass::hold);
    direct = false;
    tell("freeing");
    return 0;
}
void thalweg_entry_comm_freed(void*) {}

int thalweg_entry_bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                        int* error, void**) {
    ++seen;
    if (!take_all || count > 1 << 30) return direct ? 2 : 0;
    ++taken;
    *error = host()->Bcast(buffer, static_cast<int>(count), datatype, root, comm);
    return 1;
}
// No trial leaves any here.
void thalweg_entry_remember_broadcast(ThalwegBroadcastShortcut*, void*, void*, MPI_Count, intptr_t) {}

void thalweg_entry_completions_intercepted(int all, unsigned planners) {
    (void)planners;
    completions = all;
}
int thalweg_entry_meeting(MPI_Comm, int*) {
    ++met;
    return 0;
}

int thalweg_entry_meeting_of(const ThalwegCall* call, int* error) {
    return thalweg_entry_meeting(call->comm, error);
}
int thalweg_entry_meeting_of_bcast(void*, MPI_Count, MPI_Datatype, int, MPI_Comm comm, int* error) {
    return thalweg_entry_meeting(comm, error);
}
int thalweg_entry_comm_creating(MPI_Comm, int*) { return 0; }
void thalweg_entry_comm_created(MPI_Comm, int made, MPI_Comm) { created += made; }

// Taken, it is the native operation.
int thalweg_entry_collective(const ThalwegCall* call, int* error, void**) {
    ++blocking;
    if (!take_all || call->operation != thalweg_allreduce || call->receive_count > 1 << 30)
        return direct ? 2 : 0;
    ++taken;
    *error = host()->Allreduce(call->send, call->receive, static_cast<int>(call->receive_count),
                               call->receive_type, call->reduction, call->comm);
    return 1;
}

// Taken, it is the native operation: what completes it is native too.
int thalweg_entry_operation(const ThalwegCall* call, MPI_Request* request, int* error) {
    ++(call->operation % 2 == 0 ? nonblocking : persistent);
    if (!take_all || call->operation != thalweg_ibcast || call->receive_count > 1 << 30)
        return direct && call->operation % 2 == 0 ? 2 : 0;
    *error = host()->Ibcast(call->receive, static_cast<int>(call->receive_count), call->receive_type,
                            call->root, call->comm, request);
    return 1;
}

int thalweg_entry_may_take(int, MPI_Comm, int*) { return 1; }
int thalweg_entry_neighbours(MPI_Comm, int*, int*) { return 0; }
int thalweg_entry_exchange(const ThalwegCall*, int*, void**) {
    ++seen;
    ++exchanged;
    return direct ? 2 : 0;
}
void* thalweg_entry_remember_exchange(ThalwegExchangeShortcut* shortcut, void* native, void*) {
    Bypass::remember(*shortcut, native);
    return nullptr;
}
void* thalweg_entry_trial_of(void*, MPI_Comm) { return nullptr; }
void thalweg_entry_native_begins(void*) {}
int thalweg_entry_native_ended(void*) { return 1; }

// As if there were requests of ours, so that every completion call asks.
unsigned thalweg_entry_requests(void) { return 1; }
int thalweg_entry_wait(int count, ThalwegRequests, int, ThalwegFailed**) {
    completed += count;
    return 1;
}
int thalweg_entry_help(int count, ThalwegRequests, ThalwegFailed**) {
    completed += count;
    return 0;
}
int thalweg_entry_tell(int error, const ThalwegEnded*, ThalwegFailed*) { return error; }
int thalweg_entry_all_well(void) { return 1; }
uint64_t thalweg_entry_pause(uint64_t began_ns) { return began_ns; }
void thalweg_entry_started(int count, ThalwegRequests) { started += count; }
int thalweg_entry_request_free(MPI_Request, int*) {
    ++released;
    return 0;
}
int thalweg_entry_cancel(MPI_Request, int*) {
    ++released;
    return 0;
}

}  // extern "C"
