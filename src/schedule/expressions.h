// What reductions make, as expressions over the bytes that ranks held at the start. Equal expressions have
// equal numbers, so that "the same bits on every rank" is a comparison of numbers. Private to the validator.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "schedule/step.h"

namespace thalweg {

// Where a run of bytes comes from. 0: undefined; 1 + 3 * rank + buffer: what a rank held at the start; above:
// a reduction.
using Origin = std::uint32_t;

class Expressions {
  public:
    explicit Expressions(std::size_t ranks)
        : ranks_(ranks), words_((ranks + 63) / 64), first_(start(ranks, Buffer::in)) {}

    static Origin start(std::size_t rank, Buffer buffer) {
        return static_cast<Origin>(1 + rank * 3 + static_cast<std::size_t>(buffer));
    }

    // The reduction of `left` and `right`, whose byte `distance` further on meets each byte of `left`.
    Origin reduce(Origin left, Origin right, std::int64_t distance);

    // Empty when `origin` combines what every rank held at the start in `buffer`, each rank's once and byte
    // by byte, in the order of ranks where that is asked for. Else the end of a sentence.
    std::string fault(Origin origin, Buffer buffer, bool in_rank_order) const;

  private:
    // Ranks whose start takes part, as a set; meaningful where nothing is wrong.
    struct Expression {
        bool sound = true;    // each rank at most once, one buffer, bytes of equal offsets
        bool ordered = true;  // ranks ascend from left to right
        Buffer buffer = Buffer::in;
        std::uint32_t lowest = 0, highest = 0;
        std::vector<std::uint64_t> ranks;
    };

    Expression expression(Origin origin) const;

    std::size_t ranks_, words_;
    Origin first_;  // of the reductions
    std::map<std::tuple<Origin, Origin, std::int64_t>, Origin> known_;
    std::vector<Expression> made_;
};

}  // namespace thalweg
