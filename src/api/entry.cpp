#include "api/entry.h"

#include <atomic>
#include <new>
#include <optional>

#include "api/answer.h"
#include "api/as_call.h"
#include "base/log.h"
#include "plan/attendance.h"
#include "plan/blocking.h"
#include "plan/broadcast.h"
#include "plan/bypass.h"
#include "plan/communicator.h"
#include "plan/datatype.h"
#include "plan/declining.h"
#include "plan/freeing.h"
#include "plan/keyvals.h"
#include "plan/last_call.h"
#include "plan/native_plan.h"
#include "plan/neighbours.h"
#include "plan/nonblocking.h"
#include "plan/report.h"
#include "plan/requests.h"
#include "plan/session_communicators.h"
#include "plan/set_up.h"
#include "plan/statistics.h"
#include "plan/unasked.h"
#include "plan/window_plan.h"
#include "plan/world.h"
#include "transport/mpi/error_handler.h"
#include "transport/mpi/host.h"

using namespace thalweg;

namespace {

void count_small(std::uint64_t bytes) {
    SmallShard& shard = small_calls[own_shard()];
    const std::size_t row = static_cast<std::size_t>(size_class(bytes));
    shard.calls[row < shard.calls.size() ? row : shard.calls.size() - 1].fetch_add(1,
                                                                                   std::memory_order_relaxed);
    shard.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

// This rank alone has no request to give for an operation that all ranks run.
int without_request(std::unique_ptr<Ongoing> ongoing, MPI_Comm comm, int error) {
    if (ongoing->pending()) ongoing->wait();
    ongoing->finish();
    ongoing->release();
    ongoing.reset();  // the handler need not return
    call_error_handler(comm, error);
    return error;
}

// Pre: nothing of ours arrives here any more.
void end(World& world) {
    Attendance::end();
    const MPI_Comm all = host()->comm_world;
    if (Communicator* const communicator = Communicator::existing(all)) detach(all, *communicator);
    release_detached();
    close_windows();
    world.leave();
    write_report(world);
    // Collective, and all ranks have one or none: what agreed on the world is equal everywhere. Private
    // communicators of communicators that the program did not free are left to MPI_Finalize.
    if (Communicator* const communicator = Communicator::existing(all)) communicator->release(all);
}

// Set in MPI_Finalize where the end was put off.
void (*leave_late)(void) = nullptr;
// What the wrapper of MPI_Finalize does, where that was not asked.
void (*finalize_unasked)(void) = nullptr;

}  // namespace

extern "C" {

// The first attribute of MPI_COMM_SELF, and so the last to be deleted.
static int self_deleted(MPI_Comm, int, void*, void*) try {
    finalize_unasked();
    if (leave_late == nullptr) return MPI_SUCCESS;
    finish_freed();
    leave_late();
    leave_late = nullptr;
    end(*World::get());
    return MPI_SUCCESS;
} catch (const std::bad_alloc&) {
    THALWEG_LOG_AT(error, "no memory in MPI_Finalize; the report is lost");
    return MPI_SUCCESS;
}

// Nothing of ours may throw into the program's C or Fortran.
void thalweg_entry_initialized(void (*finalizing)(void), int (*creations_arrive)(void)) {
    std::optional<AgreementFailed> failure;
    try {
        Bypass::let_go(Bypass::meetings);
        Bypass::let_go(Bypass::completions);
        note_origin();
        World::agree();
        make_ready_to_be_unwound();
        if (World* const world = World::get()) {
            keep_early(*world, creations_arrive);
            Attendance::agree(*world);
            world->set_exchange_gate();
            if (!Attendance::present()) Bypass::let_go(Bypass::requests);
            finalize_unasked = finalizing;
            watch_self(self_deleted);
            if (world->settings().setup == SetupSetting::early) set_up_early(host()->comm_world);
        }
    } catch (const AgreementFailed& caught) {
        failure = caught;
    } catch (const std::bad_alloc&) {
        THALWEG_LOG_AT(error, "no memory in MPI_Init; this rank cannot agree with the others");
    }
    SessionCommunicators::end_of_init();  // the error handler need not return
    if (!failure) return;
    THALWEG_LOG_AT(error, "MPI failed on this rank alone in MPI_Init while ranks agreed");
    call_error_handler(host()->comm_world, failure->error);
}

void thalweg_entry_finalizing(void (*leave)(void)) {
    World* const world = World::get();
    if (world == nullptr) return leave();
    std::optional<AgreementFailed> failure;
    try {
        finish_freed();
        // Here, where it can be, rather than inside a callback of the native library.
        if (Attendance::ends_late()) {
            leave_late = leave;
            return;
        }
        leave();
        return end(*world);
    } catch (const AgreementFailed& caught) {
        failure = caught;
    } catch (const std::bad_alloc&) {
        THALWEG_LOG_AT(error, "no memory in MPI_Finalize; the report is lost");
    }
    leave();
    if (failure) give_up_on(host()->comm_world, *failure);
}

void thalweg_entry_session_opened(void) {}
void thalweg_entry_session_closing(void) {}
void thalweg_entry_mpi_begins(void) { SessionCommunicators::begin_anew(); }
int thalweg_entry_session_comm_begins(void) { return SessionCommunicators::begins(); }
void thalweg_entry_session_comm_made(int begun_late, MPI_Comm comm) {
    SessionCommunicators::made(begun_late != 0, comm);
}
void thalweg_entry_comm_descends(MPI_Comm parent, MPI_Comm comm) {
    SessionCommunicators::descends(parent, comm);
}

int thalweg_entry_comm_freeing(MPI_Comm comm, int* error, void* frame) {
    const Host& mpi = *host();
    // Nobody frees the world: what one rank alone let go of there, the others would go on with.
    if (World::get() == nullptr || comm == mpi.comm_null || comm == mpi.comm_world || comm == mpi.comm_self)
        return 0;
    return answer(comm, *error, [&]() -> int {
        if (Communicator* const communicator = Communicator::known(comm)) {
            detach(comm, *communicator);
            communicator->release(comm);
        }
        release_detached();
        begin_freeing(comm, frame);
        return 0;
    });
}

void thalweg_entry_comm_freed(void* frame) { end_freeing(frame); }

// Below the threshold: a load, the type's size, an addition, a few thread-local stores, and nothing else.
int thalweg_entry_bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                        int* error, void** trial) {
    const Gate gate = gate_of(Collective::bcast);
    if (gate.bytes == gate_closed) return Bypass::open() ? 2 : 0;
    const std::int64_t size = type_size(datatype);
    std::uint64_t bytes = 0;
    if (count < 0 || size < 0 ||
        __builtin_mul_overflow(static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(size), &bytes)) {
        note_declined(Reason::invalid, 0);
        return 0;
    }
    if (bytes < gate.bytes) {
        if (gate.unseen && Bypass::open()) return 2;
        // The gate may be where a tuning table's rows begin, on one host.
        if (gate.unseen && bytes >= World::get()->bcast_min_bytes()) {
            Declining(CallKind::bcast).anywhere(Reason::native_best, bytes);
            return 0;
        }
        count_small(bytes);
        note_declined(Reason::small, bytes);
        return 0;
    }
    return answer(comm, *error, [&]() -> int {
        Trial* its = nullptr;
        UnaskedCalls* unasked = nullptr;
        const bool done = broadcast(*World::get(), buffer, bytes, static_cast<std::uint64_t>(count), datatype,
                                    root, comm, *error, its, unasked);
        *trial = its;
        if (unasked == nullptr) return done;
        *trial = unasked;
        return 2;
    });
}

void thalweg_entry_remember_broadcast(ThalwegBroadcastShortcut* shortcut, void* native, void* unasked,
                                      MPI_Count count, intptr_t datatype) {
    Unasked::hand_over(*static_cast<UnaskedCalls*>(unasked), *shortcut, native, count, datatype);
}

namespace {

// The mean block of an allgatherv, which is equal on all ranks; `least` where that cannot be told here.
std::uint64_t mean_block(const ThalwegCall& call, std::uint64_t least) {
    const Host& mpi = *host();
    constexpr int unset = -1;
    int size = 0, inter = unset;
    const std::int64_t type = type_size(call.receive_type);
    if (type < 0 || call.receive_count < 0 || call.comm == mpi.comm_null) return least;
    {
        const Outside outside;
        const int error = mpi.Comm_test_inter(call.comm, &inter);
        NoCommunicator::check(error, inter != unset);
    }
    if (inter != 0 || mpi.Comm_size(call.comm, &size) != MPI_SUCCESS) return least;
    std::uint64_t count = 0;
    for (int rank = 0; rank < size; ++rank)
        count +=
            static_cast<std::uint64_t>(call.counts != nullptr ? call.counts[rank] : call.large_counts[rank]);
    const auto ranks = static_cast<std::uint64_t>(size);
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(type), &bytes)) return least;
    return bytes / ranks + (bytes % ranks != 0);
}

}  // namespace

