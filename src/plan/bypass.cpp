#include "plan/bypass.h"

#include <array>
#include <cstddef>
#include <mutex>

namespace thalweg {

namespace {

constinit std::mutex mutex;
constinit std::atomic<unsigned> holders{1};
// Each wrapper of a blocking collective has one.
constinit std::array<Shortcut*, 16> shortcuts{};
constinit std::size_t known = 0;

}  // namespace

bool Bypass::open() { return holders.load(std::memory_order_acquire) == 0; }

void Bypass::remember(Shortcut& shortcut, void* native) {
    std::lock_guard lock(mutex);
    if (!open() || known == shortcuts.size()) return;
    for (std::size_t i = 0; i < known; ++i)
        if (shortcuts[i] == &shortcut) return;
    shortcuts[known++] = &shortcut;
    shortcut.store(native, std::memory_order_relaxed);
}

void Bypass::hold() {
    std::lock_guard lock(mutex);
    holders.fetch_add(1, std::memory_order_acq_rel);
    for (std::size_t i = 0; i < known; ++i) shortcuts[i]->store(nullptr, std::memory_order_relaxed);
    known = 0;
}

void Bypass::let_go() {
    std::lock_guard lock(mutex);
    holders.fetch_sub(1, std::memory_order_acq_rel);
}

}  // namespace thalweg
