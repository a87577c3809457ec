// The blocks of an allgather: how long each is, where it ends, and memory in which runs of them lie side by
// side.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/algorithm.h"
#include "schedule/builder.h"

namespace thalweg::patterns {

// What all ranks contribute. O(1) memory where all blocks are alike.
class Contributions {
  public:
    explicit Contributions(const Problem& problem);

    int size() const { return size_; }
    std::uint64_t bytes(int block) const { return blocks_.empty() ? block_bytes_ : blocks_[block].bytes; }
    // Where a block ends in `out`.
    Slice place(int block) const;
    // Where this rank's block is at the start.
    Slice own() const;
    // Adds the copy of this rank's block to its place, where it is not there already.
    void add_own(Builder& builder) const;

    std::uint64_t total() const { return before(size_); }
    // Bytes of the blocks in front of `block`.
    std::uint64_t before(int block) const {
        return blocks_.empty() ? static_cast<std::uint64_t>(block) * block_bytes_ : before_[block];
    }
    int not_empty() const { return not_empty_; }
    // `out` holds all blocks in the order of ranks, without gaps: from start() on.
    bool in_order() const { return in_order_; }
    std::uint64_t start() const { return offset_ + start_; }

    // The run of `count` blocks from `first` on, past the last one on to block 0, is sent as the part up to
    // the last block and the part from block 0 on: how many of the two have bytes.
    std::uint64_t parts(int first, int count) const;

  private:
    int rank_, size_, not_empty_ = 0;
    bool in_place_, in_order_ = true;
    std::uint64_t offset_, block_bytes_, start_ = 0;
    std::span<const Block> blocks_;
    std::vector<std::uint64_t> before_;  // prefix sums, where blocks differ
};

// Memory in which all blocks lie in the order of ranks: `out` itself where its blocks do, else scratch from
// which they are copied at the end. Which of the two is one rank's own affair: messages are the same.
class Gathered {
  public:
    // Adds the copies of this rank's block.
    Gathered(Builder& builder, const Problem& problem);

    const Contributions& blocks() const { return blocks_; }
    // Sends or receives a run of blocks in one message, or two where it goes past the last block; nothing
    // where it has no bytes. Pre: first in [0, size), count <= size.
    void send(int to, int first, int count);
    void recv(int from, int first, int count);
    // Copies what is not in its place. To be called once, at the end.
    void finish();

  private:
    template <typename Use>
    void each_part(int first, int count, Use use) const;
    Slice range(std::uint64_t from, std::uint64_t to) const {
        return {memory_.buffer, memory_.offset + from, to - from};
    }

    Builder& builder_;
    int rank_;
    Contributions blocks_;
    Slice memory_;
};

// By how much the largest block exceeds the mean; 0 where all are alike. For prices.
std::uint64_t skew_bytes(const Problem& problem);

// Bytes of any allgather that brings every block to every rank once.
std::uint64_t all_bytes(const Contributions& blocks);

}  // namespace thalweg::patterns
