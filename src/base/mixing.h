// One number out of others, every bit of which depends on all of theirs; the same on every machine, unlike
// the standard library's hashes and distributions. SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#pragma once

#include <cstdint>
#include <initializer_list>

namespace thalweg {

// What its state grows by: the golden ratio, in 64 bits.
inline constexpr std::uint64_t golden_step = 0x9e3779b97f4a7c15u;

// Its finalizer: one to one, and 0 for 0.
constexpr std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// What differs in any of them, or in their order, differs here.
constexpr std::uint64_t mixed(std::initializer_list<std::uint64_t> values) {
    std::uint64_t digest = 0;
    for (const std::uint64_t value : values) digest = mixed(digest + value + golden_step);
    return digest;
}

}  // namespace thalweg
