#include "plan/unasked.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>

#include "plan/bypass.h"
#include "plan/nonblocking.h"
#include "plan/trials.h"
#include "plan/world.h"
#include "transport/mpi/host.h"

namespace thalweg {

// Those of one communicator and kind, in a cache line. What is not atomic is written by who has `taken` it,
// and read by whose communicator it is; others look for trials of theirs meanwhile.
struct alignas(64) UnaskedCalls {
    std::atomic<bool> taken{false}, under_way{false};
    CallKind kind = CallKind::alltoallv;
    int ranks = 0;
    std::atomic<MPI_Comm> comm{};
    std::uint64_t calls = 0, passed = 0;
    std::atomic<Trial*> trial{};
    std::atomic<ThalwegUnasked*> shortcut{};  // has the rest of them
    std::uint64_t bytes = 0;                  // of each; 0: whatever
    std::uint64_t generation = 0;             // of the settings that the trial belongs to

    void collect() {
        ThalwegUnasked* const its = shortcut.load(std::memory_order_relaxed);
        if (its == nullptr) return;
        shortcut.store(nullptr, std::memory_order_relaxed);
        std::atomic_ref(its->native).store(nullptr, std::memory_order_relaxed);
        passed = calls - its->left;
        std::atomic_ref(its->holder).store(nullptr, std::memory_order_release);
    }

    bool take_back() {
        collect();
        if (passed == 0) return false;
        --passed;
        return true;
    }

    bool are(MPI_Comm of, CallKind which) const {
        return under_way.load(std::memory_order_acquire) && comm.load(std::memory_order_relaxed) == of &&
               kind == which;
    }

