// What the rows of phase "overlap" say: how much hides, what it costs, and which targets are reached.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/overlap.h"
#include "bench/results.h"
#include "bench/statistics.h"

namespace thalweg::bench {

// Percent of the pure time that hides behind the computation.
//
// OSU: 100 (1 - (total - computed) / pure), of the means over the ranks. IMB: 100 (pure + computed - total) /
// max(pure, computed), of the rank whose call took longest. Where they take means over iterations, medians
// are taken here, because something else on this machine may have delayed one. Within 0 and 100.
double osu_overlap(double pure, double computed, double total);
double imb_overlap(double pure, double computed, double total);

// One column of one point.
struct OverlapLine {
    std::string mpi, shape, rate, collective, column;
    int rails = 1;  // links of a host
    std::uint64_t bytes = 0, launch = 0, samples = 0, wrong_words = 0;
    std::string element;    // of a reduction: what its vector is made of
    std::string algorithm;  // of ours; "native" where the call was left to the MPI, with the reason
    std::string stopped;    // why there is nothing else: its launch failed
    bool moves = true;      // false: the computation alone
    bool alone = false;     // true: the pure time alone
    std::string compute;    // what overlapped
    double pure_seconds = 0, limit_seconds = 0;
    double osu = 0, imb = 0, visible_seconds = 0;
    double tests = 0;          // MPI_Test calls in one computation
    double equal_seconds = 0;  // from the start to the last wait's return, with equal work
    double work_seconds = 0;   // of which that work took
    // The native blocking call and then that work, in the same launch; 0: not measured.
    double one_by_one_seconds = 0;
    double crossed_meanwhile = -1;  // of the link's bytes, the share that crossed during that work
    Ratio of_native;                // equal_seconds against the native default's of the same launch
    // Pure time against the native blocking call's of the same launch: the algorithm that ours gains least
    // on.
    Ratio of_blocking;
    std::string best_blocking;
    Ratio dilation_arithmetic, dilation_memory;  // computation against that beside the reference
    Ratio slowed_arithmetic, slowed_memory;      // computation against that without traffic
    double agent_cpu_seconds = 0, agent_wake_ups = 0, other_cpu_seconds = 0, other_wake_ups = 0;  // per call
    double delay_seconds = 0, lost = 0, softirq_seconds = 0;                                      // per call

    // As the tables say it: "2x1, 50mbit", "4x1, 2 x 50mbit" with two rails; on one host "1x2".
    std::string place() const {
        if (rate.empty()) return shape;
        return shape + ", " + (rails > 1 ? std::to_string(rails) + " x " : "") + rate;
    }

    // As the tables say it: "iallgather", "iallreduce of int64".
    std::string operation() const { return element.empty() ? collective : collective + " of " + element; }

    // 0: there is none, or the shaper's bucket takes the bytes at once.
    double of_limit() const { return limit_seconds > least_limit_seconds ? pure_seconds / limit_seconds : 0; }
    static constexpr double least_limit_seconds = 1e-4;
};

// Of rows of phase "overlap", the newest of each column; sorted by collective, MPI, shape, size, column.
std::vector<OverlapLine> summarize_overlap(const std::vector<Row>& rows);

// Empty where there are none. What hides; and what that costs.
std::string format_hidden(const std::vector<OverlapLine>& lines, bool markdown);
std::string format_cost(const std::vector<OverlapLine>& lines, bool markdown);

// Of the automatic choice: how much less time it takes with equal work than the native blocking call and then
// that work, and how much less it could take. Empty where there are none.
std::string format_saved(const std::vector<OverlapLine>& lines, bool markdown);

// Of the automatic choice where it was measured with one rail and with several of the same rate: how many
// times as fast the latter are, at least 1.8 for two of them. Empty where there are none.
std::string format_rails(const std::vector<OverlapLine>& lines, bool markdown);

// Over the same links, in one launch: the ring with one port beside the one with as many as there are links
// (port_rings() in columns.h), and the automatic choice. Empty where there are none.
std::string format_ports(const std::vector<OverlapLine>& lines, bool markdown);

// How many interleaved samples a verdict is to rest on.
inline constexpr std::uint64_t wanted_samples = 30;

// One target at one place (shape and rate) under one MPI, over the points it is for.
struct TargetLine {
    std::string target, mpi, collective, place;
    int points = 0, reached = 0;
    int short_of_samples = 0;  // points with fewer than wanted_samples
    std::string worst;         // "92.0 % at 1 MiB"
    std::string reference;     // what plain sockets reach there, as far as they can be compared; or empty
};
std::vector<TargetLine> judge(const std::vector<OverlapLine>& lines);
std::string format_targets(const std::vector<TargetLine>& lines, bool markdown);

}  // namespace thalweg::bench
