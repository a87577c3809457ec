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

struct HaloRequest {
    Shape shape;
    std::string grid = "auto";             // of ranks: "4x2x1"; auto: as even as can be
    std::vector<std::string> cells{"64"};  // of one rank: "64" in every dimension, or "128x128x16"
    int dims = 3, points = 0;              // points of the stencil; 0: faces only
    bool periodic = false;
    std::vector<std::string> styles;  // only these columns; empty: all
    std::vector<std::string> ours;    // algorithms whose plans are measured besides
    // Settings with which Thalweg's columns are measured once more, in launches of their own.
    std::vector<std::string> settings{"THALWEG_TRANSPORT=shm"};
    bool apart = true;                     // with those launches
    int samples = 30, samples_large = 10;  // large: a limit of large_seconds or more
    std::string out;                       // what is in it is not measured again
    bool force = false;
};

// The grids of a request for so many ranks, one for each of `cells`. False with one sentence in `why`.
bool read_grids(const HaloRequest& request, int ranks, std::vector<HaloGrid>& grids, std::string& why);

// A grid in a result row and in the driver's configuration, and back: {"grid": [2,2,2], "cells": [64,64,64],
// "corners": false, "periodic": false}. Throws where it is malformed.
nlohmann::json to_json(const HaloGrid& grid);
HaloGrid halo_grid(const nlohmann::json& json);

// Measures and prints the tables. The exit status: 0; 1: a launch failed or wrong words were received; 2: the
// request cannot be read.
int run_halo(HaloRequest request);

}  // namespace thalweg::bench
