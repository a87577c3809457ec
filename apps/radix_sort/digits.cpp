#include "radix_sort/digits.h"

#include <algorithm>

namespace thalweg::apps {

std::vector<Digit> digits(int key_bits, int digit_bits) {
    std::vector<Digit> result;
    for (int shift = 0; shift < key_bits; shift += digit_bits)
        result.push_back({shift, std::min(digit_bits, key_bits - shift)});
    return result;
}

template <class Key>
std::vector<std::uint32_t> histogram(const Key* keys, std::size_t count, Digit digit) {
    std::vector<std::uint32_t> counts(digit.buckets());
    for (std::size_t i = 0; i < count; ++i) ++counts[digit.of(keys[i])];
    return counts;
}

template <class Key>
SortByDigit<Key>::SortByDigit(const Key* keys, Key* sorted, Digit digit,
                              const std::vector<std::uint32_t>& counts)
    : keys_(keys), sorted_(sorted), digit_(digit), next_(counts.size()) {
    std::uint32_t at = 0;
    for (std::size_t value = 0; value < counts.size(); ++value) {
        next_[value] = at;
        at += counts[value];
    }
}

template <class Key>
void SortByDigit<Key>::place(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) sorted_[next_[digit_.of(keys_[i])]++] = keys_[i];
}

Exchange plan_exchange(const std::vector<std::uint32_t>& histograms, std::size_t buckets, Partition partition,
                       int me) {
    const auto ranks = static_cast<std::size_t>(partition.ranks);
    Exchange exchange{std::vector<int>(ranks), std::vector<int>(ranks), std::vector<int>(ranks),
                      std::vector<int>(ranks)};
    const std::int64_t mine_begin = partition.begin(me), mine_end = partition.begin(me + 1);
    std::int64_t position = 0;  // of the first key of this digit and rank
    int to = 0;                 // who owns it
    for (std::size_t value = 0; value < buckets; ++value) {
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            const std::int64_t end = position + histograms[rank * buckets + value];
            const std::int64_t taken = std::min(end, mine_end) - std::max(position, mine_begin);
            if (taken > 0) exchange.receive_counts[rank] += static_cast<int>(taken);
            if (rank == static_cast<std::size_t>(me)) {
                for (std::int64_t at = position; at < end;) {
                    while (partition.begin(to + 1) <= at) ++to;
                    const std::int64_t until = std::min(end, partition.begin(to + 1));
                    exchange.send_counts[static_cast<std::size_t>(to)] += static_cast<int>(until - at);
                    at = until;
                }
            }
            position = end;
        }
    }
    for (std::size_t rank = 1; rank < ranks; ++rank) {
        exchange.send_at[rank] = exchange.send_at[rank - 1] + exchange.send_counts[rank - 1];
        exchange.receive_at[rank] = exchange.receive_at[rank - 1] + exchange.receive_counts[rank - 1];
    }
    return exchange;
}

#define THALWEG_DIGITS(Key)                                                             \
    template std::vector<std::uint32_t> histogram<Key>(const Key*, std::size_t, Digit); \
    template class SortByDigit<Key>;
THALWEG_DIGITS(std::uint32_t)
THALWEG_DIGITS(std::uint64_t)

}  // namespace thalweg::apps
