#include "model/halo.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace thalweg {
namespace {

using Offsets = std::array<int, most_halo_dimensions>;

// Directions in the order of their numbers: -1, 0, 1 in each dimension, the last one fastest.
int directions(int dimensions) {
    int all = 1;
    for (int d = 0; d < dimensions; ++d) all *= 3;
    return all;
}

Offsets offsets_of(int direction, int dimensions) {
    Offsets offsets{};
    for (int d = dimensions - 1; d >= 0; --d) {
        offsets[static_cast<std::size_t>(d)] = direction % 3 - 1;
        direction /= 3;
    }
    return offsets;
}

bool exchanged(const Offsets& offsets, const HaloGrid& grid) {
    const auto moves =
        offsets.size() - static_cast<std::size_t>(std::count(offsets.begin(), offsets.end(), 0));
    if (grid.upwind && std::count(offsets.begin(), offsets.end(), -1) != 0) return false;
    return moves == 1 || (grid.corners && moves > 1);
}

// -1: beyond a border.
int neighbour(const HaloGrid& grid, int rank, const Offsets& offsets, int sign) {
    int found = 0, stride = 1;
    for (int d = grid.dimensions() - 1; d >= 0; --d) {
        const auto at = static_cast<std::size_t>(d);
        const int count = grid.ranks[at];
        int coordinate = rank % count + sign * offsets[at];
        rank /= count;
        if (coordinate < 0 || coordinate >= count) {
            if (!grid.periodic) return -1;
            coordinate = (coordinate + count) % count;
        }
        found += coordinate * stride;
        stride *= count;
    }
    return found;
}

// What travels in this direction: the outermost cells of the sender, or the receiver's halo on the side that
// they come from.
HaloBox box_of(const HaloGrid& grid, const Offsets& offsets, bool halo) {
    HaloBox box;
    for (std::size_t d = 0; d < grid.cells.size(); ++d) {
        const int count = grid.cells[d];
        box.begin[d] = 1;
        box.count[d] = offsets[d] == 0 ? count : 1;
        if (offsets[d] == 0) continue;
        box.begin[d] = offsets[d] > 0 ? (halo ? 0 : count) : (halo ? count + 1 : 1);
    }
    return box;
}

bool is_strided(const HaloGrid& grid, const HaloBox& box) {
    // One piece: everything after the first dimension that is wider than a cell is there from end to end,
    // which the halo around the cells prevents.
    for (std::size_t d = 0; d + 1 < grid.cells.size(); ++d)
        if (box.count[d] > 1) return true;
    return false;
}

}  // namespace

int HaloGrid::size() const { return std::accumulate(ranks.begin(), ranks.end(), 1, std::multiplies<int>()); }

int HaloGrid::points() const {
    if (upwind) return corners ? 1 << dimensions() : dimensions() + 1;
    return corners ? directions(dimensions()) : 2 * dimensions() + 1;
}

std::string HaloGrid::text() const {
    return extents_text(ranks) + " ranks of " + extents_text(cells) + " cells, " + std::to_string(points()) +
           " points" + (upwind ? ", upwind" : "") + (periodic ? ", periodic" : "");
}

std::string refuse(const HaloGrid& grid) {
    if (grid.ranks.empty() || grid.dimensions() > most_halo_dimensions)
        return "a grid has 1 to " + std::to_string(most_halo_dimensions) + " dimensions";
    if (grid.cells.size() != grid.ranks.size())
        return "the cells have " + std::to_string(grid.cells.size()) + " dimensions and the ranks " +
               std::to_string(grid.ranks.size());
    std::int64_t ranks = 1, cells = static_cast<std::int64_t>(grid.cell_bytes);
    constexpr std::int64_t most_ranks = 1 << 22, most_bytes = std::int64_t{1} << 40;
    for (std::size_t d = 0; d < grid.ranks.size(); ++d) {
        if (grid.ranks[d] < 1 || grid.cells[d] < 1) return "every dimension has a rank and a cell at least";
        ranks *= grid.ranks[d];
        if (ranks > most_ranks) return "there are more than " + std::to_string(most_ranks) + " ranks";
        const std::int64_t side = std::int64_t{grid.cells[d]} + 2;
        if (cells > most_bytes / side) return "a rank's cells take more than a terabyte";
        cells *= side;
    }
    return "";
}

std::string read_grid(const HaloText& text, int ranks, HaloGrid& grid) {
    if (text.dimensions < 1 || text.dimensions > most_halo_dimensions)
        return "--dims " + std::to_string(text.dimensions) + ": give 1 to " +
               std::to_string(most_halo_dimensions);
    HaloGrid read;
    read.ranks = text.ranks == "auto" ? even_grid(ranks, text.dimensions) : parse_extents(text.ranks);
    read.periodic = text.periodic;
    read.upwind = text.upwind;
    if (read.dimensions() != text.dimensions)
        return "--grid " + text.ranks + ": give " + std::to_string(text.dimensions) + " numbers like " +
               extents_text(even_grid(ranks, text.dimensions)) + ", or auto";
    // Before they are multiplied.
    HaloGrid counted = read;
    counted.cells.assign(read.ranks.size(), 1);
    if (const std::string why = refuse(counted); !why.empty()) return "--grid " + text.ranks + ": " + why;
    if (read.size() != ranks)
        return "--grid " + text.ranks + " has " + std::to_string(read.size()) + " ranks, there are " +
               std::to_string(ranks);
    const int faces = read.points();
    read.corners = true;
    const int all = read.points();
    if (text.points != 0 && text.points != faces && text.points != all)
        return "--points " + std::to_string(text.points) + ": " + (text.upwind ? "upwind " : "") + "in " +
               std::to_string(text.dimensions) + " dimensions there are " + std::to_string(faces) + " and " +
               std::to_string(all);
    read.corners = text.points == all && all != faces;
    read.cells = parse_extents(text.cells);
    if (read.cells.size() == 1) read.cells.resize(read.ranks.size(), read.cells[0]);
    const std::string refused = read.cells.empty() ? "give numbers like 64 or 128x128x16" : refuse(read);
    if (!refused.empty()) return "--cells " + text.cells + ": " + refused;
    grid = std::move(read);
    return "";
}

