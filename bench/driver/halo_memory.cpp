#include "driver/halo_memory.h"

#include <algorithm>
#include <cstring>

#include "driver/pattern.h"

namespace thalweg::bench {
namespace {

constexpr std::uint64_t poison = 0xa5a5a5a5a5a5a5a5u;
constexpr std::uint64_t inside_seed = 0;  // calls count from 1

}  // namespace

HaloMemory::HaloMemory(const HaloGrid& grid, int rank, const std::vector<int>& host_of)
    : grid_(grid), rank_(rank), part_(halo_part(grid, rank)) {
    for (const int host : host_of) near_.push_back(host == host_of[static_cast<std::size_t>(rank)]);
    std::size_t all = 1;
    for (std::size_t d = 0; d < grid_.cells.size(); ++d) {
        extents_[d] = grid_.cells[d] + 2;
        all *= static_cast<std::size_t>(extents_[d]);
    }
    // What arrives in the halo lay at the opposite side of the sender's cells.
    for (const HaloMessage& message : part_.incoming) {
        HaloBox origin = message.box;
        for (std::size_t d = 0; d < grid_.cells.size(); ++d) {
            if (origin.begin[d] == 0) origin.begin[d] = grid_.cells[d];
            if (origin.begin[d] == grid_.cells[d] + 1) origin.begin[d] = 1;
        }
        origins_.push_back(origin);
    }
    cells_.resize(all);
    reset();
}

std::size_t HaloMemory::place(int x, int y, int z, int t) const {
    return ((static_cast<std::size_t>(x) * static_cast<std::size_t>(extents_[1]) +
             static_cast<std::size_t>(y)) *
                static_cast<std::size_t>(extents_[2]) +
            static_cast<std::size_t>(z)) *
               static_cast<std::size_t>(extents_[3]) +
           static_cast<std::size_t>(t);
}

// visit(place of the first cell, cells) for every run of cells that lie one behind the other.
template <typename Visit>
void HaloMemory::each_run(const HaloBox& box, Visit visit) const {
    // The dimension that lies contiguously is the grid's last one; those behind it are 1 wide.
    HaloBox outer = box;
    const std::size_t last = grid_.cells.size() - 1;
    const auto run = static_cast<std::size_t>(box.count[last]);
    outer.count[last] = 1;
    const auto& [b, c] = outer;
    for (int x = b[0]; x < b[0] + c[0]; ++x)
        for (int y = b[1]; y < b[1] + c[1]; ++y)
            for (int z = b[2]; z < b[2] + c[2]; ++z)
                for (int t = b[3]; t < b[3] + c[3]; ++t) visit(place(x, y, z, t), run);
}

std::uint64_t HaloMemory::value(std::uint64_t seed, int rank, std::size_t place) const {
    return pattern_word(seed * static_cast<std::uint64_t>(grid_.size()) + static_cast<std::uint64_t>(rank),
                        place);
}

void HaloMemory::reset() {
    std::fill(cells_.begin(), cells_.end(), poison);
    HaloBox inner;
    for (std::size_t d = 0; d < grid_.cells.size(); ++d) {
        inner.begin[d] = 1;
        inner.count[d] = grid_.cells[d];
    }
    each_run(inner, [this](std::size_t at, std::size_t run) {
        for (std::size_t i = at; i < at + run; ++i) cells_[i] = value(inside_seed, rank_, i);
    });
}

void HaloMemory::fill(std::uint64_t seed) {
    for (const HaloMessage& message : part_.incoming)
        each_run(message.box, [this](std::size_t at, std::size_t run) {
            std::fill_n(cells_.begin() + static_cast<std::ptrdiff_t>(at), run, poison);
        });
    for (const HaloMessage& message : part_.outgoing)
        each_run(message.box, [this, seed](std::size_t at, std::size_t run) {
            for (std::size_t i = at; i < at + run; ++i) cells_[i] = value(seed, rank_, i);
        });
}

std::uint64_t HaloMemory::count_wrong(std::uint64_t seed) const {
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < part_.incoming.size(); ++i) {
        const HaloMessage& message = part_.incoming[i];
        // Sender's and receiver's runs are alike; they begin at a constant distance.
        std::vector<std::size_t> origins;
        each_run(origins_[i], [&origins](std::size_t at, std::size_t) { origins.push_back(at); });
        std::size_t next = 0;
        each_run(message.box, [&](std::size_t at, std::size_t run) {
            const std::size_t origin = origins[next++];
            for (std::size_t k = 0; k < run; ++k)
                wrong += cells_[at + k] != value(seed, message.peer, origin + k);
        });
    }
    for (const HaloMessage& message : part_.outgoing)
        each_run(message.box, [&](std::size_t at, std::size_t run) {
            for (std::size_t k = at; k < at + run; ++k) wrong += cells_[k] != value(seed, rank_, k);
        });
    return wrong;
}

std::uint64_t HaloMemory::count_wrong_elsewhere() const {
    HaloMemory wanted(*this);
    wanted.reset();
    std::uint64_t wrong = 0;
    // Of what arrives and of what is sent count_wrong() tells.
    for (const HaloMessage& message : part_.incoming)
        each_run(message.box, [&](std::size_t at, std::size_t run) {
            std::copy_n(cells_.begin() + static_cast<std::ptrdiff_t>(at), run,
                        wanted.cells_.begin() + static_cast<std::ptrdiff_t>(at));
        });
    for (const HaloMessage& message : part_.outgoing)
        each_run(message.box, [&](std::size_t at, std::size_t run) {
            std::copy_n(cells_.begin() + static_cast<std::ptrdiff_t>(at), run,
                        wanted.cells_.begin() + static_cast<std::ptrdiff_t>(at));
        });
    for (std::size_t i = 0; i < cells_.size(); ++i) wrong += cells_[i] != wanted.cells_[i];
    return wrong;
}

void HaloMemory::pack(const HaloBox& box, std::uint64_t* to) const {
    each_run(box, [this, &to](std::size_t at, std::size_t run) {
        std::memcpy(to, cells_.data() + at, run * sizeof *to);
        to += run;
    });
}

void HaloMemory::unpack(const HaloBox& box, const std::uint64_t* from) {
    each_run(box, [this, &from](std::size_t at, std::size_t run) {
        std::memcpy(cells_.data() + at, from, run * sizeof *from);
        from += run;
    });
}

}  // namespace thalweg::bench
