#include "plan/kept_memory.h"

#include <algorithm>
#include <mutex>

#include "engine/waiters/between_polls.h"

namespace thalweg {
namespace {

constinit std::atomic<std::uint64_t> limit_bytes{~std::uint64_t{0}};
constinit std::atomic<std::uint64_t> total_bytes{0};

constinit std::mutex list_mutex;
constinit KeptMemory* first_listed = nullptr;

}  // namespace

KeptMemory::~KeptMemory() {
    if (!listed_) return;
    std::lock_guard lock(list_mutex);
    (previous_ == nullptr ? first_listed : previous_->next_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
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
    if (!listed_) {
        std::lock_guard lock(list_mutex);
        next_ = first_listed;
        if (next_ != nullptr) next_->previous_ = this;
        first_listed = this;
        listed_ = true;
    }
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
    for (KeptMemory* one = first_listed; one != nullptr; one = one->next_) one->trimmed_ = one->try_enter();
    while (total() > limit) {
        KeptMemory* oldest = nullptr;
        for (KeptMemory* one = first_listed; one != nullptr; one = one->next_)
            if (one->trimmed_ && (oldest == nullptr || one->oldest_use() < oldest->oldest_use()))
                oldest = one;
        if (oldest == nullptr || oldest->oldest_use() >= spare_since) break;
        oldest->give_up_oldest();
    }
    for (KeptMemory* one = first_listed; one != nullptr; one = one->next_)
        if (one->trimmed_) one->busy_.store(false, std::memory_order_release);
}

}  // namespace thalweg
