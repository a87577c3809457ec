// Who exchanges what with whom: the grids that `thalweg sim halo` is asked about, and patterns of alltoallv.
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "common/patterns.h"
#include "model/halo.h"
#include "sim/request.h"

namespace thalweg::sim {

std::string Request::read_faces(int count, std::size_t size, Faces& faces) const {
    HaloText text = grid;
    if (!cells.empty()) text.cells = cells[size];
    // One number is for every dimension.
    const std::size_t given = parse_extents(text.cells).size();
    if (const std::size_t extents = parse_extents(text.ranks).size(); extents > 0)
        text.dimensions = static_cast<int>(extents);
    else if (given > 1 && text.ranks == "auto")
        text.dimensions = static_cast<int>(given);
    if (text.dimensions > most_halo_dimensions)
        return (text.ranks == "auto" ? "--cells " + text.cells : "--grid " + text.ranks) +
               ": a grid has 1 to " + std::to_string(most_halo_dimensions) + " dimensions";
    if (cells.empty() && text.ranks == "auto") {
        faces = Faces::alike(grid_of(count), bytes[size]);
        return {};
    }
    HaloGrid read;
    if (const std::string why = read_grid(text, count, read); !why.empty()) return why;
    if (!cells.empty()) {
        faces = Faces::of_cells(std::move(read));
        return {};
    }
    constexpr std::size_t alike_dimensions = 3;
    if (read.ranks.size() > alike_dimensions)
        return "--grid " + text.ranks + ": faces of --bytes are of three dimensions, give --cells";
    read.ranks.resize(alike_dimensions, 1);
    faces = Faces::alike({read.ranks[0], read.ranks[1], read.ranks[2]}, bytes[size]);
    return {};
}

std::string Request::read_pattern(int count, std::size_t size, Pattern& read) const {
    if (count > most_ranks_of_pattern)
        return "--pattern " + pattern + ": of up to " + std::to_string(most_ranks_of_pattern) +
               " ranks, because what each pair exchanges is in memory";
    std::string why;
    read.ranks = count;
    if (!apps::make_pattern(pattern, count, bytes[size], read.matrix, why)) return "--pattern: " + why;
    why = refuse(read, most_rank_bytes);
    return why.empty() ? why
                       : "--bytes " + bytes_text(bytes[size]) + " with --pattern " + pattern + ": " + why;
}

}  // namespace thalweg::sim
