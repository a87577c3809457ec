// n items over p ranks in blocks that differ by at most one: the first n % p ranks have one more.
#pragma once

#include <cstdint>

namespace thalweg::apps {

struct Partition {
    std::int64_t items = 0;
    int ranks = 1;

    std::int64_t begin(int rank) const {
        const std::int64_t least = items / ranks, more = items % ranks;
        return rank * least + (rank < more ? rank : more);
    }
    std::int64_t count(int rank) const { return begin(rank + 1) - begin(rank); }
    int owner(std::int64_t item) const {
        const std::int64_t least = items / ranks, more = items % ranks;
        const std::int64_t in_larger = more * (least + 1);
        return static_cast<int>(item < in_larger ? item / (least + 1) : more + (item - in_larger) / least);
    }
    // The largest block of all.
    std::int64_t largest() const { return (items + ranks - 1) / ranks; }
};

}  // namespace thalweg::apps
