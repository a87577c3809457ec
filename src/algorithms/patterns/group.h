// Ranks counted from the root, and a message cut into pieces: what most broadcasts start from.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithms/algorithm.h"

namespace thalweg::patterns {

// Algorithms are written for root 0; v = (rank - root) mod size is a rank's place in them.
struct Group {
    int size = 1;
    int root = 0;

    explicit Group(const Problem& problem) : size(problem.size), root(problem.root) {}
    int place_of(int rank) const { return rank >= root ? rank - root : rank - root + size; }
    int rank_at(int place) const { return place < size - root ? place + root : place + root - size; }
};

// How many of `messages` a rank has on its way at a time where it may have `at_once`; 0: all of them.
constexpr std::uint64_t at_a_time(std::uint64_t at_once, std::uint64_t messages) {
    return at_once == 0 ? messages : std::min(at_once, messages);
}

constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

// ⌈log2 n⌉ and ⌊log2 n⌋, 0 for n <= 1.
constexpr int ceil_log2(std::uint64_t n) {
    int k = 0;
    while (k < 64 && (std::uint64_t{1} << k) < n) ++k;
    return k;
}
constexpr int floor_log2(std::uint64_t n) {
    int k = 0;
    while (n >>= 1) ++k;
    return k;
}

// A message cut at multiples of `chunk` bytes; the last piece may be shorter. An empty message has no pieces.
struct Cut {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t chunk = 1;

    std::uint64_t pieces() const { return ceil_div(bytes, chunk); }
    Slice piece(std::uint64_t i) const {
        return {Buffer::out, offset + i * chunk, std::min(chunk, bytes - i * chunk)};
    }
};

// chunk_bytes = 0 means: not cut. A chunk is made larger where a pair of ranks would exchange too many
// messages.
inline Cut cut(const Problem& problem, std::uint64_t chunk_bytes) {
    const std::uint64_t least =
        ceil_div(problem.bytes, std::max<std::uint64_t>(problem.messages_per_pair, 1));
    const std::uint64_t chunk = chunk_bytes == 0 ? problem.bytes : std::max(chunk_bytes, least);
    return {problem.offset, problem.bytes, std::max<std::uint64_t>(chunk, 1)};
}

}  // namespace thalweg::patterns
