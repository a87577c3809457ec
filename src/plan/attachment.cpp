// How a Communicator hangs on the user's communicator: found, attached, and freed with it.
#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include "plan/communicator.h"
#include "plan/freeing.h"
#include "plan/keyvals.h"
#include "plan/nonblocking.h"
#include "plan/quiet_errors.h"
#include "transport/mpi/error_handler.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// States that MPI had no memory to attach to their communicators. The counts in them are equal on all ranks,
// so they must not be lost. Looked at only where there are any.
struct Stray {
    MPI_Comm comm;
    Communicator* state;
};
constinit std::mutex strays_mutex;
constinit std::atomic<int> stray_count{0};
std::vector<Stray>& strays() {
    static auto* const list = new std::vector<Stray>;
    return *list;
}

void keep_stray(MPI_Comm comm, Communicator* state) {
    std::lock_guard lock(strays_mutex);
    strays().push_back({comm, state});
    stray_count.fetch_add(1, std::memory_order_release);
}

Communicator* find_stray(MPI_Comm comm) {
    if (stray_count.load(std::memory_order_acquire) == 0) return nullptr;
    std::lock_guard lock(strays_mutex);
    for (const Stray& stray : strays())
        if (stray.comm == comm) return stray.state;
    return nullptr;
}

bool forget_stray(MPI_Comm comm) {
    if (stray_count.load(std::memory_order_acquire) == 0) return false;
    std::lock_guard lock(strays_mutex);
    const auto forgotten = std::erase_if(strays(), [comm](const Stray& stray) { return stray.comm == comm; });
    stray_count.fetch_sub(static_cast<int>(forgotten), std::memory_order_release);
    return forgotten != 0;
}

constexpr int unset = -1;  // by MPI

struct Answer {
    int error;
    bool given;
};

// The first that MPI hears of the handle: where it is no communicator's, the program's error handler runs.
Answer attribute_of(MPI_Comm comm, Communicator*& state) {
    const Outside outside;
    void* value = nullptr;
    int found = unset;
    const int error = host()->Comm_get_attr(comm, keyvals().comm, &value, &found);
    if (error == MPI_SUCCESS && found != unset)
        state = found != 0 ? static_cast<Communicator*>(value) : find_stray(comm);
    return {error, found != unset};
}

}  // namespace

Communicator* Communicator::existing(MPI_Comm comm) {
    Communicator* state = nullptr;
    attribute_of(comm, state);
    return state;
}

Communicator* Communicator::known(MPI_Comm comm) {
    Communicator* state = nullptr;
    const Answer answer = attribute_of(comm, state);
    if (state == nullptr) NoCommunicator::check(answer.error, answer.given);
    return state;
}

Communicator* Communicator::of(MPI_Comm comm, World& world) {
    const Host& mpi = *host();
    if (Communicator* const state = known(comm)) return state;
    if (being_freed(comm)) return nullptr;
    // A state kept for a handle that MPI does not know would be found by whoever gets the handle next.
    const QuietErrors quiet(comm);
    int is_inter = unset, size = unset, rank = unset;
    if (mpi.Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || mpi.Comm_size(comm, &size) != MPI_SUCCESS ||
        mpi.Comm_rank(comm, &rank) != MPI_SUCCESS || is_inter == unset || size == unset || rank == unset)
        return nullptr;
    std::unique_ptr<Communicator> made(new (std::nothrow)
                                           Communicator(comm, world, is_inter != 0, rank, size));
    if (made == nullptr) return nullptr;
    if (mpi.Comm_set_attr(comm, keyvals().comm, made.get()) != MPI_SUCCESS) keep_stray(comm, made.get());
    return made.release();
}

// MPICH 5.0.2 reports success where a handler of the program's has returned, in every call.
void NoCommunicator::check(int error, bool answered) {
    int error_class = MPI_SUCCESS;
    if (error == MPI_SUCCESS
            ? !answered
            : host()->Error_class(error, &error_class) == MPI_SUCCESS && error_class == MPI_ERR_COMM)
        throw NoCommunicator{error};
}

void Communicator::bury(Communicator* dead) {
    detach_later(dead->self_driven);
    delete dead;
}

void Communicator::release(MPI_Comm comm) {
    if (forget_stray(comm))
        bury(this);
    else
        host()->Comm_delete_attr(comm, keyvals().comm);  // whose callback buries it
}

}  // namespace thalweg
