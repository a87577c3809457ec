// The command line of `thalweg sim`: parsed by the verb, which knows no SimGrid, and again by the program
// that simulates.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "model/halo.h"
#include "sim/halo.h"
#include "sim/machine.h"
#include "sim/pattern.h"

namespace thalweg::sim {

// The cost model's times end there (Level::transfer): what takes as long may take longer.
inline constexpr Picoseconds longest_counted = std::numeric_limits<Picoseconds>::max() / 4;
inline constexpr double longest_seconds = static_cast<double>(longest_counted) * 1e-12;
// What a rank has room for.
inline constexpr std::uint64_t most_rank_bytes = std::uint64_t{1} << 40;

struct Request {
    Collective collective = Collective::bcast;
    bool halo = false;      // the faces of a grid, as an alltoallv
    HaloText grid;          // of halo; its cells are not those below
    std::string app;        // not empty: a whole program, one of app_names()
    double sweep_rate = 0;  // of an app: bytes per second that a rank sweeps; 0: its share of the memory
    std::string pattern;    // of an alltoallv: as apps::make_pattern; empty: between all pairs alike
    bool rma = false;       // of an alltoallv: also through windows, made per call and once per plan
    SimMachine machine;
    bool star = false;  // its hosts joined by one switch that never blocks instead
    std::vector<int> ranks;
    int per_host = 0;
    std::vector<std::uint64_t> bytes;  // or
    std::vector<std::string> cells;    // of halo: of a rank, as HaloText::cells
    std::string mapping;
    std::uint64_t seed = 1;
    // "auto": Thalweg's choice; "mpich", "openmpi": the model of a native default; else a choice's text.
    std::vector<std::string> columns;
    unsigned repeat = 1;
    unsigned samples = 1;
    std::string family;   // the native MPI that auto leaves calls to
    bool libucp = false;  // what carries Thalweg's messages; else that MPI
    std::string table;    // JSON of a tuning table; empty: none
    bool overlap = false, in_turn = false, json = false, cost = false, quiet = false;
    std::string trace_path;
    unsigned most_seconds = 0;
    std::uint64_t most_memory = 0;

    std::size_t sizes() const { return cells.empty() ? bytes.size() : cells.size(); }
    // Of halo: what so many ranks exchange at one of sizes(). One sentence why there is no such grid, or
    // empty.
    std::string read_faces(int count, std::size_t size, Faces& faces) const;
    // The same of a pattern.
    std::string read_pattern(int count, std::size_t size, Pattern& read) const;
};

// Empty: go on with `request`. Else the exit status: 0 after --help or --list-machines, 2 after a mistake,
// which has been told in one line.
std::optional<int> parse_request(int argc, char** argv, Request& request);

}  // namespace thalweg::sim