// Below the threshold as a broadcast.
int thalweg_entry_collective(const ThalwegCall* call, int* error, void** trial) {
    const Collective collective = collective_of(*call);
    const Gate gate = gate_of(collective);
    if (gate.bytes == gate_closed) return Bypass::open() ? 2 : 0;
    const Declining decline(static_cast<CallKind>(call->operation + 1));
    return answer(call->comm, *error, [&]() -> int {
        if (call->operation != thalweg_allgatherv && gate.bytes != 0) {
            const std::int64_t size = type_size(call->receive_type);
            std::uint64_t bytes = 0;
            if (call->receive_count < 0 || size < 0 ||
                __builtin_mul_overflow(static_cast<std::uint64_t>(call->receive_count),
                                       static_cast<std::uint64_t>(size), &bytes)) {
                decline.anywhere(Reason::invalid);
                return 0;
            }
            if (bytes < gate.bytes) {
                if (gate.unseen && Bypass::open()) return 2;
                decline.anywhere(Reason::native_best, bytes);
                return 0;
            }
        } else if (gate.bytes != 0) {
            // Before its blocks are looked at one by one.
            if (const std::uint64_t bytes = mean_block(*call, gate.bytes); bytes < gate.bytes) {
                decline.anywhere(Reason::native_best, bytes);
                return 0;
            }
        }
        Trial* its = nullptr;
        const bool done = run_blocking(*World::get(), as_call(*call), *error, its);
        *trial = its;
        return done;
    });
}

