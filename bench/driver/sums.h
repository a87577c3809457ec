// Operands of measured reductions: sums of 64-bit integers, which have no order to keep
// (THALWEG_FLOAT_ORDER), and cost what those of doubles do.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "driver/ours.h"
#include "driver/pattern.h"

namespace thalweg::bench {

// What rows call them. Sums of doubles are declined by default, so that these are what there is to measure.
inline constexpr std::string_view sums_element = "int64";

inline std::int64_t operand(std::uint64_t seed, int rank, std::size_t index) {
    const std::uint64_t word = pattern_word(seed * 4099 + static_cast<std::uint64_t>(rank), index);
    return static_cast<std::int64_t>(word >> 20);
}

// A vector of `bytes`; any alignment.
inline void fill_operands(unsigned char* data, std::size_t bytes, int rank, std::uint64_t seed) {
    if (bytes % sizeof(std::int64_t) != 0) die("an allreduce is measured in multiples of 8 bytes");
    for (std::size_t i = 0; i < bytes / sizeof(std::int64_t); ++i) {
        const std::int64_t value = operand(seed, rank, i);
        std::memcpy(data + i * sizeof value, &value, sizeof value);
    }
}

// How many elements are not the sum over all ranks.
inline std::uint64_t count_wrong_sums(const unsigned char* data, std::size_t bytes, int size,
                                      std::uint64_t seed) {
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < bytes / sizeof(std::int64_t); ++i) {
        std::int64_t value = 0, sum = 0;
        for (int rank = 0; rank < size; ++rank) sum += operand(seed, rank, i);
        std::memcpy(&value, data + i * sizeof value, sizeof value);
        wrong += value != sum;
    }
    return wrong;
}

}  // namespace thalweg::bench
