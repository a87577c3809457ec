#include "plan/kept_memory.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "engine/waiters/between_polls.h"

namespace thalweg {
namespace {

constinit std::atomic<std::uint64_t> limit_bytes{~std::uint64_t{0}};
constinit std::atomic<std::uint64_t> total_bytes{0};

constinit std::mutex list_mutex;
// Never destroyed: callbacks may come late.
std::vector<KeptMemory*>& list() {
    static auto* const all = new std::vector<KeptMemory*>;
    return *all;
}

}  // namespace

KeptMemory::KeptMemory() {
    std::lock_guard lock(list_mutex);
    list().push_back(this);
}

KeptMemory::~KeptMemory() {
    std::lock_guard lock(list_mutex);
    std::erase(list(), this);
    total_bytes.fetch_sub(published_, std::memory_order_relaxed);
}

void KeptMemory::set_limit(std::uint64_t bytes) { limit_bytes.store(bytes, std::memory_order_relaxed); }
std::uint64_t KeptMemory::total() { return total_bytes.load(std::memory_order_relaxed); }
void KeptMemory::give_up_idle() { trim(0, ~std::uint64_t{0}); }

// Only a trim that has just taken it holds it against its owner, and that is short.
KeptMemory::InUse::InUse(KeptMemory& memory) : memory_(memory) {
    std::uint64_t began_ns = 0;
    while (!memory_.try_enter()) began_ns = pause_between_polls(WaitPolicy::sleep, began_ns);
}

KeptMemory::InUse::~InUse() {
    memory_.publish();
    const std::uint64_t newest = std::max(memory_.plans.newest_use(), memory_.staging.last_use());
    // Release: what this thread wrote is there for the one that enters next.
    memory_.busy_.store(false, std::memory_order_release);
    const std::uint64_t limit = limit_bytes.load(std::memory_order_relaxed);
    if (__builtin_expect(total() > limit, 0)) trim(limit, newest);
}

void KeptMemory::publish() {
    const std::uint64_t now = plans.footprint_bytes() + staging.resident_bytes();
    if (now == published_) return;
    total_bytes.fetch_add(now - published_, std::memory_order_relaxed);
    published_ = now;
}

std::uint64_t KeptMemory::oldest_use() const {
    return std::min(plans.oldest_use(),
                    staging.resident_bytes() == 0 ? ~std::uint64_t{0} : staging.last_use());
}

void KeptMemory::give_up_oldest() {
    if (staging.resident_bytes() != 0 && staging.last_use() <= plans.oldest_use())
        staging.give_up_pages();
    else
        plans.drop_oldest();
    publish();
}

// Down to `limit`, but leaves what was used at `spare_since` or later: the call that has just ended.
void KeptMemory::trim(std::uint64_t limit, std::uint64_t spare_since) {
    std::lock_guard lock(list_mutex);
    std::vector<KeptMemory*>& all = list();
    // Entered ones first. In place: there may be no memory for another list.
    const auto idle_end =
        std::partition(all.begin(), all.end(), [](KeptMemory* one) { return one->try_enter(); });
    while (total() > limit && idle_end != all.begin()) {
        KeptMemory* const oldest = *std::min_element(
            all.begin(), idle_end,
            [](const KeptMemory* a, const KeptMemory* b) { return a->oldest_use() < b->oldest_use(); });
        if (oldest->oldest_use() >= spare_since) break;
        oldest->give_up_oldest();
    }
    std::for_each(all.begin(), idle_end,
                  [](KeptMemory* one) { one->busy_.store(false, std::memory_order_release); });
}

}  // namespace thalweg
