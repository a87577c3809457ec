// The parts of the radix sort, with all ranks in one process, and its checker.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "radix_sort/digits.h"
#include "radix_sort/keys.h"

namespace thalweg::apps {
namespace {

template <class Key>
using Spread = std::vector<std::vector<Key>>;  // by rank

template <class Key>
Spread<Key> spread(Input input, std::uint64_t count, int ranks) {
    const Partition partition{static_cast<std::int64_t>(count), ranks};
    Spread<Key> keys(static_cast<std::size_t>(ranks));
    for (std::uint64_t i = 0; i < count; ++i)
        keys[static_cast<std::size_t>(partition.owner(static_cast<std::int64_t>(i)))].push_back(
            make_key<Key>(input, i, count, 7));
    return keys;
}

// What the program does, with copies in place of messages.
template <class Key>
void sort_by(Digit digit, Spread<Key>& keys) {
    const int ranks = static_cast<int>(keys.size());
    std::int64_t total = 0;
    std::vector<std::uint32_t> all;
    Spread<Key> sorted(keys.size());
    for (std::size_t rank = 0; rank < keys.size(); ++rank) {
        const auto counts = histogram(keys[rank].data(), keys[rank].size(), digit);
        all.insert(all.end(), counts.begin(), counts.end());
        sorted[rank].resize(keys[rank].size());
        SortByDigit<Key> local(keys[rank].data(), sorted[rank].data(), digit, counts);
        const std::size_t half = keys[rank].size() / 2;
        local.place(0, half);
        local.place(half, keys[rank].size());
        total += static_cast<std::int64_t>(keys[rank].size());
    }
    std::vector<Exchange> plans;
    for (int rank = 0; rank < ranks; ++rank)
        plans.push_back(plan_exchange(all, digit.buckets(), {total, ranks}, rank));
    for (std::size_t to = 0; to < keys.size(); ++to) {
        std::vector<Key> received;
        for (std::size_t from = 0; from < keys.size(); ++from) {
            ASSERT_EQ(plans[from].send_counts[to], plans[to].receive_counts[from]);
            ASSERT_EQ(static_cast<std::size_t>(plans[to].receive_at[from]), received.size());
            const auto begin = sorted[from].begin() + plans[from].send_at[to];
            received.insert(received.end(), begin, begin + plans[from].send_counts[to]);
        }
        ASSERT_EQ(received.size(), keys[to].size());
        SortByDigit<Key> local(received.data(), keys[to].data(), digit,
                               histogram(received.data(), received.size(), digit));
        local.place(0, received.size());
    }
}

template <class Key>
void sorts_everything(int key_bits, int digit_bits) {
    for (const int ranks : {1, 2, 3, 5, 8})
        for (const std::uint64_t count : {0, 1, 2, 7, 1000})
            for (const Input input :
                 {Input::random, Input::few, Input::equal, Input::sorted, Input::reversed}) {
                auto keys = spread<Key>(input, count, ranks);
                std::vector<Key> expected;
                for (const auto& own : keys) expected.insert(expected.end(), own.begin(), own.end());
                std::sort(expected.begin(), expected.end());
                for (const Digit digit : digits(key_bits, digit_bits)) sort_by(digit, keys);
                std::vector<Key> found;
                for (const auto& own : keys) found.insert(found.end(), own.begin(), own.end());
                ASSERT_EQ(found, expected)
                    << ranks << " ranks, " << count << " keys, input " << static_cast<int>(input);
                EXPECT_TRUE(equals_serial_sort(found.data(), count, input, 7));
            }
}

TEST(RadixSort, Sorts32BitKeys) { sorts_everything<std::uint32_t>(32, 8); }
TEST(RadixSort, Sorts64BitKeysWithANarrowLastDigit) { sorts_everything<std::uint64_t>(64, 11); }

TEST(RadixSort, DigitsCoverTheKeyOnce) {
    for (const int bits : {1, 7, 8, 11, 16, 24}) {
        std::uint64_t covered = 0;
        for (const Digit digit : digits(64, bits)) {
            const std::uint64_t mask = (digit.buckets() - 1) << digit.shift;
            EXPECT_EQ(covered & mask, 0u);
            covered |= mask;
        }
        EXPECT_EQ(covered, ~std::uint64_t{0});
    }
}

TEST(Partition, BlocksAreContiguousAndEven) {
    for (const int ranks : {1, 2, 3, 5, 8})
        for (const std::int64_t items : {0, 1, 4, 5, 17, 1000}) {
            const Partition partition{items, ranks};
            EXPECT_EQ(partition.begin(0), 0);
            EXPECT_EQ(partition.begin(ranks), items);
            std::int64_t most = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                most = std::max(most, partition.count(rank));
                EXPECT_LE(partition.count(0) - partition.count(rank), 1);
                for (std::int64_t i = partition.begin(rank); i < partition.begin(rank + 1); ++i)
                    ASSERT_EQ(partition.owner(i), rank);
            }
            EXPECT_EQ(partition.largest(), most);
        }
}

// ---- the checker: one changed key must not pass

std::vector<std::uint32_t> sorted_keys() {
    std::vector<std::uint32_t> keys;
    for (std::uint64_t i = 0; i < 1000; ++i)
        keys.push_back(make_key<std::uint32_t>(Input::random, i, 1000, 3));
    std::sort(keys.begin(), keys.end());
    return keys;
}

TEST(SortChecker, SeesEveryBitOfEveryKey) {
    auto keys = sorted_keys();
    const Fingerprint before = fingerprint(keys.data(), keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i)
        for (int bit = 0; bit < 32; ++bit) {
            keys[i] ^= 1u << bit;
            ASSERT_NE(fingerprint(keys.data(), keys.size()), before) << "key " << i << ", bit " << bit;
            keys[i] ^= 1u << bit;
        }
    EXPECT_EQ(fingerprint(keys.data(), keys.size()), before);
}

TEST(SortChecker, SeesAKeyThatTookTheOthersPlace) {
    // The same count, and with two changes the same sum: only the hashes can tell.
    auto keys = sorted_keys();
    const Fingerprint before = fingerprint(keys.data(), keys.size());
    keys[10] += 1;
    keys[20] -= 1;
    EXPECT_NE(fingerprint(keys.data(), keys.size()), before);
}

TEST(SortChecker, DoesNotMindTheOrder) {
    auto keys = sorted_keys();
    const Fingerprint before = fingerprint(keys.data(), keys.size());
    std::reverse(keys.begin(), keys.end());
    EXPECT_EQ(fingerprint(keys.data(), keys.size()), before);
}

TEST(SortChecker, SeesDisorderOnARankAndAcross) {
    auto keys = sorted_keys();
    const std::uint32_t lowest = keys.front();
    EXPECT_TRUE(in_order(keys.data(), keys.size(), lowest));
    EXPECT_FALSE(in_order(keys.data(), keys.size(), lowest + 1));
    EXPECT_TRUE(in_order<std::uint32_t>(keys.data(), 0, ~0u));
    std::swap(keys[499], keys[500]);
    EXPECT_FALSE(in_order(keys.data(), keys.size(), lowest));
}

TEST(SortChecker, ComparesWithASerialSort) {
    auto keys = sorted_keys();
    EXPECT_TRUE(equals_serial_sort(keys.data(), keys.size(), Input::random, 3));
    EXPECT_FALSE(equals_serial_sort(keys.data(), keys.size(), Input::random, 4));
    keys[999] ^= 1;
    EXPECT_FALSE(equals_serial_sort(keys.data(), keys.size(), Input::random, 3));
}

TEST(Keys, AreWhatTheirNamesSay) {
    std::vector<std::uint64_t> keys(500);
    const auto make = [&](Input input) {
        for (std::uint64_t i = 0; i < keys.size(); ++i)
            keys[i] = make_key<std::uint64_t>(input, i, keys.size(), 1);
    };
    const auto different = [&] {
        auto sorted = keys;
        std::sort(sorted.begin(), sorted.end());
        return std::unique(sorted.begin(), sorted.end()) - sorted.begin();
    };
    make(Input::random);
    EXPECT_EQ(different(), 500);
    EXPECT_FALSE(std::is_sorted(keys.begin(), keys.end()));
    make(Input::few);
    EXPECT_EQ(different(), 16);
    make(Input::equal);
    EXPECT_EQ(different(), 1);
    make(Input::sorted);
    EXPECT_EQ(different(), 500);
    EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
    make(Input::reversed);
    EXPECT_TRUE(std::is_sorted(keys.rbegin(), keys.rend()));
    Input input;
    EXPECT_FALSE(parse_input("backwards", input));
}

}  // namespace
}  // namespace thalweg::apps
