// The private communicators of plans that make native calls: taken by all ranks at once, given back by each.
#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "plan/native_plan.h"
#include "plan/private_comm.h"
#include "plan/quiet_errors.h"
#include "plan/session_communicators.h"
#include "plan/set_up.h"
#include "plan/world.h"
#include "transport/mpi/host.h"

namespace thalweg {

// So many this process has led as rank 0.
static constinit std::atomic<std::uint64_t> led{0};

void NativeGround::tell_used(std::uint64_t* bits) const {
    for (std::size_t slot = 0; slot < slots_.size() && slot < 64 * words; ++slot)
        bits[slot / 64] |= std::uint64_t{slots_[slot].used} << slot % 64;
}

bool NativeGround::take(MPI_Comm comm, bool leads, bool good, std::size_t& slot,
                        std::shared_ptr<NativeGround>& instead) {
    const Host& mpi = *host();
    std::uint64_t any[words + 1] = {};
    std::size_t known = 0;
    {
        const std::lock_guard lock(mutex_);
        tell_used(any);
        known = slots_.size();
        try {
            slots_.reserve(known + 1);
        } catch (const std::bad_alloc&) {
            good = false;
        }
    }
    any[words] = !good;
    agree_on(comm, mpi.bor, any);
    if (any[words] != 0) return false;
    // It is as new on all ranks that are good.
    if (known == 0) instead = LeftBehind<NativeGround>::take_over(comm, leads);
    if (instead != nullptr) {
        std::shared_ptr<NativeGround> none;
        if (instead->take(comm, leads, true, slot, none)) return true;
        LeftBehind<NativeGround>::leave(std::move(instead));
        return false;
    }
    std::size_t free = known;
    for (slot = 0; slot < known && slot < 64 * words; ++slot) {
        if ((any[slot / 64] >> slot % 64 & 1) != 0) continue;
        const std::lock_guard lock(mutex_);
        if (slots_[slot].freed) {
            free = std::min(free, slot);
            continue;
        }
        slots_[slot].used = true;
        return true;
    }
    slot = free;
    MPI_Comm own;
    const bool made = make_private(comm, own);
    std::uint64_t trouble[1] = {!made};
    agree_on(comm, mpi.max, trouble);
    if (trouble[0] != 0) return false;
    const std::lock_guard lock(mutex_);
    if (slot == known)
        slots_.push_back({own, true});
    else
        slots_[slot] = {own, true};
    return true;
}

MPI_Comm NativeGround::comm() {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(slots_.begin(), slots_.end(), [](const Slot& each) { return !each.freed; });
    return found == slots_.end() ? host()->comm_null : found->comm;
}

MPI_Comm NativeGround::comm(std::size_t slot) {
    const std::lock_guard lock(mutex_);
    return slots_[slot].comm;
}

void NativeGround::give_back(std::size_t slot) {
    const std::lock_guard lock(mutex_);
    slots_[slot].used = slot >= 64 * words;
}

bool NativeGround::close(MPI_Comm comm, bool leads, const World& world) {
    const QuietErrors quiet(comm);
    // [in use; of rank 0: who it is, and how many it has led; a session's, which may end before the others]
    std::uint64_t any[words + 3] = {};
    if (leads) any[words] = static_cast<std::uint64_t>(world.rank());
    if (leads) any[words + 1] = led.fetch_add(1, std::memory_order_relaxed);
    any[words + 2] = SessionCommunicators::may_outlive_world(comm);
    {
        const std::lock_guard lock(mutex_);
        tell_used(any);
    }
    try {
        agree_on(comm, host()->bor, any);
    } catch (const AgreementFailed&) {
        return true;  // they stay: to free one takes all ranks
    }
    order_ = {any[words], any[words + 1]};
    bool all = true;
    const std::lock_guard lock(mutex_);
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        if (slots_[slot].freed) continue;
        const bool used = slot >= 64 * words || (any[slot / 64] >> slot % 64 & 1) != 0;
        if (!used) host()->Comm_free(&slots_[slot].comm);
        slots_[slot].freed = !used;
        all &= !used;
    }
    // What is still used keeps its place in the plans that use it.
    return all || any[words + 2] != 0;
}

}  // namespace thalweg
