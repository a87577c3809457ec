// The private communicators of plans that make native calls: taken by all ranks at once, given back by each.
#include <new>

#include "plan/native_plan.h"
#include "plan/private_comm.h"
#include "plan/quiet_errors.h"
#include "plan/set_up.h"
#include "transport/mpi/host.h"

namespace thalweg {

void NativeGround::tell_used(std::uint64_t (&bits)[words + 1]) const {
    for (std::size_t slot = 0; slot < slots_.size() && slot < 64 * words; ++slot)
        bits[slot / 64] |= std::uint64_t{slots_[slot].used} << slot % 64;
}

bool NativeGround::take(MPI_Comm comm, bool good, std::size_t& slot) {
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
    for (slot = 0; slot < known && slot < 64 * words; ++slot) {
        if ((any[slot / 64] >> slot % 64 & 1) != 0) continue;
        const std::lock_guard lock(mutex_);
        slots_[slot].used = true;
        return true;
    }
    slot = known;
    MPI_Comm own;
    const bool made = make_private(comm, own);
    std::uint64_t trouble[1] = {!made};
    agree_on(comm, mpi.max, trouble);
    if (trouble[0] != 0) return false;
    const std::lock_guard lock(mutex_);
    slots_.push_back({own, true});
    return true;
}

MPI_Comm NativeGround::comm(std::size_t slot) {
    const std::lock_guard lock(mutex_);
    return slots_[slot].comm;
}

void NativeGround::give_back(std::size_t slot) {
    const std::lock_guard lock(mutex_);
    slots_[slot].used = slot >= 64 * words;
}

void NativeGround::close(MPI_Comm comm) {
    const QuietErrors quiet(comm);
    std::uint64_t any[words + 1] = {};
    {
        const std::lock_guard lock(mutex_);
        tell_used(any);
    }
    try {
        agree_on(comm, host()->bor, any);
    } catch (const AgreementFailed&) {
        return;  // they stay: to free one takes all ranks
    }
    const std::lock_guard lock(mutex_);
    for (std::size_t slot = 0; slot < slots_.size() && slot < 64 * words; ++slot)
        if ((any[slot / 64] >> slot % 64 & 1) == 0) host()->Comm_free(&slots_[slot].comm);
    // What is still used keeps its place in the plans that use it; nobody takes one any more.
}

}  // namespace thalweg
