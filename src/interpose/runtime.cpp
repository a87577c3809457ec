#include "interpose/runtime.h"

#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "api/entry.h"
#include "base/loaded_objects.h"
#include "base/log.h"
#include "base/options.h"
#include "interpose/inherited.h"
#include "interpose/inside.h"
#include "interpose/unseen_calls.h"
#include "plan/bypass.h"
#include "plan/presence.h"
#include "plan/quiet_errors.h"
#include "transport/mpi/error_handler.h"
#include "transport/mpi/host.h"

namespace thalweg {

constinit std::atomic<bool> taking{false};
thread_local constinit bool probing [[gnu::tls_model("initial-exec")]] = false;
thread_local constinit bool probe_arrived [[gnu::tls_model("initial-exec")]] = false;
thread_local constinit PassedOn passed_on [[gnu::tls_model("initial-exec")]] = {};

void* foreign_definition(const char* name, const char*& object) {
    void* const first = dlsym(RTLD_DEFAULT, name);
    dlerror();
    Dl_info info, own;
    if (first == nullptr) return nullptr;
    if (dladdr(first, &info) == 0 || dladdr(reinterpret_cast<void*>(&foreign_definition), &own) == 0)
        return nullptr;
    object = info.dli_fname;
    return info.dli_fbase == own.dli_fbase ? nullptr : first;
}

}  // namespace thalweg

using namespace thalweg;

namespace {

std::atomic<bool> begun{false}, world_entered{false}, finalizing{false}, world_left{false}, child{false};
// Fortran's integers are not as wide as the wrappers read them.
std::atomic<bool> integers_differ{false};
std::atomic<int> sessions{0};
// What opens the world or a session counts it, and forgets what was of a library that has ended: both before
// another thread, which has opened one beside it, goes on.
constinit std::mutex opening;

// By whoever changed something, afterwards: the last of several threads says what holds.
void update_taking() {
    static constinit std::mutex updating;
    if (child.load()) return;  // it may hold the mutex for ever
    const std::lock_guard lock(updating);
    const bool world = world_entered.load() && !world_left.load();
    taking.store(!child.load() && !integers_differ.load() && (world || sessions.load() > 0),
                 std::memory_order_release);
}

// After fork() the child has our state but not our peers: everything it calls is MPI's business alone.
void forked() {
    child.store(true);
    taking.store(false);
}

void leave_world() {
    world_left.store(true);
    update_taking();
}

void watch_forks() {
    static std::atomic<bool> watched{false};
    if (!watched.exchange(true)) pthread_atfork(nullptr, nullptr, forked);
}

// A library that was built for wide integers of Fortran (-i8). One without Fortran knows no such type.
bool fortran_integers_differ() {
    const Host& mpi = *host();
    const QuietErrors quiet(mpi.comm_world, true);
    MPI_Count bytes = 0;
    if (mpi.Type_size_x(mpi.fortran_integer, &bytes) != MPI_SUCCESS || bytes <= 0 || bytes == sizeof(int))
        return false;
    int rank = 0;
    if (mpi.Comm_rank(mpi.comm_world, &rank) == MPI_SUCCESS && rank == 0)
        THALWEG_LOG_AT(warn,
                       "this MPI library has Fortran integers of %d bytes, and Thalweg reads such of %d; all "
                       "calls are left to MPI",
                       static_cast<int>(bytes), static_cast<int>(sizeof(int)));
    return true;
}

void* find_profiled(const char* name) {
    char profiled[64] = {name[0] == 'm' ? 'p' : 'P'};
    std::strncpy(profiled + 1, name, sizeof profiled - 2);
    return find_native(profiled);
}

// Asked for the first time in MPI_Init's wrapper, before the settings are read for good; complaints are
// theirs.
bool calls_past_tools() {
    enum Answer { unknown, no, yes };
    static std::atomic<Answer> answer{unknown};
    if (answer.load(std::memory_order_relaxed) == unknown) {
        std::vector<Complaint> told_later;
        const Settings settings = Settings::from_environment(environ, told_later);
        answer.store(settings.call_through == CallThrough::pmpi ? yes : no, std::memory_order_relaxed);
    }
    return answer.load(std::memory_order_relaxed) == yes;
}

}  // namespace

