// The local steps of one pass of a radix sort: count the digits, sort by digit without changing the order of
// equal digits, and find out who gets what. No MPI here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/partition.h"

namespace thalweg::apps {

// `bits` bits of a key, from bit `shift` up.
struct Digit {
    int shift = 0, bits = 16;

    std::size_t buckets() const { return std::size_t{1} << bits; }
    template <class Key>
    std::size_t of(Key key) const {
        return static_cast<std::size_t>(key >> shift) & (buckets() - 1);
    }
};

// The digits of a key of `key_bits` bits, the lowest first; the last may be narrower.
std::vector<Digit> digits(int key_bits, int digit_bits);

// How often each value of the digit occurs.
template <class Key>
std::vector<std::uint32_t> histogram(const Key* keys, std::size_t count, Digit digit);

// A stable sort by one digit that can be done piece by piece: place(b, e) puts keys b … e - 1 where they
// belong in `sorted`. Pieces must come in order. `keys` and `sorted` stay the caller's.
template <class Key>
class SortByDigit {
  public:
    SortByDigit(const Key* keys, Key* sorted, Digit digit, const std::vector<std::uint32_t>& counts);
    void place(std::size_t begin, std::size_t end);

  private:
    const Key* keys_;
    Key* sorted_;
    Digit digit_;
    std::vector<std::uint32_t> next_;  // by value of the digit: where its next key goes
};

// Keys that one rank exchanges with each other rank, as MPI_Alltoallv takes them.
struct Exchange {
    std::vector<int> send_counts, send_at, receive_counts, receive_at;
};

// In the order of (digit, rank, place on that rank) every key has a position, and position i belongs to the
// rank that owns item i of the partition. `histograms` are those of all ranks, in rank order.
Exchange plan_exchange(const std::vector<std::uint32_t>& histograms, std::size_t buckets, Partition partition,
                       int me);

}  // namespace thalweg::apps
