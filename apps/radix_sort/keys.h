// The keys to sort, and how a sorted sequence is checked. No MPI here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::apps {

enum class Input { random, few, equal, sorted, reversed };

// False where there is no input of that name.
bool parse_input(const std::string& name, Input& input);
std::string all_inputs();  // "random, few, …"

// Key number `index` of `count`: any rank can make any part of the input. few: 16 values in all.
template <class Key>
Key make_key(Input input, std::uint64_t index, std::uint64_t count, std::uint64_t seed);

// What a multiset of keys cannot change without almost certainly changing one of these: how many there are,
// their sum, the sums of two hashes of each and the exclusive-or of a third. Sums are modulo 2^64.
struct Fingerprint {
    static constexpr int sums = 4;
    std::uint64_t sum[sums] = {};  // count, keys, first and second hash
    std::uint64_t exclusive_or = 0;

    void add(std::uint64_t key);
    bool operator==(const Fingerprint&) const = default;
};

template <class Key>
Fingerprint fingerprint(const Key* keys, std::size_t count);

// A rank's part of a sorted sequence: that it is sorted, and that it does not begin below `lower`, the
// largest key of the ranks before.
template <class Key>
bool in_order(const Key* keys, std::size_t count, Key lower);

// Whether `keys` are the whole input in order, found by sorting the input on this process.
template <class Key>
bool equals_serial_sort(const Key* keys, std::uint64_t count, Input input, std::uint64_t seed);

}  // namespace thalweg::apps
