// The scatter-allgather broadcasts: a binomial scatter after which every rank keeps all bytes it has seen,
// and the rings that two of them go on with.
//
//     size 8:   0 → 4 (blocks 4-7)   0 → 2 (2-3)   4 → 6 (6-7)   0 → 1   2 → 3   4 → 5   6 → 7
//
//     place v then holds blocks [v, v + kept(v)):   0: all   4: 4-7   2: 2-3   6: 6-7   odd v: its own only
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithms/algorithm.h"
#include "algorithms/patterns/group.h"
#include "schedule/builder.h"

namespace thalweg::patterns {

// A message in one block per place, ⌈n/p⌉ bytes each; the last blocks may be short or empty.
struct Blocks {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t block = 0;
    int places = 1;

    explicit Blocks(const Problem& problem)
        : offset(problem.offset),
          bytes(problem.bytes),
          block(ceil_div(problem.bytes, static_cast<std::uint64_t>(problem.size))),
          places(problem.size) {}

    // Blocks [first, first + count), clipped to the message; empty beyond its end.
    Slice range(int first, int count) const {
        const std::uint64_t begin = std::min(bytes, static_cast<std::uint64_t>(first) * block);
        const std::uint64_t end =
            std::min(bytes, (static_cast<std::uint64_t>(first) + static_cast<std::uint64_t>(count)) * block);
        return {Buffer::out, offset + begin, end - begin};
    }
    int not_empty() const { return bytes == 0 ? 0 : static_cast<int>(ceil_div(bytes, block)); }
    // Blocks that place v holds after the scatter.
    int kept(int v) const { return v == 0 ? places : std::min(v & -v, places - v); }
};

// Adds this rank's steps of the scatter.
void add_scatter(Builder& builder, const Problem& problem);
// rounds = the deepest place that gets anything.
Claim claim_scatter(const Problem& problem);
// ⌈log2 p⌉ rounds, n (p-1)/p bytes.
Price price_scatter(const Problem& problem);

// Bytes of the blocks that places already hold when a ring brings them again: [v+1, v+kept(v)) of every v.
std::uint64_t kept_twice_bytes(const Blocks& blocks);

// The second half of the ring forms: in round i place v passes block v-i+1 on to v+1 and gets block v-i.
// `trimmed`: without the blocks that the receiver kept from the scatter.
std::string_view refuse_scatter_ring(const Problem& problem);
void add_ring(Builder& builder, const Problem& problem, bool trimmed);
// Scatter and ring, closed or trimmed: the trimmed one leaves out what is not on the critical path.
Price price_scatter_ring(const Problem& problem);

}  // namespace thalweg::patterns
