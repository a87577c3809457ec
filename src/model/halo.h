// A halo exchange before anything is made: which cells travel between which ranks, which bytes stay inside
// hosts and which leave them, and what wire, copies and cores need for that at least.
//
// A grid of ranks in row-major order (as MPI_Cart_create makes it without reordering), each of which holds
// equally many cells with a halo one cell wide around them; the last dimension lies contiguously.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg {

inline constexpr int most_halo_dimensions = 4;

struct HaloGrid {
    std::vector<int> ranks;  // per dimension
    std::vector<int> cells;  // of one rank, per dimension, without the halo
    bool corners = false;    // exchanged with all 3^d - 1 neighbours (27 points), else with 2 d (7 points)
    bool periodic = false;   // goes round in every dimension
    bool upwind = false;     // only what goes up in some dimension and down in none: half of the neighbours
    std::uint64_t cell_bytes = 8;

    int dimensions() const { return static_cast<int>(ranks.size()); }
    int size() const;          // ranks
    int points() const;        // of the stencil: 7, 27; in four dimensions 9, 81; upwind 4, 8, 5, 16
    std::string text() const;  // "4x4x2 ranks of 64x64x64 cells, 7 points"
    bool operator==(const HaloGrid&) const = default;
};

// One sentence why these numbers are no grid, or empty. Pre: nothing.
std::string refuse(const HaloGrid& grid);

// A grid as a command line gives it.
struct HaloText {
    std::string ranks = "auto";      // "4x2x1"; auto: as even as can be
    std::string cells = "64";        // of one rank: "64" in every dimension, or "128x128x16"
    int dimensions = 3, points = 0;  // points of the stencil; 0: faces only
    bool periodic = false, upwind = false;
};

// The grid for so many ranks. One sentence that names the option why there is none, or empty.
std::string read_grid(const HaloText& text, int ranks, HaloGrid& grid);

// A stretch of a rank's array, whose first cell is that of the halo. Dimensions that the grid lacks are 1
// wide.
struct HaloBox {
    std::array<int, most_halo_dimensions> begin{}, count{1, 1, 1, 1};
    std::uint64_t cells() const;
    bool operator==(const HaloBox&) const = default;
};

struct HaloMessage {
    int peer = 0;       // the other rank; may be this one
    int direction = 0;  // in which it travels, the same number at both ends: what tells two of a pair apart
    HaloBox box;        // of this rank's array: cells to send, or the part of the halo where they arrive
    std::uint64_t bytes = 0;
    bool strided = false;  // does not lie in one piece
};

// The k-th message to a peer meets the k-th that the peer has from this rank.
struct HaloPart {
    std::vector<HaloMessage> outgoing, incoming;
};
// Pre: refuse(grid) is empty. O(messages).
HaloPart halo_part(const HaloGrid& grid, int rank);

// Bytes of one exchange. Self-messages stay inside a host.
struct HaloBytes {
    std::uint64_t link = 0;         // that leave or enter the busiest host, the larger of both
    std::uint64_t wire = 0;         // that leave any host
    std::uint64_t inside = 0;       // that stay inside hosts, all hosts
    std::uint64_t packed = 0;       // strided ones between hosts, once at either end, all hosts
    std::uint64_t host_copied = 0;  // inside and packed of the host with the most of them
    std::uint64_t host_wire = 0;    // that leave and enter the host with the most of them
    std::uint64_t largest = 0;      // of one message
    // Of one rank, the least and the most of any: that stay inside its host, that leave it.
    std::uint64_t least_inside = 0, most_inside = 0, least_outside = 0, most_outside = 0;
};
// host_of: by rank. O(all messages).
HaloBytes halo_bytes(const HaloGrid& grid, std::span<const int> host_of);

// What a machine does per second, measured or assumed.
struct HaloRates {
    double wire_bytes_per_s = 0;  // of one link, one direction; 0: there is none
    double wire_latency_s = 0;
    double free_bytes = 0;           // that cross a link at once, out of the shaper's bucket
    double copied_bytes_per_s = 0;   // by all that copy at the same time, together
    double wire_cpu_s_per_byte = 0;  // that the kernel takes, both ends together; 0: hardware does it
    int copiers = 1, cores = 1;
};

struct HaloLimits {
    double wire_s = 0;    // the busiest link
    double copies_s = 0;  // inside hosts, and packing what is strided and leaves them
    double cpu_s = 0;     // those copies and the kernel's work for the wire, over all cores
    double largest() const;
};

// copied: bytes that are copied, wire: that cross, both by what shares these cores; link: the busiest link's.
HaloLimits halo_limits(std::uint64_t link, std::uint64_t wire, std::uint64_t copied, const HaloRates& rates);

// What takes longest: "wire", "copies", or "balanced" where neither takes balanced_within times the other.
// Copies are what takes longer of copies and cores.
inline constexpr double balanced_within = 1.5;
std::string_view mix_of(const HaloLimits& limits);

// Ranks shared out over `dimensions` as evenly as they can be, most first; as MPI_Dims_create does.
std::vector<int> even_grid(int ranks, int dimensions);

// "4x4x2"; empty where it is none: every number is at least 1.
std::vector<int> parse_extents(std::string_view text);
std::string extents_text(std::span<const int> extents);

}  // namespace thalweg
