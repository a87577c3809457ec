#include "algorithms/patterns/contributions.h"

#include <algorithm>

namespace thalweg::patterns {

Contributions::Contributions(const Problem& problem)
    : rank_(problem.rank),
      size_(problem.size),
      in_place_(problem.in_place),
      offset_(problem.offset),
      block_bytes_(problem.bytes),
      blocks_(problem.blocks) {
    if (blocks_.empty()) {
        not_empty_ = block_bytes_ == 0 ? 0 : size_;
        return;
    }
    before_.reserve(blocks_.size() + 1);
    before_.push_back(0);
    for (const Block& block : blocks_) {
        if (not_empty_ == 0 && block.bytes != 0) start_ = block.offset;
        in_order_ = in_order_ && (block.bytes == 0 || block.offset == start_ + before_.back());
        not_empty_ += block.bytes != 0;
        before_.push_back(before_.back() + block.bytes);
    }
}

Slice Contributions::place(int block) const {
    if (!blocks_.empty()) return {Buffer::out, offset_ + blocks_[block].offset, blocks_[block].bytes};
    return {Buffer::out, offset_ + static_cast<std::uint64_t>(block) * block_bytes_, block_bytes_};
}

Slice Contributions::own() const { return in_place_ ? place(rank_) : Slice{Buffer::in, 0, bytes(rank_)}; }

void Contributions::add_own(Builder& builder) const {
    if (!in_place_ && bytes(rank_) != 0) builder.copy(place(rank_), own());
}

std::uint64_t Contributions::parts(int first, int count) const {
    const int end = first + count;
    if (end <= size_) return before(end) != before(first);
    return (before(size_) != before(first)) + (before(end - size_) != 0);
}

Gathered::Gathered(Builder& builder, const Problem& problem)
    : builder_(builder), rank_(problem.rank), blocks_(problem) {
    if (blocks_.in_order()) {
        memory_ = {Buffer::out, blocks_.start(), blocks_.total()};
    } else {
        memory_ = builder.scratch(blocks_.total());
        if (blocks_.bytes(rank_) != 0)
            builder.copy(range(blocks_.before(rank_), blocks_.before(rank_ + 1)), blocks_.own());
    }
    blocks_.add_own(builder);
}

template <typename Use>
void Gathered::each_part(int first, int count, Use use) const {
    const auto part = [&](int begin, int end) {
        const Slice slice = range(blocks_.before(begin), blocks_.before(end));
        if (slice.bytes != 0) use(slice);
    };
    const int end = first + count, size = blocks_.size();
    part(first, end < size ? end : size);
    if (end > size) part(0, end - size);
}

void Gathered::send(int to, int first, int count) {
    // The own block alone need not wait for its copy.
    if (count == 1 && first == rank_) {
        if (blocks_.bytes(rank_) != 0) builder_.send(to, blocks_.own());
        return;
    }
    each_part(first, count, [&](const Slice& slice) { builder_.send(to, slice); });
}

void Gathered::recv(int from, int first, int count) {
    each_part(first, count, [&](const Slice& slice) { builder_.recv(from, slice); });
}

void Gathered::finish() {
    if (memory_.buffer == Buffer::out) return;
    for (int block = 0; block < blocks_.size(); ++block)
        if (block != rank_ && blocks_.bytes(block) != 0)
            builder_.copy(blocks_.place(block), range(blocks_.before(block), blocks_.before(block + 1)));
}

std::uint64_t all_bytes(const Contributions& blocks) {
    return blocks.total() * static_cast<std::uint64_t>(blocks.size() - 1);
}

std::uint64_t skew_bytes(const Problem& problem) {
    std::uint64_t largest = 0;
    for (const Block& block : problem.blocks) largest = std::max(largest, block.bytes);
    return largest > problem.bytes ? largest - problem.bytes : 0;
}

}  // namespace thalweg::patterns
