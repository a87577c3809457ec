#include "schedule/expressions.h"

#include <algorithm>
#include <bit>

namespace thalweg {

Expressions::Expression Expressions::expression(Origin origin) const {
    if (origin >= first_) return made_[origin - first_];
    Expression leaf;
    const std::uint32_t rank = (origin - 1) / 3;
    leaf.buffer = static_cast<Buffer>((origin - 1) % 3);
    leaf.lowest = leaf.highest = rank;
    leaf.ranks.resize(words_);
    leaf.ranks[rank / 64] |= std::uint64_t{1} << (rank % 64);
    return leaf;
}

Origin Expressions::reduce(Origin left, Origin right, std::int64_t distance) {
    const auto [found, fresh] =
        known_.try_emplace({left, right, distance}, static_cast<Origin>(first_ + made_.size()));
    if (!fresh) return found->second;
    Expression made = expression(left);
    const Expression other = expression(right);
    made.sound = made.sound && other.sound && distance == 0 && made.buffer == other.buffer;
    made.ordered = made.ordered && other.ordered && made.highest < other.lowest;
    made.lowest = std::min(made.lowest, other.lowest);
    made.highest = std::max(made.highest, other.highest);
    for (std::size_t i = 0; i < words_; ++i) {
        made.sound = made.sound && (made.ranks[i] & other.ranks[i]) == 0;
        made.ranks[i] |= other.ranks[i];
    }
    made_.push_back(std::move(made));
    return found->second;
}

std::string Expressions::fault(Origin origin, Buffer buffer, bool in_rank_order) const {
    const Expression it = expression(origin);
    if (!it.sound || it.buffer != buffer)
        return "combines an operand twice, or bytes that do not belong together";
    std::size_t count = 0;
    for (std::uint64_t word : it.ranks) count += static_cast<std::size_t>(std::popcount(word));
    if (count != ranks_)
        return "combines the operands of " + std::to_string(count) + " of " + std::to_string(ranks_) +
               " ranks";
    if (in_rank_order && !it.ordered) return "combines the operands in another order than that of the ranks";
    return {};
}

}  // namespace thalweg
