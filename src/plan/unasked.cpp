#include "plan/unasked.h"

#include <array>
#include <atomic>
#include <functional>

#include "plan/nonblocking.h"
#include "plan/trials.h"
#include "plan/world.h"

namespace thalweg {

// Those of one communicator and kind, in a cache line. What is not atomic is written by who has `taken` it,
// and read by whose communicator it is; others look for trials of theirs meanwhile.
struct alignas(64) UnaskedCalls {
    std::atomic<bool> taken{false}, under_way{false};
    CallKind kind = CallKind::alltoallv;
    std::atomic<MPI_Comm> comm{};
    std::uint64_t calls = 0, passed = 0;
    std::atomic<Trial*> trial{};
    Tally* declined = nullptr;
    std::atomic<ThalwegExchangeShortcut*> shortcut{};  // has the rest of them

    void collect() {
        ThalwegExchangeShortcut* const its = shortcut.load(std::memory_order_relaxed);
        if (its == nullptr) return;
        shortcut.store(nullptr, std::memory_order_relaxed);
        std::atomic_ref(its->native_unasked).store(nullptr, std::memory_order_relaxed);
        passed = calls - its->left;
        std::atomic_ref(its->holder).store(nullptr, std::memory_order_release);
    }

    void settle() {
        collect();
        under_way.store(false, std::memory_order_relaxed);
        trial.load(std::memory_order_relaxed)->passed_on(passed);
        declined->calls += passed;
        taken.store(false, std::memory_order_release);
    }
};
static_assert(sizeof(UnaskedCalls) == 64, "a cache line");

namespace {

constexpr std::size_t places = 16;
constinit std::array<UnaskedCalls, places> all_calls{};

// Handles are pointers, or numbers that differ in their lowest bits.
UnaskedCalls& place_of(MPI_Comm comm, CallKind kind) {
    const std::size_t handle = std::hash<MPI_Comm>()(comm);
    return all_calls[(handle ^ handle >> 4 ^ handle >> 8 ^ static_cast<std::size_t>(kind)) % places];
}

bool may_pass() { return World::get()->wanted(Collective::alltoallv) == Wanted::automatic; }

}  // namespace

void Unasked::begin(MPI_Comm comm, CallKind kind, std::uint64_t calls, Trial& trial, Tally& declined) {
    UnaskedCalls& its = place_of(comm, kind);
    if (calls == 0 || its.taken.exchange(true, std::memory_order_acquire)) return;
    its.kind = kind;
    its.calls = calls;
    its.passed = 0;
    its.trial.store(&trial, std::memory_order_relaxed);
    its.declined = &declined;
    its.comm.store(comm, std::memory_order_relaxed);
    its.under_way.store(true, std::memory_order_release);
}

UnaskedCalls* Unasked::of(MPI_Comm comm, CallKind kind) {
    UnaskedCalls& its = place_of(comm, kind);
    if (!its.under_way.load(std::memory_order_acquire) || its.comm.load(std::memory_order_relaxed) != comm ||
        its.kind != kind)
        return nullptr;
    its.collect();
    if (!may_pass()) return nullptr;
    if (its.passed == its.calls) {
        its.settle();
        return nullptr;
    }
    ++its.passed;
    return &its;
}

void Unasked::hand_over(UnaskedCalls& calls, ThalwegExchangeShortcut& shortcut, void* native) {
    if (calls.passed == calls.calls) return;
    void* nobody = nullptr;
    if (!std::atomic_ref(shortcut.holder).compare_exchange_strong(nobody, &calls)) return;
    constexpr auto bits = static_cast<std::intptr_t>(sizeof(MPI_Comm) == sizeof(int) ? 0xffffffff : ~0ull);
    const auto handle = (std::intptr_t)calls.comm.load(std::memory_order_relaxed);
    shortcut.left = calls.calls - calls.passed;
    std::atomic_ref(shortcut.comm_bits).store(bits, std::memory_order_relaxed);
    std::atomic_ref(shortcut.comm).store(handle, std::memory_order_relaxed);
    calls.shortcut.store(&shortcut);
    std::atomic_ref(shortcut.native_unasked).store(native);
    // Who asks for another way looks at `shortcut` after it has done so, and we look at that now.
    if (meetings_wanted.load() != 0 || !may_pass())
        std::atomic_ref(shortcut.native_unasked).store(nullptr, std::memory_order_relaxed);
}

void Unasked::ask_again() {
    for (UnaskedCalls& calls : all_calls)
        if (ThalwegExchangeShortcut* const its = calls.shortcut.load())
            std::atomic_ref(its->native_unasked).store(nullptr);
}

void Unasked::settle(const Trial* trial) {
    for (UnaskedCalls& its : all_calls)
        if (its.under_way.load(std::memory_order_acquire) &&
            (trial == nullptr || its.trial.load(std::memory_order_relaxed) == trial))
            its.settle();
}

}  // namespace thalweg