void thalweg_entry_completions_intercepted(int all, unsigned planners) {
    Attendance::set_completions_intercepted(all != 0, planners);
}

static int meet_in(MPI_Comm comm, const CollectiveCall* call, int* error) {
    AgreementFailed failure{};
    try {
        meet(comm, call);
        return 0;
    } catch (const NoCommunicator& none) {
        *error = none.error;
        return 1;
    } catch (const AgreementFailed& caught) {
        failure = caught;
    } catch (const std::bad_alloc&) {
        THALWEG_LOG_AT(error, "no memory to set a communicator up; this rank cannot agree with the others");
        return 0;
    }
    give_up_on(comm, failure);
    return 0;
}

static bool nobody_is_met() {
    return __builtin_expect(meetings_wanted.load(std::memory_order_relaxed) == 0, 1);
}

int thalweg_entry_meeting(MPI_Comm comm, int* error) {
    return nobody_is_met() ? 0 : meet_in(comm, nullptr, error);
}

int thalweg_entry_meeting_of(const ThalwegCall* call, int* error) {
    if (nobody_is_met()) return 0;
    const CollectiveCall same = as_call(*call);
    return meet_in(call->comm, &same, error);
}

int thalweg_entry_meeting_of_bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root,
                                   MPI_Comm comm, int* error) {
    if (nobody_is_met()) return 0;
    CollectiveCall same;
    same.receive = buffer;
    same.receive_count = count;
    same.receive_type = datatype;
    same.root = root;
    same.comm = comm;
    return meet_in(comm, &same, error);
}

int thalweg_entry_comm_creating(MPI_Comm parent, int* error) {
    const World* const world = World::get();
    if (world == nullptr || world->settings().setup != SetupSetting::early || parent == host()->comm_null)
        return 0;
    return answer(parent, *error, [&]() -> int {
        Communicator::known(parent);
        return 0;
    });
}

void thalweg_entry_comm_created(MPI_Comm parent, int made, MPI_Comm comm) {
    MPI_Comm agreeing = parent;  // the ranks of which do
    std::optional<AgreementFailed> failure;
    try {
        const World* const world = World::get();
        if (world == nullptr || world->settings().setup != SetupSetting::early) return;
        // Of their ranks some may not have come out of MPI_Init.
        if (parent != host()->comm_null && SessionCommunicators::are_native(parent)) return;
        if (!made_everywhere(parent, made != 0)) return;
        agreeing = comm;
        set_up_early(comm);
    } catch (const NoCommunicator&) {
    } catch (const AgreementFailed& caught) {
        failure = caught;
    } catch (const std::bad_alloc&) {
        THALWEG_LOG_AT(error, "no memory to set a communicator up; this rank cannot agree with the others");
    }
    if (failure) give_up_on(agreeing, *failure);
}

int thalweg_entry_operation(const ThalwegCall* call, MPI_Request* request, int* error) {
    return answer(call->comm, *error, [&]() -> int {
        const CollectiveCall offered = as_call(*call);
        std::unique_ptr<Ongoing> ongoing = offer(offered, *error);
        if (ongoing == nullptr && *error == MPI_SUCCESS && offered.persistent && lacks_natively(offered.kind))
            ongoing = make_native_plan(offered, *error);
        if (ongoing == nullptr && *error == MPI_SUCCESS)
            return !offered.persistent && Bypass::open(Bypass::requests) ? 2 : 0;
        if (ongoing == nullptr) return 1;
        if (offered.blocking) {
            ongoing->run();
            *error = ongoing->finish();
            ongoing.reset();
            if (*error != MPI_SUCCESS) call_error_handler(call->comm, *error);
            return 1;
        }
        if (offered.persistent) {
            ongoing = make_persistent(std::move(ongoing), call->comm, request, *error);
            if (ongoing == nullptr) return 1;
            ongoing->release();
            ongoing.reset();
            call_error_handler(call->comm, *error);
            return 1;
        }
        ongoing = make_request(std::move(ongoing), call->comm, request, *error);
        if (ongoing != nullptr) *error = without_request(std::move(ongoing), call->comm, *error);
        return 1;
    });
}

int thalweg_entry_neighbours(MPI_Comm comm, int* sources, int* destinations) {
    const std::optional<Neighbourhood> found = find_neighbourhood(comm);
    if (!found) return 0;
    *sources = static_cast<int>(found->sources.size());
    *destinations = static_cast<int>(found->destinations.size());
    return 1;
}

}  // extern "C"
