// How a Communicator hangs on the user's communicator: found, attached, and freed with it.
#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include "plan/communicator.h"
#include "plan/keyvals.h"
#include "plan/nonblocking.h"
#include "plan/quiet_errors.h"
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

}  // namespace

Communicator* Communicator::existing(MPI_Comm comm) {
    void* value = nullptr;
    int found = 0;
    if (host()->Comm_get_attr(comm, keyvals().comm, &value, &found) != MPI_SUCCESS) return nullptr;
    return found ? static_cast<Communicator*>(value) : find_stray(comm);
}

Communicator* Communicator::of(MPI_Comm comm, World& world) {
    if (Communicator* const known = existing(comm)) return known;
    std::unique_ptr<Communicator> made(new (std::nothrow) Communicator(comm, world));
    if (made == nullptr) return nullptr;
    QuietErrors quiet(comm);
    if (host()->Comm_set_attr(comm, keyvals().comm, made.get()) != MPI_SUCCESS) keep_stray(comm, made.get());
    return made.release();
}

void Communicator::bury(Communicator* dead) {
    detach_later(dead->self_driven);
    delete dead;
}

void Communicator::release(MPI_Comm comm) {
    Communicator* const state = existing(comm);
    if (state == nullptr) return;
    if (forget_stray(comm))
        bury(state);
    else
        host()->Comm_delete_attr(comm, keyvals().comm);  // whose callback buries it
}

}  // namespace thalweg
