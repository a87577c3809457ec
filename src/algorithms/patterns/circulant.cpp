#include "algorithms/patterns/circulant.h"

#include <cstddef>

namespace thalweg::patterns {
namespace {

using Index = int;

// The search behind a receive schedule. A *path* is a set of skips that sums to a distance; the block a rank
// receives in a round is named by the smallest skip of the path that brought it. For k = 0, 1, … the search
// looks for a path to a distance in [ target - skip[k+1], target - skip[k] ] whose smallest skip no earlier k
// has used, trying larger skips first, which makes it depth first with O(log p) steps in all.
class PathSearch {
  public:
    PathSearch(int v, Index own, const std::vector<int>& skip)
        : skip_(skip),
          q_(static_cast<int>(skip.size()) - 1),
          target_(skip.back() + v),
          bound_(2 * skip.back()) {
        smaller_.resize(skip.size());
        larger_.resize(skip.size());
        found_.resize(static_cast<std::size_t>(q_));
        for (Index e = 0; e <= q_; ++e) smaller_[e] = e - 1, larger_[e] = e + 1;
        first_ = q_;
        drop(own);
        extend(0, first_);
    }

    const std::vector<Index>& found() const { return found_; }

  private:
    void drop(Index e) {
        if (e == first_)
            first_ = smaller_[e];
        else
            smaller_[larger_[e]] = smaller_[e];
        if (smaller_[e] >= 0) larger_[smaller_[e]] = larger_[e];
    }

    // `reached` is the sum of the path so far; e the largest skip it may go on with.
    void extend(int reached, Index e) {
        for (; e >= 0 && k_ < q_; e = smaller_[e]) {
            const int next = reached + skip_[e];
            if (next > target_ - skip_[k_] || next >= bound_) continue;
            if (next <= target_ - skip_[k_ + 1]) extend(next, e);
            if (k_ >= q_ || reached > target_ - skip_[k_ + 1]) return;
            bound_ = next;
            found_[k_++] = e;
            drop(e);
        }
    }

    const std::vector<int>& skip_;
    const int q_;
    const int target_;
    int bound_;  // paths end at ever smaller distances
    int k_ = 0;
    Index first_;
    std::vector<Index> smaller_, larger_;  // the unused skips, linked by size
    std::vector<Index> found_;
};

}  // namespace

std::vector<int> circulant_skips(int p) {
    int q = 0;
    for (int n = p; n > 1; n = (n + 1) / 2) ++q;
    std::vector<int> skip(static_cast<std::size_t>(q) + 1);
    for (int k = q, n = p; k >= 0; --k, n = (n + 1) / 2) skip[static_cast<std::size_t>(k)] = n;
    return skip;
}

std::vector<int> circulant_receives(int v, const std::vector<int>& skip) {
    const int q = static_cast<int>(skip.size()) - 1;
    // The block of this phase that v gets is named by the smallest skip of the greedy path from the root.
    Index own = q;
    for (int k = q - 1, rest = v; k >= 0 && rest > 0; --k)
        if (skip[static_cast<std::size_t>(k)] <= rest) rest -= skip[static_cast<std::size_t>(k)], own = k;
    std::vector<int> block = PathSearch(v, own, skip).found();
    for (int& b : block) b = b == q ? own : b - q;
    return block;
}

std::vector<int> circulant_sends(int v, const std::vector<int>& skip) {
    const std::size_t q = skip.size() - 1;
    const int p = skip.back();
    std::vector<int> block(q);
    for (std::size_t k = 0; k < q; ++k) {
        const int to = (v + skip[k]) % p;
        block[k] = v == 0 ? static_cast<int>(k) : to == 0 ? -1 : circulant_receives(to, skip)[k];
    }
    return block;
}

}  // namespace thalweg::patterns
