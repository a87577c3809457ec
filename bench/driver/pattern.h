// Data that is different in every word, call and buffer, so that a byte of another place, call or rank is
// seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace thalweg::bench {

inline std::uint64_t pattern_word(std::uint64_t seed, std::uint64_t index) {
    std::uint64_t x = seed * 0x9e3779b97f4a7c15u + index * 0xd1342543de82ef95u;
    x ^= x >> 32;
    return x * 0xda942042e4dd58b5u;
}

inline void fill_pattern(unsigned char* to, std::size_t bytes, std::uint64_t seed) {
    std::size_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        const std::uint64_t word = pattern_word(seed, i / 8);
        std::memcpy(to + i, &word, 8);
    }
    const std::uint64_t word = pattern_word(seed, i / 8);
    std::memcpy(to + i, &word, bytes - i);
}

// Returns the number of 8-byte words (the last may be shorter) that differ.
inline std::uint64_t count_wrong(const unsigned char* data, std::size_t bytes, std::uint64_t seed) {
    std::uint64_t wrong = 0;
    std::size_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        std::uint64_t word;
        std::memcpy(&word, data + i, 8);
        wrong += word != pattern_word(seed, i / 8);
    }
    const std::uint64_t word = pattern_word(seed, i / 8);
    return wrong + (std::memcmp(&word, data + i, bytes - i) != 0);
}

}  // namespace thalweg::bench
