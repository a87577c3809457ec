#include "plan/bypass.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "base/text.h"

constinit ThalwegCompletions thalweg_completion_calls = {};

namespace thalweg {

namespace {

constinit std::mutex mutex;
constinit std::array<std::atomic<unsigned>, Bypass::sides> holders{1, 1, 1, 1, 1};
// Where the wrappers of a side have what they jump to.
struct Natives {
    std::array<void**, 64> of{};
    std::size_t known = 0;
};
constinit std::array<Natives, Bypass::sides> all_natives{};
// What those of requests count, for good.
struct Counted {
    ThalwegRequestShortcut* shortcut = nullptr;
    CallKind kind{};
};
constinit std::array<Counted, 64> all_counted{};
constinit std::size_t counted = 0;

static_assert(sizeof(ThalwegShortcut) == 64 && sizeof(ThalwegExchangeShortcut) == 64 &&
                  sizeof(ThalwegBroadcastShortcut) == 64,
              "a cache line");

// What wrappers are given, but for the function and the limit.
constinit ThalwegShortcut rule{nullptr, nullptr, 0, 0, 1, nullptr, 0, 0, 0};
// By Collective, those of this side.
constinit std::array<std::atomic<std::uint64_t>, collective_count> limits{
    Bypass::all, Bypass::all, Bypass::all, Bypass::all, Bypass::all};
// The latest that let anything pass.
constinit Bypass::Limits told{Bypass::all, Bypass::all, Bypass::all, Bypass::all, Bypass::all};
const char* limited_where = "one host";

std::uint64_t limit_of(Collective collective) {
    return limits[static_cast<std::size_t>(collective)].load(std::memory_order_relaxed);
}

template <typename T>
void store(T& field, T value) {
    std::atomic_ref(field).store(value, std::memory_order_relaxed);
}

// False: it is there, or closed, or there are more wrappers than we know of. Pre: the mutex is held.
bool add(Bypass::Side side, void*& native) {
    Natives& natives = all_natives[side];
    if (!Bypass::open(side) || natives.known == natives.of.size()) return false;
    for (std::size_t i = 0; i < natives.known; ++i)
        if (natives.of[i] == &native) return false;
    natives.of[natives.known++] = &native;
    return true;
}

}  // namespace

bool Bypass::open(Side side) { return holders[side].load(std::memory_order_acquire) == 0; }
bool Bypass::open_for_all(Collective collective) { return open() && limit_of(collective) == all; }
bool Bypass::open_for_some(Collective collective) { return open() && limit_of(collective) != 0; }
bool Bypass::open_for(Collective collective, std::int64_t count, std::intptr_t datatype) {
    if (!open()) return false;
    const std::uint64_t below = limit_of(collective);
    return below == all || thalweg_is_short(&rule, below, count, datatype) != 0;
}

bool Bypass::is_predefined(std::intptr_t datatype) { return thalweg_element_bytes(&rule, datatype) != 0; }

void Bypass::remember(ThalwegShortcut& shortcut, void* native, Collective collective, bool short_) {
    // Short calls of types whose handles tell nothing come here each time, on all threads.
    if (std::atomic_ref(limit_of(collective) == all ? shortcut.native : shortcut.native_below)
            .load(std::memory_order_relaxed) != nullptr)
        return;
    std::lock_guard lock(mutex);
    const std::uint64_t below = limit_of(collective);
    if (below == 0 || (below != all && !short_)) return;
    void*& place = below == all ? shortcut.native : shortcut.native_below;
    if (!add(collectives, place)) return;
    store(shortcut.mask, rule.mask);
    store(shortcut.predefined, rule.predefined);
    store(shortcut.below, below);
    store(shortcut.sizes, rule.sizes);
    store(shortcut.shift, rule.shift);
    store(shortcut.byte, rule.byte);
    store(shortcut.real, rule.real);
    std::atomic_ref(place).store(native, std::memory_order_release);
}

void Bypass::remember(ThalwegExchangeShortcut& shortcut, void* native) {
    std::lock_guard lock(mutex);
    if (add(exchanges, shortcut.native)) store(shortcut.native, native);
}

void Bypass::remember(ThalwegMeetingShortcut& shortcut, void* native) {
    std::lock_guard lock(mutex);
    if (add(meetings, shortcut.native)) store(shortcut.native, native);
}

void Bypass::remember(ThalwegRequestShortcut& shortcut, void* native, CallKind kind) {
    std::lock_guard lock(mutex);
    const auto end = all_counted.begin() + static_cast<std::ptrdiff_t>(counted);
    const auto known = [&shortcut](const Counted& its) { return its.shortcut == &shortcut; };
    if (std::none_of(all_counted.begin(), end, known)) {
        if (counted == all_counted.size()) return;
        all_counted[counted++] = {&shortcut, kind};
    }
    if (add(requests, shortcut.native)) store(shortcut.native, native);
}

void Bypass::remember(ThalwegCompletion call, void* native) {
    std::lock_guard lock(mutex);
    void*& place = thalweg_completion_calls.native[call];
    if (add(completions, place)) store(place, native);
}

void Bypass::count_requests(Reason reason) {
    std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < counted; ++i)
        count_declined(all_counted[i].kind, reason,
                       std::atomic_ref(all_counted[i].shortcut->calls).exchange(0));
}

void Bypass::hold(Side side) {
    std::lock_guard lock(mutex);
    holders[side].fetch_add(1, std::memory_order_acq_rel);
    Natives& natives = all_natives[side];
    for (std::size_t i = 0; i < natives.known; ++i) store(*natives.of[i], static_cast<void*>(nullptr));
    natives.known = 0;
}

void Bypass::let_go(Side side) {
    std::lock_guard lock(mutex);
    holders[side].fetch_sub(1, std::memory_order_acq_rel);
}

void Bypass::set_limits(const Limits& below, const char* where, std::uint32_t mask, std::uint32_t predefined,
                        const ThalwegTypeSizes* sizes) {
    std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < below.size(); ++i) {
        limits[i].store(below[i], std::memory_order_relaxed);
        if (below[i] != 0) told[i] = below[i];
    }
    limited_where = where;
    store(rule.mask, mask);
    store(rule.predefined, predefined);
    store(rule.sizes, sizes == nullptr ? nullptr : static_cast<const ThalwegTypeSize*>(sizes->of));
    if (sizes == nullptr) return;
    store(rule.shift, sizes->shift);
    store(rule.byte, sizes->byte);
    store(rule.real, sizes->real);
}

std::string Bypass::reason(Collective collective) {
    std::lock_guard lock(mutex);
    std::string text = limited_where;
    text += ": handed on unseen";
    const std::uint64_t below = told[static_cast<std::size_t>(collective)];
    if (below != all) text += " below " + bytes_text(below);
    return text;
}

}  // namespace thalweg
