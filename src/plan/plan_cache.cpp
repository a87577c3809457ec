#include "plan/plan_cache.h"

#include <atomic>
#include <iterator>
#include <utility>

namespace thalweg {

std::uint64_t use_clock() {
    constinit static std::atomic<std::uint64_t> uses{0};
    return uses.fetch_add(1, std::memory_order_relaxed) + 1;
}

Plan* PlanCache::find(std::uint64_t bytes, int root, std::uint64_t decided_bytes) {
    const auto found = index_.find(Key{bytes, root, decided_bytes});
    if (found == index_.end()) return nullptr;
    plans_.splice(plans_.begin(), plans_, found->second);
    plans_.front().last_use = use_clock();
    return &plans_.front();
}

Plan& PlanCache::insert(Plan plan) {
    const Key key{plan.bytes, plan.root, plan.decided_bytes};
    const std::uint64_t footprint = plan.footprint_bytes;
    plans_.push_front(std::move(plan));
    plans_.front().last_use = use_clock();
    try {
        index_.insert_or_assign(key, plans_.begin());
    } catch (...) {
        plans_.pop_front();
        throw;
    }
    footprint_bytes_ += footprint;
    if (plans_.size() > most_plans) drop_oldest();
    return plans_.front();
}

void PlanCache::clear() {
    index_.clear();
    plans_.clear();
    footprint_bytes_ = 0;
}

void PlanCache::drop(std::list<Plan>::iterator plan) {
    footprint_bytes_ -= plan->footprint_bytes;
    index_.erase(Key{plan->bytes, plan->root, plan->decided_bytes});
    plans_.erase(plan);
}

void PlanCache::drop_oldest() { drop(std::prev(plans_.end())); }

void PlanCache::drop_transient() {
    for (auto plan = plans_.begin(); plan != plans_.end();) {
        const auto here = plan++;
        if (here->transient) drop(here);
    }
}

}  // namespace thalweg
