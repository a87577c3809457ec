// The vectors of a reduction, cut between elements.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithms/algorithm.h"
#include "algorithms/patterns/group.h"

namespace thalweg::patterns {

// Bytes [from, from + bytes) of a vector.
struct Range {
    std::uint64_t from = 0;
    std::uint64_t bytes = 0;

    std::uint64_t end() const { return from + bytes; }
};

class Vector {
  public:
    explicit Vector(const Problem& problem)
        : offset_(problem.offset),
          bytes_(problem.bytes),
          element_(std::max<std::uint64_t>(problem.element_bytes, 1)),
          in_place_(problem.in_place) {}

    Range all() const { return {0, bytes_}; }
    bool in_place() const { return in_place_; }
    // This rank's operand, and where the result belongs.
    Slice own(const Range& range) const {
        return in_place_ ? result(range) : Slice{Buffer::in, range.from, range.bytes};
    }
    Slice result(const Range& range) const { return {Buffer::out, offset_ + range.from, range.bytes}; }

    // Part `index` of `count` parts of `range` that differ by one element at most, larger ones first.
    Range part(const Range& range, std::uint64_t index, std::uint64_t count) const {
        const std::uint64_t elements = range.bytes / element_, each = elements / count,
                            more = elements % count;
        const std::uint64_t begin = index * each + std::min(index, more);
        return {range.from + begin * element_, (each + (index < more)) * element_};
    }

    // Pieces of about chunk_bytes (0: one piece), of whole elements, no more than `most`.
    struct Pieces {
        Range range;
        std::uint64_t chunk = 1;

        std::uint64_t count() const { return ceil_div(range.bytes, chunk); }
        Range piece(std::uint64_t i) const {
            return {range.from + i * chunk, std::min(chunk, range.bytes - i * chunk)};
        }
    };
    Pieces pieces(const Range& range, std::uint64_t chunk_bytes, std::uint64_t most) const {
        const std::uint64_t least = ceil_div(range.bytes, std::max<std::uint64_t>(most, 1));
        const std::uint64_t wanted = chunk_bytes == 0 ? range.bytes : std::max(chunk_bytes, least);
        return {range, std::max(ceil_div(wanted, element_) * element_, element_)};
    }

  private:
    std::uint64_t offset_, bytes_, element_;
    bool in_place_;
};

}  // namespace thalweg::patterns
