// What one launch of the driver measures, read from a JSON file that the bench verb writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver/native_controls.h"

namespace thalweg::bench {

// How a column of a nonblocking collective is called (driver/overlap.h).
enum class CallWay : unsigned char {
    nonblocking,  // start, compute, wait
    tested,       // the same, with MPI_Test calls between pieces of the computation
    blocking,     // the blocking collective, then compute
    sockets,      // the same bytes by plain sockets in sleeping threads
    nothing,      // compute only
    alone,        // the blocking collective, never with computation
};

struct Column {
    std::string name;               // unique within the launch
    bool native = true;             // past every interposer; else through Thalweg with `option` set
    std::vector<Control> controls;  // native only
    std::string option;             // THALWEG_<OP>: "auto", "chain:chunk_bytes=64K", …; ours only
    bool always = true;             // never dropped from a race
    CallWay way = CallWay::nonblocking;
    std::string variant;  // of alltoallv and halo: a name of driver/exchange_ways.h, driver/halo_ways.h
    std::string inside;   // of halo, ours: THALWEG_INSIDE; empty: as the launch has it
};

struct Point {
    std::size_t bytes = 0;
    int samples = 5;
    int back_to_back = 4;              // calls without a barrier per sample; 0: not measured
    std::vector<std::size_t> columns;  // indices into Config::columns
    bool race = false;                 // columns stop as bench/race.h says
    double best_seconds = 0;           // the best median of earlier launches; 0: none
    std::size_t warm_up_bytes = 0;  // at most, of the calls that are not timed: before the first sample and
                                    // after a change of our setting; 0: `bytes`
    int small_calls = 0;            // per column; not 0: measured as driver/small.h says
    // Of alltoallv: bytes from rank i to rank j at i * ranks + j, and what the matrix is called.
    std::vector<std::uint64_t> matrix;
    std::string pattern;
    nlohmann::json halo;  // of a halo exchange: the grid, as bench/halo.h says
};

struct Config {
    std::string collective;
    std::string phase;  // of halo: what is measured, as bench/halo.h says
    int root = 0;
    std::vector<Column> columns;
    std::vector<Point> points;
    double warm_up_calls = 2;
    // Of a nonblocking collective: kinds of computation (driver/compute.h). The first one overlaps.
    std::vector<std::string> computes;
};

// Whether columns of ours at this point are told to choose differently, so that their choice changes between
// calls: the next call of ours decides anew, which is not timed, and what is timed comes right behind it.
// Of short calls that is much (decision 108), and no other column may go without.
bool choices_change(const Config& config, const Point& point);

// False with one sentence in `why`.
bool read_config(const char* path, Config& config, std::string& why);

}  // namespace thalweg::bench
