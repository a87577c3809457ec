// Rounds of the algorithms in which a rank's holdings grow by a factor of radix = ports + 1.
#pragma once

#include <cstdint>

#include "algorithms/algorithm.h"

namespace thalweg::patterns {

// ⌈log_radix p⌉: rounds until one holder of radix - 1 messages a round has reached p places. Pre: radix >= 2.
constexpr std::uint64_t ceil_log(std::uint64_t radix, std::uint64_t p) {
    std::uint64_t rounds = 0;
    for (std::uint64_t reached = 1; reached < p; reached *= radix) ++rounds;
    return rounds;
}

// Calls use(width, i) for every message of every round: width = 1, radix, radix², … and i = 1 … radix - 1
// while i * width < p.
template <typename Use>
void each_digit(std::uint64_t ports, int p, Use use) {
    for (std::uint64_t width = 1; width < static_cast<std::uint64_t>(p); width *= ports + 1)
        for (std::uint64_t i = 1; i <= ports && i * width < static_cast<std::uint64_t>(p); ++i)
            use(static_cast<int>(width), static_cast<int>(i));
}

}  // namespace thalweg::patterns
