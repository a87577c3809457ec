// One rank's cells of a halo exchange: what is sent, what is poisoned before a call, and what must be there
// after it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/halo.h"

namespace thalweg::bench {

class HaloMemory {
  public:
    // host_of: by rank. Throws std::bad_alloc.
    HaloMemory(const HaloGrid& grid, int rank, const std::vector<int>& host_of);

    // New cells along the faces, poison in the halo. The values are those of no other seed, rank or place.
    void fill(std::uint64_t seed);
    // Cells that are not as they must be after an exchange of what fill(seed) made: those of the halo that
    // were to arrive, and those that were sent.
    std::uint64_t count_wrong(std::uint64_t seed) const;
    // Of the other cells, those that are not as reset() made them: cells inside, corners that nobody sends
    // and what lies beyond a border. Takes as long as copying the array. What is wrong once stays so.
    std::uint64_t count_wrong_elsewhere() const;
    std::uint64_t count_wrong_anywhere(std::uint64_t seed) const {
        return count_wrong(seed) + count_wrong_elsewhere();
    }
    // Everything anew, after damage.
    void reset();

    const HaloGrid& grid() const { return grid_; }
    const HaloPart& part() const { return part_; }
    int rank() const { return rank_; }
    bool is_near(int peer) const { return near_[static_cast<std::size_t>(peer)] != 0; }
    std::uint64_t* cells() { return cells_.data(); }
    std::size_t bytes() const { return cells_.size() * sizeof cells_[0]; }

    // Copies a box out of the array or into it, one run of cells after the other.
    void pack(const HaloBox& box, std::uint64_t* to) const;
    void unpack(const HaloBox& box, const std::uint64_t* from);

  private:
    std::size_t place(int x, int y, int z, int t) const;
    template <typename Visit>
    void each_run(const HaloBox& box, Visit visit) const;
    std::uint64_t value(std::uint64_t seed, int rank, std::size_t place) const;
    void expect(std::vector<std::uint64_t>& cells, std::uint64_t seed) const;

    HaloGrid grid_;
    int rank_;
    HaloPart part_;
    std::vector<char> near_;                                     // by rank: on this rank's host
    std::vector<HaloBox> origins_;                               // of incoming messages: the sender's cells
    std::array<int, most_halo_dimensions> extents_{1, 1, 1, 1};  // with the halo
    std::vector<std::uint64_t> cells_;
};

}  // namespace thalweg::bench
