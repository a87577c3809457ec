#include "plan/known_topologies.h"

#include <algorithm>

namespace thalweg {

Topology KnownTopologies::same(const Topology& topology) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(known_.begin(), known_.end(), topology);
    if (found != known_.end()) return *found;
    known_[next_] = topology;
    next_ = (next_ + 1) % known_.size();
    return topology;
}

}  // namespace thalweg
