#include "plan/session_communicators.h"

#include <time.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/log.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// Begun, and whether the ranks have been told how many that were.
constexpr std::uint64_t closed = std::uint64_t{1} << 63;
constinit std::atomic<std::uint64_t> begun{0};
constinit std::atomic<bool> all_native{true}, over{false};

// The key of the mark, which has no value: made at the first one, and no key of the library after that has
// ended.
constinit std::mutex key_mutex;
constexpr int no_key = MPI_KEYVAL_INVALID;
constinit std::atomic<int> key{no_key};

int copy_mark(MPI_Comm, int, void*, void* value, void* copied, int* flag) {
    *static_cast<void**>(copied) = value;
    *flag = 1;
    return MPI_SUCCESS;
}
int forget_mark(MPI_Comm, int, void*, void*) { return MPI_SUCCESS; }

void mark(MPI_Comm comm) {
    const Host& mpi = *host();
    if (comm == mpi.comm_null) return;
    int own = no_key;
    {
        const std::lock_guard lock(key_mutex);
        own = key.load(std::memory_order_relaxed);
        if (own == no_key && mpi.Comm_create_keyval(copy_mark, forget_mark, &own, nullptr) == MPI_SUCCESS)
            key.store(own, std::memory_order_release);
    }
    // MPI has called the error handler then.
    if (own == no_key || mpi.Comm_set_attr(comm, own, nullptr) != MPI_SUCCESS)
        THALWEG_LOG_AT(error, "a communicator of a session has no mark; this rank may decide otherwise");
}

bool is_marked(MPI_Comm comm) {
    const int own = key.load(std::memory_order_acquire);
    if (__builtin_expect(own == no_key, 1)) return false;
    void* value = nullptr;
    int found = 0;
    return host()->Comm_get_attr(comm, own, &value, &found) == MPI_SUCCESS && found != 0;
}

}  // namespace

bool SessionCommunicators::begins() { return (begun.fetch_add(1) & closed) != 0; }

void SessionCommunicators::made(bool begun_late, MPI_Comm comm) {
    constexpr timespec pause{0, 50'000};
    while (begun_late && !over.load()) nanosleep(&pause, nullptr);
    mark(comm);
}

// Two groups may have met by MPI_Comm_accept, of which we are not told: a session's may be among them, and
// the ranks of the other one do not know.
static bool joins_unseen(MPI_Comm parent) {
    int inter = 0;
    return all_native.load() && host()->Comm_test_inter(parent, &inter) == MPI_SUCCESS && inter != 0;
}

void SessionCommunicators::descends(MPI_Comm parent, MPI_Comm comm) {
    if (parent != host()->comm_null && (is_marked(parent) || joins_unseen(parent))) mark(comm);
}

bool SessionCommunicators::are_native(MPI_Comm comm) { return is_marked(comm) && all_native.load(); }
bool SessionCommunicators::may_outlive_world(MPI_Comm comm) { return is_marked(comm); }

bool SessionCommunicators::close() { return begun.fetch_or(closed) != 0; }

void SessionCommunicators::settle(bool any_rank) { all_native.store(any_rank); }

void SessionCommunicators::end_of_init() { over.store(true); }

void SessionCommunicators::begin_anew() { key.store(no_key); }

}  // namespace thalweg
