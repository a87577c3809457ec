// What the wrappers of exchanges ask.
#include <mpi.h>

#include <atomic>
#include <new>

#include "api/answer.h"
#include "api/as_call.h"
#include "api/entry.h"
#include "plan/blocking_exchange.h"
#include "plan/bypass.h"
#include "plan/communicator.h"
#include "plan/nonblocking.h"
#include "plan/refusals.h"
#include "plan/unasked.h"
#include "plan/world.h"
#include "transport/mpi/host.h"

using namespace thalweg;

// Without memory it counts.
static void native_failed(const ThalwegCall& call, int error, Trial& trial) try {
    if (is_refusal(error) && is_missed(as_call(call))) trial.take_back();
} catch (const std::bad_alloc&) {
}

extern "C" {

int thalweg_entry_may_take(int blocking, MPI_Comm comm, int* error) {
    if (World::get() == nullptr || comm == host()->comm_null) return 0;
    // Where somebody is to be met that is done in the call itself, when its arguments can be looked at.
    const bool meets = meetings_wanted.load(std::memory_order_relaxed) != 0;
    if (blocking && !meets && !may_exchange()) return 0;
    try {
        Communicator::known(comm);
        return 1;
    } catch (const NoCommunicator& none) {
        *error = none.error;
        return -1;
    }
}
int thalweg_entry_exchange(const ThalwegCall* call, int* error, void** trial) {
    if (*trial != nullptr) return native_failed(*call, *error, *static_cast<Trial*>(*trial)), 0;
    if (thalweg_entry_meeting_of(call, error)) return 1;
    return answer(call->comm, *error, [&]() -> int {
        if (!may_exchange()) return Bypass::open(Bypass::exchanges) ? 2 : 0;
        Trial* its = nullptr;
        UnaskedCalls* unasked = nullptr;
        if (exchange_now(as_call(*call), *error, its, unasked)) return 1;
        *trial = its;
        if (unasked == nullptr) return 0;
        *trial = unasked;
        return 2;
    });
}
void* thalweg_entry_remember_exchange(ThalwegExchangeShortcut* shortcut, void* native, void* unasked) {
    if (unasked == nullptr) {
        Bypass::remember(*shortcut, native);
        return nullptr;
    }
    UnaskedCalls& calls = *static_cast<UnaskedCalls*>(unasked);
    Unasked::hand_over(calls, *shortcut, native);
    return Unasked::trial_of(calls);
}
void* thalweg_entry_trial_of(void* unasked, MPI_Comm comm) {
    return unasked == nullptr ? nullptr : Unasked::trial_of(*static_cast<UnaskedCalls*>(unasked), comm);
}
void thalweg_entry_native_begins(void* trial) { Trial::begin_native(*static_cast<Trial*>(trial)); }
int thalweg_entry_native_ended(void* trial) { return Trial::end_native(static_cast<Trial*>(trial)); }

}  // extern "C"
