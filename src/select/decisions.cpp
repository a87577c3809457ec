#include "select/decisions.h"

#include <utility>

namespace thalweg {
namespace {

// More than there are classes. Where an algorithm was asked for there is one per size, and none costs much.
constexpr std::size_t most_kept = 1024;

}  // namespace

Decisions::Decisions(std::shared_ptr<const Selector> selector) : selector_(std::move(selector)) {}

const Decision& Decisions::of(std::uint64_t bytes) {
    const std::uint64_t same = selector_->class_of(bytes);
    if (const auto known = by_class_.find(same); known != by_class_.end()) return known->second;
    if (by_class_.size() >= most_kept) by_class_.clear();
    return by_class_.emplace(same, selector_->decide(bytes)).first->second;
}

}  // namespace thalweg
