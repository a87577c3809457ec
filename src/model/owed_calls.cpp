#include "model/owed_calls.h"

#include <algorithm>

#include "model/trial.h"

namespace thalweg {

OwedCalls::Place* OwedCalls::find(const TriedCalls& calls) {
    for (Place& place : all_)
        if (place.asked != 0 && place.calls == calls) {
            place.asked = ++asked_;
            return &place;
        }
    return nullptr;
}

OwedCalls::Place& OwedCalls::make(const TriedCalls& calls) {
    if (Place* const found = find(calls)) return *found;
    Place& oldest = *std::min_element(all_.begin(), all_.end(),
                                      [](const Place& a, const Place& b) { return a.asked < b.asked; });
    oldest = {calls, 0, TrialTurns::soonest, ++asked_};
    return oldest;
}

std::uint64_t OwedCalls::of(const TriedCalls& calls) {
    const std::lock_guard lock(mutex_);
    const Place* const found = find(calls);
    return found != nullptr ? found->owed : 0;
}

void OwedCalls::pass(const TriedCalls& calls, std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    if (Place* const found = find(calls)) found->owed -= std::min(found->owed, count);
}

void OwedCalls::decide(const TriedCalls& calls, std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    if (Place* const its = count != 0 ? &make(calls) : find(calls)) {
        its->owed = count;
        its->by_broken_off = std::max(count, TrialTurns::soonest);
    }
}

void OwedCalls::break_off(const TriedCalls& calls, std::uint64_t most) {
    const std::lock_guard lock(mutex_);
    Place& its = make(calls);
    its.owed = std::max(its.owed, its.by_broken_off);
    its.by_broken_off = std::max(its.by_broken_off, std::min(2 * its.by_broken_off, most));
}

}  // namespace thalweg
