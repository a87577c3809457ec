#include "plan/unasked.h"

#include <array>
#include <atomic>
#include <functional>

#include "plan/trials.h"
#include "plan/world.h"

namespace thalweg {

namespace {

// Those of one communicator and kind, in a cache line. What is not atomic is written by who has `taken` it,
// and read by whose communicator it is; others look for trials of theirs meanwhile.
struct alignas(64) Calls {
    std::atomic<bool> taken{false}, under_way{false};
    std::atomic<MPI_Comm> comm{};
    CallKind kind = CallKind::alltoallv;
    std::uint64_t calls = 0, passed = 0;
    std::atomic<Trial*> trial{};
    Tally* declined = nullptr;

    void settle() {
        under_way.store(false, std::memory_order_relaxed);
        trial.load(std::memory_order_relaxed)->passed_on(passed);
        declined->calls += passed;
        taken.store(false, std::memory_order_release);
    }
};
constexpr std::size_t places = 16;
constinit std::array<Calls, places> all_calls{};

// Handles are pointers, or numbers that differ in their lowest bits.
Calls& place_of(MPI_Comm comm, CallKind kind) {
    const std::size_t handle = std::hash<MPI_Comm>()(comm);
    return all_calls[(handle ^ handle >> 4 ^ handle >> 8 ^ static_cast<std::size_t>(kind)) % places];
}

}  // namespace

void Unasked::begin(MPI_Comm comm, CallKind kind, std::uint64_t calls, Trial& trial, Tally& declined) {
    Calls& its = place_of(comm, kind);
    if (calls == 0 || its.taken.exchange(true, std::memory_order_acquire)) return;
    its.kind = kind;
    its.calls = calls;
    its.passed = 0;
    its.trial.store(&trial, std::memory_order_relaxed);
    its.declined = &declined;
    its.comm.store(comm, std::memory_order_relaxed);
    its.under_way.store(true, std::memory_order_release);
}

bool Unasked::has(MPI_Comm comm, CallKind kind) {
    Calls& its = place_of(comm, kind);
    if (!its.under_way.load(std::memory_order_acquire) || its.comm.load(std::memory_order_relaxed) != comm ||
        its.kind != kind || World::get()->wanted(Collective::alltoallv) != Wanted::automatic)
        return false;
    if (its.passed == its.calls) {
        its.settle();
        return false;
    }
    ++its.passed;
    return true;
}

void Unasked::settle(const Trial* trial) {
    for (Calls& its : all_calls)
        if (its.under_way.load(std::memory_order_acquire) &&
            (trial == nullptr || its.trial.load(std::memory_order_relaxed) == trial))
            its.settle();
}

}  // namespace thalweg
