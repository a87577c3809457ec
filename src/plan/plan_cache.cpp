#include "plan/plan_cache.h"

#include <utility>

namespace thalweg {

Plan* PlanCache::find(std::uint64_t bytes, int root, std::uint64_t decided_bytes) {
    const auto found = index_.find(Key{bytes, root, decided_bytes});
    if (found == index_.end()) return nullptr;
    plans_.splice(plans_.begin(), plans_, found->second);
    return &plans_.front();
}

Plan& PlanCache::insert(Plan plan) {
    const Key key{plan.bytes, plan.root, plan.decided_bytes};
    const std::uint64_t footprint = plan.footprint_bytes;
    plans_.push_front(std::move(plan));
    try {
        index_.insert_or_assign(key, plans_.begin());
    } catch (...) {
        plans_.pop_front();
        throw;
    }
    footprint_bytes_ += footprint;
    while (plans_.size() > 1 && (plans_.size() > most_plans || footprint_bytes_ > most_bytes)) {
        const Plan& oldest = plans_.back();
        footprint_bytes_ -= oldest.footprint_bytes;
        index_.erase(Key{oldest.bytes, oldest.root, oldest.decided_bytes});
        plans_.pop_back();
    }
    return plans_.front();
}

void PlanCache::clear() {
    index_.clear();
    plans_.clear();
    footprint_bytes_ = 0;
}

}  // namespace thalweg
