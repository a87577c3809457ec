#include "api/entry.h"

#include <atomic>
#include <new>

#include "base/log.h"
#include "plan/broadcast.h"
#include "plan/bypass.h"
#include "plan/communicator.h"
#include "plan/datatype.h"
#include "plan/last_call.h"
#include "plan/report.h"
#include "plan/statistics.h"
#include "plan/world.h"
#include "transport/mpi/host.h"

using namespace thalweg;

namespace {

// Which shard of small_calls a thread counts in.
std::atomic<unsigned> next_shard{0};
[[gnu::tls_model("initial-exec")]] thread_local constinit unsigned own_shard = small_shards;

void count_small(std::uint64_t bytes) {
    if (__builtin_expect(own_shard == small_shards, 0))
        own_shard = next_shard.fetch_add(1, std::memory_order_relaxed) % small_shards;
    SmallShard& shard = small_calls[own_shard];
    const std::size_t row = static_cast<std::size_t>(size_class(bytes));
    shard.calls[row < shard.calls.size() ? row : shard.calls.size() - 1].fetch_add(1,
                                                                                   std::memory_order_relaxed);
    shard.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace

extern "C" {

// Nothing of ours may throw into the program's C or Fortran.
void thalweg_entry_initialized(void) try {
    note_origin();
    World::agree();
} catch (const std::bad_alloc&) {
    THALWEG_LOG_AT(error, "no memory in MPI_Init; this rank cannot agree with the others");
}

void thalweg_entry_finalizing(void) try {
    World* const world = World::get();
    if (world == nullptr) return;
    world->leave();
    write_report(*world);
    // Collective, and all ranks have one or none: what agreed on the world is equal everywhere. Private
    // communicators of communicators that the program did not free are left to MPI_Finalize.
    Communicator::release(host()->comm_world);
} catch (const std::bad_alloc&) {
    THALWEG_LOG_AT(error, "no memory in MPI_Finalize; the report is lost");
}

void thalweg_entry_session_opened(void) {}
void thalweg_entry_session_closing(void) {}

void thalweg_entry_comm_freeing(MPI_Comm comm) {
    if (World::get() == nullptr || comm == host()->comm_null) return;
    Communicator::release(comm);
}

// Below the threshold this is a load, the type's size, an addition and a few thread-local stores: no lock, no
// allocation, no system call, no log, no virtual call, no attribute.
int thalweg_entry_bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                        int* error) {
    const std::uint64_t gate = bcast_gate.load(std::memory_order_acquire);
    if (gate == gate_closed) return Bypass::open() ? 2 : 0;
    const std::int64_t size = type_size(datatype);
    std::uint64_t bytes = 0;
    if (count < 0 || size < 0 ||
        __builtin_mul_overflow(static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(size), &bytes)) {
        note_declined(Reason::invalid, 0);
        return 0;
    }
    if (bytes < gate) {
        count_small(bytes);
        note_declined(Reason::small, bytes);
        return 0;
    }
    World* const world = World::get();
    try {
        return broadcast(*world, buffer, bytes, static_cast<std::uint64_t>(count), datatype, root, comm,
                         *error);
    } catch (const std::bad_alloc&) {
        // Alone we cannot decline what the others run: the user's error handler has to know.
        *error = MPI_ERR_NO_MEM;
        host()->Comm_call_errhandler(comm, *error);
        return 1;
    }
}

}  // extern "C"
