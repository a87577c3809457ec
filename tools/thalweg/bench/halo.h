// One run of `thalweg bench halo`: a halo exchange by every way there is, beside what wire, copies and cores
// need. bench/driver/halo.h says how it is measured.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/launch.h"
#include "model/halo.h"

namespace thalweg::bench {

inline constexpr const char* halo_phase = "halo";
inline constexpr const char* halo_pairs_phase = "halo_pairs";        // halo_pairs.h
inline constexpr const char* halo_changing_phase = "halo_changing";  // halo_pairs.h
inline constexpr const char* halo_overlap_phase = "halo_overlap";    // halo_overlap.h

struct HaloRequest {
    Shape shape;
    std::string grid = "auto";             // of ranks: "4x2x1"; auto: as even as can be
    std::vector<std::string> cells{"64"};  // of one rank: "64" in every dimension, or "128x128x16"
    int dims = 3, points = 0;              // points of the stencil; 0: faces only
    bool periodic = false, upwind = false;
    std::vector<std::string> styles;  // only these columns; empty: all
    std::vector<std::string> ours;    // algorithms whose plans are measured besides
    // Settings with which Thalweg's columns are measured once more, in launches of their own.
    std::vector<std::string> settings{"THALWEG_TRANSPORT=shm"};
    bool apart = true;                     // with those launches
    int samples = 30, samples_large = 10;  // large: a limit of large_seconds or more
    std::string out;                       // what is in it is not measured again
    bool again = false;  // but for what is undecided there, of halo_phase, with three times the samples
    bool force = false;
    // What is measured: halo_phase, or one of the others.
    std::string phase = halo_phase;
    int rounds = 3;  // of pairs and changes: launches of each environment in turn share the samples
    int calls = 12;  // of changes: in each phase of the run
    double late_seconds = 5e-3;     // of changes: by which a rank comes late in its phase
    std::string compute = "sleep";  // of overlap: as `thalweg bench iallgather --compute`
};

// The phases of a run whose mix changes, for the driver: {"phases": [{"name", "calls", a grid, …}]}. Grids
// and cells are such that now copies take longest, now the wire, and neither where a rank is late or a link
// slow; once they go one way only, so that of two ranks one has nothing to copy but what the other gets.
nlohmann::json changing_run(const Shape& shape, int calls, double late_seconds);

// The grids of a request for so many ranks, one for each of `cells`. False with one sentence in `why`.
bool read_grids(const HaloRequest& request, int ranks, std::vector<HaloGrid>& grids, std::string& why);

// A grid in a result row and in the driver's configuration, and back: {"grid": [2,2,2], "cells": [64,64,64],
// "corners": false, "periodic": false, "upwind": false}. Throws where it is malformed.
nlohmann::json to_json(const HaloGrid& grid);
HaloGrid halo_grid(const nlohmann::json& json);

// Measures and prints the tables. The exit status: 0; 1: a launch failed or wrong words were received; 2: the
// request cannot be read.
int run_halo(HaloRequest request);

}  // namespace thalweg::bench
