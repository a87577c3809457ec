// What rows of applications say: who saved what, how much could have been saved, and how much was hidden.
#pragma once

#include <string>
#include <vector>

#include "bench/results.h"
#include "bench/statistics.h"
#include "common/arithmetic.h"

namespace thalweg::bench {

inline constexpr const char* apps_phase = "apps";
inline constexpr const char* native_side = "native";
inline constexpr const char* again_side = "native (A/A)";
inline constexpr const char* thalweg_side = "thalweg";

// A column is a side and a version: "native/blocking".
std::string app_column(const std::string& side, const std::string& version);

// One application on one shape under one MPI: the rounds with the newest parameters.
struct AppLine {
    std::string app, mpi, shape, rate;
    nlohmann::json parameters;
    std::vector<apps::Series> native, again, ours;  // by version
    int rounds = 0;
    std::uint64_t wrong = 0;  // versions with a wrong result
};
std::vector<AppLine> summarize_apps(const std::vector<Row>& rows);

// Figures of one line; zero where a version was not measured.
struct AppFigures {
    double native_blocking = 0, ours_nonblocking = 0;  // seconds, medians
    double noise = 0;                                  // A/A: ratio of the medians of the blocking versions
    double saved = 0;    // part of native_blocking that Thalweg's nonblocking version does not take
    double ceiling = 0;  // part of native_blocking that overlap alone could save
    double native_hidden = 0, ours_hidden = 0;  // parts of what could be hidden
    double ours_hideable = 0;                   // seconds
    std::string best_manual;                    // the fastest version with manual progress, of both sides
    Ratio against_manual;                       // Thalweg nonblocking / that
    Ratio against_blocking;                     // Thalweg nonblocking / native blocking
};
AppFigures figures(const AppLine& line);

// Each version that was measured on both sides: Thalweg's total over native's.
struct VersionRatio {
    std::string version;
    Ratio ratio;
};
std::vector<VersionRatio> version_ratios(const AppLine& line);

// "radix sort".
std::string app_name(const std::string& app);

// The target for the hidden part of what could be hidden.
constexpr double hidden_target = 0.90;

// Every version on both sides; and one line per application with the arithmetic. Empty where there are no
// rows.
std::string format_app_versions(const std::vector<AppLine>& lines, bool markdown);
std::string format_app_figures(const std::vector<AppLine>& lines, bool markdown);

// The section of docs/measurements.md; empty where there are no rows. provenance: where these rows come from.
std::string apps_section(const std::vector<Row>& rows, const std::string& provenance);

}  // namespace thalweg::bench