extern "C" {

int thalweg_enter(void* frame) {
    if (inside(frame)) return 0;
    outermost_frame = reinterpret_cast<std::uintptr_t>(frame);
    return 1;
}

void thalweg_leave(void) { outermost_frame = 0; }

void thalweg_pass_on(void* frame) {
    if (passed_on.operation != 0) passed_on.frame = reinterpret_cast<std::uintptr_t>(frame);
}
void thalweg_passed_on(void) { passed_on = {}; }

void thalweg_before_init(void) {
    begun.store(true);
    keep_mpi_to_this_program();  // MPI_Init may start programs itself
    if (find_host() == nullptr) return;
    if (sessions.load() == 0 && may_open_sessions_unseen()) {
        // The barrier that spreads our word may be over: some ranks would read it, and others not.
        stay_absent(
            "a rank may have opened a session that Thalweg did not see; preload its -sessions.so too");
    }
    announce_presence();
}

// Where calls from Fortran pass us by, the MPI_Init that this is in may be one: others would wait for a rank
// that left its word there.
void thalweg_before_commit(void) {
    static std::atomic<bool> is_silent{false};
    if (!begun.load() && !nobody_calls_past_us()) is_silent.store(true);
    if (!is_silent.load()) announce_while_committing();
}

void thalweg_after_init(void) {
    settle_presence();
    const Host* host = find_host();
    if (host == nullptr) return;
    {
        const std::lock_guard lock(opening);
        if (world_entered.exchange(true)) return;
        if (sessions.load() == 0) thalweg_entry_mpi_begins();
    }
    watch_forks();
    complete_host();
    integers_differ.store(fortran_integers_differ());
    set_interception_complete(!integers_differ.load() && collectives_reach_us() && neighbours_reach_us() &&
                              large_forms_reach_us() && fortran_collectives_reach_us() && nobody_recovers());
    set_large_forms_wrapped(wraps_large_forms());
    thalweg_entry_completions_intercepted(
        completions_reach_us() && questions_reach_us() && makers_reach_us() && fortran_requests_reach_us(),
        planners_wrapped());
    thalweg_entry_initialized(thalweg_before_finalize, creations_reach_us);
    update_taking();
}

void thalweg_before_finalize(void) {
    if (!world_entered.load() || child.load() || finalizing.exchange(true)) return;
    thalweg_entry_finalizing(leave_world);
}

void thalweg_after_session_init(void) {
    settle_presence();
    if (find_host() == nullptr) return;
    watch_forks();
    complete_host();
    {
        const std::lock_guard lock(opening);
        const bool is_first = sessions.fetch_add(1) == 0;
        if (is_first && (!world_entered.load() || world_left.load())) thalweg_entry_mpi_begins();
    }
    thalweg_entry_session_opened();
    update_taking();
}

void thalweg_before_session_finalize(void) {
    if (child.load() || sessions.load() == 0) return;
    thalweg_entry_session_closing();
    sessions.fetch_sub(1);
    update_taking();
}

int thalweg_before_session_comm(void) {
    return find_host() != nullptr && !child.load() && thalweg_entry_session_comm_begins();
}

void thalweg_after_session_comm(int begun_late, const void* comm) {
    if (find_host() != nullptr && !child.load())
        thalweg_entry_session_comm_made(begun_late, *static_cast<const MPI_Comm*>(comm));
}

void thalweg_after_session_comm_fortran(int begun_late, int comm) {
    if (find_host() == nullptr) return;
    const MPI_Comm handle = host()->comm_of_fortran(comm);
    thalweg_after_session_comm(begun_late, &handle);
}

int thalweg_before_MPI_Comm_free(const void* comm, int* error) {
    if (comm == nullptr || !taking.load(std::memory_order_acquire)) return 0;
    void* const frame = __builtin_frame_address(0);
    if (inside(frame)) return 0;
    const Inside mark(frame);
    return thalweg_entry_comm_freeing(*static_cast<const MPI_Comm*>(comm), error, frame);
}

void thalweg_after_MPI_Comm_free(void) { thalweg_entry_comm_freed(__builtin_frame_address(0)); }

int thalweg_before_mpi_comm_free(int comm, int* error) {
    if (!taking.load(std::memory_order_acquire)) return 0;
    const MPI_Comm handle = host()->comm_of_fortran(comm);
    return thalweg_before_MPI_Comm_free(&handle, error);
}

// Declined, this costs two loads, a call and two thread-local stores: no lock, no allocation, no system call.
int thalweg_take_MPI_Bcast(void* buffer, ThalwegCount count, ThalwegHandle datatype, int root,
                           ThalwegHandle comm, int* error, void** trial) {
    if (!taking.load(std::memory_order_acquire)) return answer_probe(error);
    void* const frame = __builtin_frame_address(0);
    if (was_asked(blocking_broadcast, (MPI_Comm)comm, frame) || inside(frame)) return 0;
    const Inside mark(frame);
    const auto type = (MPI_Datatype)datatype;
    const auto of = (MPI_Comm)comm;
    if (thalweg_entry_meeting_of_bcast(buffer, count, type, root, of, error)) return 1;
    return thalweg_entry_bcast(buffer, count, type, root, of, error, trial);
}

int thalweg_take_mpi_bcast(void* buffer, int count, int datatype, int root, int comm, int* error,
                           void** trial) {
    passed_on = {};
    if (!taking.load(std::memory_order_acquire) || Bypass::open_for(Collective::bcast, count, datatype))
        return 0;
    const Host* native = host();
    const MPI_Comm handle = native->comm_of_fortran(comm);
    const int answer = thalweg_take_MPI_Bcast(is_fortran_bottom(buffer) ? MPI_BOTTOM : buffer, count,
                                              (ThalwegHandle)native->datatype_of_fortran(datatype), root,
                                              (ThalwegHandle)handle, error, trial);
    if (answer == 1) return 1;
    if (answer == 2) *trial = nullptr;  // only wrappers in C have a place for what that stands for
    passed_on = {blocking_broadcast + 1, handle, 0};
    return 0;
}

void thalweg_remember_broadcast(ThalwegBroadcastShortcut* shortcut, void* native, void* unasked,
                                ThalwegCount count, ThalwegHandle datatype) {
    thalweg_entry_remember_broadcast(shortcut, native, unasked, count, datatype);
}

void thalweg_remember(ThalwegShortcut* shortcut, void* native, int kind) {
    static_assert(static_cast<int>(Collective::bcast) == thalweg_of_bcast &&
                  static_cast<int>(Collective::allgather) == thalweg_of_allgather &&
                  static_cast<int>(Collective::allreduce) == thalweg_of_allreduce);
    const bool tells = kind != thalweg_of_allgatherv;
    Bypass::remember(*shortcut, native, tells ? static_cast<Collective>(kind) : Collective::allgather, tells);
}

void* thalweg_find_past_tools(const char* name) { return calls_past_tools() ? find_profiled(name) : nullptr; }

void* thalweg_find_native(const char* name, void* self) {
    Dl_info own;
    if (dladdr(self, &own) == 0) own.dli_fbase = nullptr;
    // Those in front of ours have had the call already: a tool among them that passes on what it wraps would
    // pass it to us for ever.
    void* address = nullptr;
    for (const char* file : LoadedFiles(own.dli_fbase)) {
        address = symbol_of(file, name);
        if (address == self) address = nullptr;
        if (address != nullptr) break;
    }
    if (address == nullptr) address = find_profiled(name);
    dlerror();
    return address;
}

void* thalweg_find_extension(const char* name) {
    char longer[64];
    if (std::strncmp(name, "MPI_", 4) != 0 && std::strncmp(name, "mpi_", 4) != 0) return nullptr;
    const int length =
        std::snprintf(longer, sizeof longer, "%.3s%c%s", name, name[0] == 'M' ? 'X' : 'x', name + 3);
    return length < static_cast<int>(sizeof longer) ? find_native(longer) : nullptr;
}

void thalweg_report_missing(const char* name) {
    THALWEG_LOG_AT(error, "no library of this process defines %s, which the program called", name);
}

int thalweg_missing_error(void) {
    const Host* const mpi = host();
    if (mpi != nullptr && (world_entered.load() || sessions.load() > 0) && !world_left.load())
        call_error_handler(mpi->comm_world, MPI_ERR_UNSUPPORTED_OPERATION);
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

}  // extern "C"
