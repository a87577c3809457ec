#include "plan/selector_cache.h"

#include <utility>

namespace thalweg {

std::shared_ptr<const Selector> SelectorCache::find(const Topology& topology,
                                                    const SelectorInputs& inputs) const {
    std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_)
        // By all its ranks: digests alone would do almost always, and then ranks would choose differently.
        if (entry.selector != nullptr && entry.inputs == inputs && entry.topology == topology)
            return entry.selector;
    return nullptr;
}

void SelectorCache::keep(std::shared_ptr<const Selector> selector, const Topology& topology,
                         const SelectorInputs& inputs) {
    Entry entry{topology, inputs, std::move(selector)};
    std::lock_guard lock(mutex_);
    std::swap(entries_[next_], entry);
    next_ = (next_ + 1) % entries_.size();
}

}  // namespace thalweg