std::uint64_t HaloBox::cells() const {
    std::uint64_t all = 1;
    for (const int each : count) all *= static_cast<std::uint64_t>(each);
    return all;
}

HaloPart halo_part(const HaloGrid& grid, int rank) {
    HaloPart part;
    const auto add = [&grid](std::vector<HaloMessage>& list, int peer, int direction, const HaloBox& box) {
        if (peer < 0) return;
        list.push_back({peer, direction, box, box.cells() * grid.cell_bytes, is_strided(grid, box)});
    };
    for (int direction = 0; direction < directions(grid.dimensions()); ++direction) {
        const Offsets offsets = offsets_of(direction, grid.dimensions());
        if (!exchanged(offsets, grid)) continue;
        add(part.outgoing, neighbour(grid, rank, offsets, 1), direction, box_of(grid, offsets, false));
        add(part.incoming, neighbour(grid, rank, offsets, -1), direction, box_of(grid, offsets, true));
    }
    return part;
}

HaloBytes halo_bytes(const HaloGrid& grid, std::span<const int> host_of) {
    HaloBytes all;
    const int hosts = host_of.empty() ? 0 : *std::max_element(host_of.begin(), host_of.end()) + 1;
    struct Host {
        std::uint64_t leaves = 0, enters = 0, copied = 0;
    };
    std::vector<Host> of(static_cast<std::size_t>(hosts));
    all.least_inside = all.least_outside = std::numeric_limits<std::uint64_t>::max();
    for (int rank = 0; rank < grid.size(); ++rank) {
        const int here = host_of[static_cast<std::size_t>(rank)];
        std::uint64_t inside = 0, outside = 0;
        for (const HaloMessage& message : halo_part(grid, rank).outgoing) {
            const int there = host_of[static_cast<std::size_t>(message.peer)];
            Host &from = of[static_cast<std::size_t>(here)], &to = of[static_cast<std::size_t>(there)];
            all.largest = std::max(all.largest, message.bytes);
            if (here == there) {
                inside += message.bytes;
                from.copied += message.bytes;
                continue;
            }
            outside += message.bytes;
            from.leaves += message.bytes;
            to.enters += message.bytes;
            if (!message.strided) continue;
            // Its halo is as strided as what is sent.
            all.packed += 2 * message.bytes;
            from.copied += message.bytes;
            to.copied += message.bytes;
        }
        all.inside += inside;
        all.wire += outside;
        all.least_inside = std::min(all.least_inside, inside);
        all.most_inside = std::max(all.most_inside, inside);
        all.least_outside = std::min(all.least_outside, outside);
        all.most_outside = std::max(all.most_outside, outside);
    }
    for (const Host& host : of) {
        all.link = std::max({all.link, host.leaves, host.enters});
        all.host_wire = std::max(all.host_wire, host.leaves + host.enters);
        all.host_copied = std::max(all.host_copied, host.copied);
    }
    return all;
}

double HaloLimits::largest() const { return std::max({wire_s, copies_s, cpu_s}); }

HaloLimits halo_limits(std::uint64_t link, std::uint64_t wire, std::uint64_t copied, const HaloRates& rates) {
    HaloLimits limits;
    if (link > 0 && rates.wire_bytes_per_s > 0)
        limits.wire_s = std::max(0.0, static_cast<double>(link) - rates.free_bytes) / rates.wire_bytes_per_s +
                        rates.wire_latency_s;
    if (rates.copied_bytes_per_s > 0)
        limits.copies_s = static_cast<double>(copied) / rates.copied_bytes_per_s;
    // While they copy, that many cores are taken.
    const double core_s = limits.copies_s * std::min(rates.copiers, rates.cores) +
                          static_cast<double>(wire) * rates.wire_cpu_s_per_byte;
    limits.cpu_s = core_s / rates.cores;
    return limits;
}

std::string_view mix_of(const HaloLimits& limits) {
    const double copies = std::max(limits.copies_s, limits.cpu_s);
    if (limits.wire_s > 0 && limits.wire_s >= balanced_within * copies) return "wire";
    return copies > 0 && copies >= balanced_within * limits.wire_s ? "copies" : "balanced";
}

std::vector<int> even_grid(int ranks, int dimensions) {
    std::vector<int> grid(static_cast<std::size_t>(dimensions), 1);
    // The largest prime first, each to the dimension that has least.
    std::vector<int> primes;
    for (int prime = 2, rest = ranks; rest > 1; ++prime)
        for (; rest % prime == 0; rest /= prime) primes.push_back(prime);
    for (auto prime = primes.rbegin(); prime != primes.rend(); ++prime)
        *std::min_element(grid.begin(), grid.end()) *= *prime;
    std::sort(grid.rbegin(), grid.rend());
    return grid;
}

std::vector<int> parse_extents(std::string_view text) {
    std::vector<int> extents;
    while (true) {
        int value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || value < 1) return {};
        extents.push_back(value);
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        if (text.empty()) return extents;
        if (text.front() != 'x') return {};
        text.remove_prefix(1);
    }
}

std::string extents_text(std::span<const int> extents) {
    std::string text;
    for (const int each : extents) text += (text.empty() ? "" : "x") + std::to_string(each);
    return text;
}

}  // namespace thalweg
