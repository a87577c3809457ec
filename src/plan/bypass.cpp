#include "plan/bypass.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "base/text.h"

namespace thalweg {

namespace {

constinit std::mutex mutex;
constinit std::atomic<unsigned> holders{1};
// Each wrapper of a blocking collective has one.
constinit std::array<ThalwegShortcut*, 16> shortcuts{};
constinit std::size_t known = 0;

static_assert(sizeof(ThalwegShortcut) == 64, "a cache line");

// What wrappers are given, but for the function.
constinit ThalwegShortcut rule{nullptr, nullptr, Bypass::all, 0, 1, nullptr, 0, 0, 0};

template <typename T>
void store(T& field, T value) {
    std::atomic_ref(field).store(value, std::memory_order_relaxed);
}

}  // namespace

bool Bypass::open() { return holders.load(std::memory_order_acquire) == 0; }
bool Bypass::open_for(std::int64_t count, std::intptr_t datatype) {
    if (!open()) return false;
    if (std::atomic_ref(rule.below).load(std::memory_order_relaxed) == all) return true;
    return thalweg_is_short(&rule, count, datatype) != 0;
}

void Bypass::remember(ThalwegShortcut& shortcut, void* native) {
    std::lock_guard lock(mutex);
    if (!open() || known == shortcuts.size()) return;
    for (std::size_t i = 0; i < known; ++i)
        if (shortcuts[i] == &shortcut) return;
    shortcuts[known++] = &shortcut;
    store(shortcut.mask, rule.mask);
    store(shortcut.predefined, rule.predefined);
    store(shortcut.below, rule.below);
    store(shortcut.sizes, rule.sizes);
    store(shortcut.shift, rule.shift);
    store(shortcut.byte, rule.byte);
    store(shortcut.real, rule.real);
    store(rule.below == all ? shortcut.native : shortcut.native_below, native);
}

void Bypass::hold() {
    std::lock_guard lock(mutex);
    holders.fetch_add(1, std::memory_order_acq_rel);
    for (std::size_t i = 0; i < known; ++i)
        for (void** native : {&shortcuts[i]->native, &shortcuts[i]->native_below})
            store(*native, static_cast<void*>(nullptr));
    known = 0;
}

void Bypass::let_go() {
    std::lock_guard lock(mutex);
    holders.fetch_sub(1, std::memory_order_acq_rel);
}

void Bypass::set_limit(std::uint64_t below, std::uint32_t mask, std::uint32_t predefined,
                       const ThalwegTypeSizes* sizes) {
    std::lock_guard lock(mutex);
    store(rule.mask, mask);
    store(rule.predefined, predefined);
    store(rule.below, below);
    store(rule.sizes, sizes == nullptr ? nullptr : static_cast<const ThalwegTypeSize*>(sizes->of));
    if (sizes == nullptr) return;
    store(rule.shift, sizes->shift);
    store(rule.byte, sizes->byte);
    store(rule.real, sizes->real);
}

std::string Bypass::reason(bool broadcast) {
    std::string text = "one host: handed on unseen";
    const std::uint64_t below = std::atomic_ref(rule.below).load();
    if (broadcast && below != all) text += " below " + bytes_text(below);
    return text;
}

}  // namespace thalweg