    void settle() {
        collect();
        under_way.store(false, std::memory_order_relaxed);
        Trial& its = *trial.load(std::memory_order_relaxed);
        its.passed_on(passed);
        its.declined->calls += passed;
        its.declined->bytes += passed * bytes;
        taken.store(false, std::memory_order_release);
    }
};
static_assert(sizeof(UnaskedCalls) == 64, "a cache line");

namespace {

constexpr std::size_t places = 16;
constinit std::array<UnaskedCalls, places> all_calls{};

// Two places beside each other for what falls there. Handles are pointers, or numbers that differ in their
// lowest bits, or built-in ones from others in their highest.
constexpr std::size_t beside_each_other = 2;
UnaskedCalls* places_of(MPI_Comm comm, CallKind kind, std::uint64_t bytes) {
    const std::size_t handle = std::hash<MPI_Comm>()(comm);
    const auto like = static_cast<std::size_t>(kind) + static_cast<std::size_t>(size_class(bytes));
    return &all_calls[(handle ^ handle >> 4 ^ handle >> 8 ^ handle >> 30 ^ like) %
                      (places / beside_each_other) * beside_each_other];
}

UnaskedCalls* find(MPI_Comm comm, CallKind kind, std::uint64_t bytes) {
    UnaskedCalls* const first = places_of(comm, kind, bytes);
    for (UnaskedCalls* its = first; its != first + beside_each_other; ++its)
        if (its->are(comm, kind) && size_class(its->bytes) == size_class(bytes)) return its;
    return nullptr;
}

constexpr std::uint64_t calls_between_holders = 8;

bool one_thread_calls() {
    static const bool one = [] {
        int level = MPI_THREAD_MULTIPLE;
        host()->Query_thread(&level);
        return level != MPI_THREAD_MULTIPLE;
    }();
    return one;
}

// Whether nothing else was asked for since the trial left them.
bool may_pass(const UnaskedCalls& calls) {
    const World& world = *World::get();
    return calls.kind == CallKind::bcast ? calls.generation == world.generation()
                                         : world.wanted(Collective::alltoallv) == Wanted::automatic;
}

// Whether they have the place of a wrapper for themselves from now on. By the thread that makes them.
bool claim(UnaskedCalls& calls, ThalwegUnasked& place) {
    if (calls.passed == calls.calls) return false;
    void* holder = nullptr;
    if (std::atomic_ref(place.holder).compare_exchange_strong(holder, &calls)) return true;
    // Those of a communicator, or of a size, that may be used no more: one that is goes on in their place,
    // though not at each call of two that take turns. Of another thread's calls nobody else may count what is
    // left.
    if (calls.passed % calls_between_holders != 0 || !one_thread_calls()) return false;
    static_cast<UnaskedCalls*>(holder)->collect();
    std::atomic_ref(place.holder).store(&calls);
    return true;
}

// Pre: the place is theirs.
void let_pass(UnaskedCalls& calls, ThalwegUnasked& place, void* native) {
    constexpr auto bits = static_cast<std::intptr_t>(sizeof(MPI_Comm) == sizeof(int) ? 0xffffffff : ~0ull);
    const auto handle = (std::intptr_t)calls.comm.load(std::memory_order_relaxed);
    place.left = calls.calls - calls.passed;
    std::atomic_ref(place.handle_bits).store(bits, std::memory_order_relaxed);
    std::atomic_ref(place.comm).store(handle, std::memory_order_relaxed);
    calls.shortcut.store(&place);
    std::atomic_ref(place.native).store(native);
    // Who asks for another way looks at `shortcut` after it has done so, and we look at that now.
    if (meetings_wanted.load() != 0 || !may_pass(calls))
        std::atomic_ref(place.native).store(nullptr, std::memory_order_relaxed);
}

}  // namespace

void Unasked::begin(MPI_Comm comm, const Alike& alike, std::uint64_t calls, Trial& trial) {
    if (calls == 0) return;
    UnaskedCalls* const first = places_of(comm, alike.kind, alike.bytes);
    UnaskedCalls* const free = std::find_if(first, first + beside_each_other, [](UnaskedCalls& each) {
        return !each.taken.exchange(true, std::memory_order_acquire);
    });
    if (free == first + beside_each_other) return;
    UnaskedCalls& its = *free;
    its.kind = alike.kind;
    its.ranks = alike.ranks;
    its.bytes = alike.bytes;
    its.calls = calls;
    its.passed = 0;
    its.generation = World::get()->generation();
    its.trial.store(&trial, std::memory_order_relaxed);
    its.comm.store(comm, std::memory_order_relaxed);
    its.under_way.store(true, std::memory_order_release);
}

UnaskedCalls* Unasked::of(MPI_Comm comm, CallKind kind) {
    UnaskedCalls* const found = find(comm, kind, 0);
    if (found == nullptr) return nullptr;
    UnaskedCalls& its = *found;
    its.collect();
    if (!may_pass(its)) return nullptr;
    if (its.passed == its.calls) {
        its.settle();
        return nullptr;
    }
    ++its.passed;
    return &its;
}

UnaskedCalls* Unasked::of_broadcast(MPI_Comm comm, std::uint64_t bytes, int root) {
    UnaskedCalls* const found = find(comm, CallKind::bcast, bytes);
    if (found == nullptr) return nullptr;
    UnaskedCalls& its = *found;
    its.collect();
    // Wrong arguments are the native library's to report, and are not counted.
    if (root < 0 || root >= its.ranks) return nullptr;
    if (its.bytes != bytes || its.passed == its.calls || !may_pass(its)) {
        its.settle();
        return nullptr;
    }
    ++its.passed;
    return &its;
}

bool Unasked::take_back(const Trial& trial) {
    for (UnaskedCalls& its : all_calls)
        if (its.under_way.load(std::memory_order_acquire) &&
            its.trial.load(std::memory_order_relaxed) == &trial)
            return its.take_back();
    return false;
}

Trial* Unasked::trial_of(const UnaskedCalls& calls) { return calls.trial.load(std::memory_order_relaxed); }

Trial* Unasked::trial_of(const UnaskedCalls& calls, MPI_Comm comm) {
    const bool are_on_it =
        calls.under_way.load(std::memory_order_acquire) && calls.comm.load(std::memory_order_relaxed) == comm;
    return are_on_it ? trial_of(calls) : nullptr;
}

void Unasked::hand_over(UnaskedCalls& calls, ThalwegExchangeShortcut& shortcut, void* native) {
    if (claim(calls, shortcut.unasked)) let_pass(calls, shortcut.unasked, native);
}

void Unasked::hand_over(UnaskedCalls& calls, ThalwegBroadcastShortcut& shortcut, void* native,
                        std::int64_t count, std::intptr_t datatype) {
    static_assert(sizeof(MPI_Datatype) == sizeof(MPI_Comm), "as many bits of a register tell a handle");
    if (thalweg_is_no_place(MPI_IN_PLACE) == 0 || !Bypass::is_predefined(datatype)) return;
    if (!claim(calls, shortcut.unasked)) return;
    std::atomic_ref(shortcut.datatype).store(datatype, std::memory_order_relaxed);
    std::atomic_ref(shortcut.count).store(count, std::memory_order_relaxed);
    std::atomic_ref(shortcut.ranks).store(static_cast<std::uint32_t>(calls.ranks), std::memory_order_relaxed);
    let_pass(calls, shortcut.unasked, native);
}

void Unasked::ask_again() {
    for (UnaskedCalls& calls : all_calls)
        if (ThalwegUnasked* const its = calls.shortcut.load()) std::atomic_ref(its->native).store(nullptr);
}

void Unasked::settle_broadcasts(MPI_Comm comm) {
    for (UnaskedCalls& its : all_calls)
        if (its.are(comm, CallKind::bcast)) its.settle();
}

void Unasked::settle(const Trial* trial) {
    for (UnaskedCalls& its : all_calls)
        if (its.under_way.load(std::memory_order_acquire) &&
            (trial == nullptr || its.trial.load(std::memory_order_relaxed) == trial))
            its.settle();
}

}  // namespace thalweg
