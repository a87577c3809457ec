// What the rows of phase "halo" say: each way beside the limits, beside the native call, and beside the same
// messages without overlap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/halo.h"
#include "bench/results.h"
#include "bench/statistics.h"
#include "model/halo.h"

namespace thalweg::bench {

// One column of one point.
struct HaloLine {
    std::string mpi, shape, rate, column;
    HaloGrid grid;
    std::uint64_t samples = 0, late_samples = 0, wrong_words = 0;
    std::string ran;      // of ours: what it ran, or "native" with the reason
    std::string stopped;  // why there is nothing else
    double seconds = 0;   // the median call
    double make_seconds = 0;
    HaloLimits limits;
    double link_bytes = 0, inside_bytes = 0, packed_bytes = 0, largest_bytes = 0, copied_bytes_per_s = 0;
    double tx_bytes = -1;  // per call, busiest host
    double noise = 0;      // native against itself; 0: not measured
    Ratio of_native;       // against MPI_Neighbor_alltoallw of the same launch
    Ratio of_nonblocking;  // of our nonblocking calls: against MPI_Ineighbor_alltoallw of the same launch
    Ratio of_plan;         // of our plans: against MPI_Neighbor_alltoallw_init of the same launch
    double parted_seconds = 0;  // the same messages without overlap, in the same launch; 0: not measured

    double of_limit() const { return limits.largest() > 0 ? seconds / limits.largest() : 0; }
    // What is saved of the call without overlap, and the most that could be.
    double saved() const { return parted_seconds > 0 ? 1 - seconds / parted_seconds : 0; }
    double ceiling() const { return parted_seconds > 0 ? 1 - limits.largest() / parted_seconds : 0; }
};

// What wire, copies and cores need for a row's exchange, by what was measured beside it.
HaloLimits halo_limits_of(const Row& row);

// Of rows of phase "halo", the newest of each column; sorted by MPI, shape, grid, column.
std::vector<HaloLine> summarize_halo(const std::vector<Row>& rows);

// Whether it is undecided of any column of ours whether it is slower than what it is judged by. Those with
// settings of their own, and in two parts, are not judged.
bool any_undecided(const std::vector<HaloLine>& lines);

// What is asked of a column of ours, over all points of a shape under an MPI.
struct HaloJudgement {
    std::string mpi, shape, rate, column;
    int points = 0;
    int large = 0, within = 0;     // with messages of large_bytes; of these, near enough to the limit
    int balanced = 0, hidden = 0;  // balanced ones with a time without overlap; of these, enough of it saved
    int not_slower = 0, undecided = 0, slower = 0;  // than MPI_Neighbor_alltoallw
    double gain = 0, most_gain = 0;  // geometric means of native / ours, and of native / (1.05 limit)

    static constexpr double large_bytes = 64 << 10;
    static constexpr double bound_target = 1.10, balanced_target = 1.20;  // times the limit
    static constexpr double saved_target = 0.48, ceiling_target = 0.90;   // saved, or in parts of the ceiling
};
std::vector<HaloJudgement> judge_halo(const std::vector<HaloLine>& lines);
std::string format_halo_judgements(const std::vector<HaloJudgement>& judgements, bool markdown);

// One row per point: bytes, limits, which of them is the largest. Empty where there are none.
std::string format_halo_points(const std::vector<HaloLine>& lines, bool markdown);
// One row per column.
std::string format_halo(const std::vector<HaloLine>& lines, bool markdown);

// Of any of the phases of bench/halo.h.
bool is_halo(const Row& row);

// The section of docs/measurements.md, of all these phases; empty where there are no rows.
std::string halo_section(const std::vector<Row>& rows, std::string (*provenance)(const std::vector<Row>&));

}  // namespace thalweg::bench
