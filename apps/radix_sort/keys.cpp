#include "radix_sort/keys.h"

#include <algorithm>

namespace thalweg::apps {
namespace {

constexpr struct {
    const char* name;
    Input input;
} inputs[] = {{"random", Input::random},
              {"few", Input::few},
              {"equal", Input::equal},
              {"sorted", Input::sorted},
              {"reversed", Input::reversed}};

constexpr std::uint64_t few_values = 16;

// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): one to one, every bit depends on every bit.
std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

}  // namespace

bool parse_input(const std::string& name, Input& input) {
    for (const auto& each : inputs)
        if (name == each.name) {
            input = each.input;
            return true;
        }
    return false;
}

std::string all_inputs() {
    std::string text;
    for (const auto& each : inputs) text += (text.empty() ? "" : ", ") + std::string(each.name);
    return text;
}

template <class Key>
Key make_key(Input input, std::uint64_t index, std::uint64_t count, std::uint64_t seed) {
    constexpr int unused_bits = 64 - 8 * static_cast<int>(sizeof(Key));
    // index / count of the whole range of keys.
    const auto share = [&](std::uint64_t at) {
        return static_cast<Key>((static_cast<unsigned __int128>(at) << (8 * sizeof(Key))) / count);
    };
    switch (input) {
        case Input::random:
            return static_cast<Key>(mix(mix(seed) + index) >> unused_bits);
        case Input::few:
            return static_cast<Key>(mix(mix(seed) ^ (mix(index) % few_values)) >> unused_bits);
        case Input::equal:
            return static_cast<Key>(mix(seed) >> unused_bits);
        case Input::sorted:
            return share(index);
        case Input::reversed:
            return share(count - 1 - index);
    }
    return 0;
}

void Fingerprint::add(std::uint64_t key) {
    sum[0] += 1;
    sum[1] += key;
    sum[2] += mix(key);
    sum[3] += mix(key ^ 0x5851f42d4c957f2du);
    exclusive_or ^= mix(key ^ 0xda942042e4dd58b5u);
}

template <class Key>
Fingerprint fingerprint(const Key* keys, std::size_t count) {
    Fingerprint result;
    for (std::size_t i = 0; i < count; ++i) result.add(keys[i]);
    return result;
}

template <class Key>
bool in_order(const Key* keys, std::size_t count, Key lower) {
    return std::is_sorted(keys, keys + count) && (count == 0 || keys[0] >= lower);
}

template <class Key>
bool equals_serial_sort(const Key* keys, std::uint64_t count, Input input, std::uint64_t seed) {
    std::vector<Key> expected(count);
    for (std::uint64_t i = 0; i < count; ++i) expected[i] = make_key<Key>(input, i, count, seed);
    std::sort(expected.begin(), expected.end());
    return std::equal(expected.begin(), expected.end(), keys);
}

#define THALWEG_KEYS(Key)                                                           \
    template Key make_key<Key>(Input, std::uint64_t, std::uint64_t, std::uint64_t); \
    template Fingerprint fingerprint<Key>(const Key*, std::size_t);                 \
    template bool in_order<Key>(const Key*, std::size_t, Key);                      \
    template bool equals_serial_sort<Key>(const Key*, std::uint64_t, Input, std::uint64_t);
THALWEG_KEYS(std::uint32_t)
THALWEG_KEYS(std::uint64_t)

}  // namespace thalweg::apps
