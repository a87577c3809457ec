// Tables for people, made from result rows.
#pragma once

#include <string>
#include <vector>

#include "bench/proof.h"
#include "bench/results.h"
#include "bench/statistics.h"

namespace thalweg::bench {

// One line of the main table: a size on one shape under one MPI.
struct Summary {
    std::string collective, mpi, shape, rate;  // rate: links_text()
    std::uint64_t bytes = 0;
    double native_seconds = 0;  // the default, median
    std::string best_native;    // column name
    double best_native_seconds = 0;
    // Where Thalweg hands the call on, an algorithm that the environment of another launch asks for is what
    // both columns of that launch run: the quickest of them, empty where it was not clearly quicker than the
    // default.
    std::string quicker_elsewhere;  // column name
    double quicker_elsewhere_seconds = 0;
    double ours_seconds = 0, ours_p99 = 0, native_p99 = 0;
    double ours_back_to_back = 0, native_back_to_back = 0;  // medians, per call; 0: not measured
    std::string algorithm;                                  // what the automatic choice ran, or "native"
    std::string transport;                                  // what carried it: "mpi"; empty where no row says
    double limit_seconds = 0;                               // 0: no link is shaped
    double noise = 1;                                       // A/A: ratio of medians of native against native
    std::string twin;  // our schedule of the native default's algorithm, empty where none is it
    double twin_seconds = 0;
    Ratio against_default, against_best;
    Verdict decision = Verdict::undecided;
    bool screened_only = false;
    double tx_bytes = -1;              // per call, busiest host, automatic choice
    Proof proof = Proof::not_counted;  // the kernel's link counters against the schedule's claim
    std::uint64_t wrong_words = 0;
    // Of the automatic choice beside the default, runs back to back included; late: a rank began more than
    // half a millisecond after the agreed instant.
    std::uint64_t samples = 0, late_samples = 0;
};

// Groups rows by (collective, mpi, shape, links, bytes), newest launches first; points without an automatic
// column are left out.
std::vector<Summary> summarize(const std::vector<Row>& rows);

// Traffic of two columns that differs by no more than this may be that of the same algorithm: headers and
// acknowledgements differ, and other algorithms differ by 7 % and more. A share of the bytes.
inline constexpr double same_traffic_within = 0.04;
// Times of the same algorithm, when only one call of one of them was timed.
inline constexpr double similar_time_ratio = 1.5;

// The native column of a point that does what the native default does, by the kernel's link counters, and the
// column of ours with the same schedule: the nearest to the default in time where there are several. Empty
// where there is none.
std::vector<std::string> resembling_default(const std::vector<const Row*>& point);

// "64 KiB", "1.25 ms".
std::string bytes_text(std::uint64_t bytes);
std::string time_text(double seconds);
// What each host has: "50mbit", with two links "2 x 50mbit"; empty without a lab. Points with more links are
// points of their own.
std::string links_text(const Row& row);
// As tables name a shape with such links: "4x1", with several per host "4x1, 2 x 50mbit".
std::string place_text(const std::string& shape, const std::string& links);
// The first row is the heading. Fixed-width text, or Markdown.
std::string format_cells(const std::vector<std::vector<std::string>>& cells, bool markdown);

std::string format_table(const std::vector<Summary>& lines, bool markdown);
// A sentence on the points where the MPI is quicker in an environment of its own and Thalweg hands the call
// on; empty where there is none.
std::string quicker_elsewhere_text(const std::vector<Summary>& lines);
// A line for each row whose calls received wrong words, so that its figures count for nothing; empty where
// none did. Rows of applications are left out: their tables have a column of it.
std::string wrong_words_text(const std::vector<Row>& rows);
// Nothing is faster than its limit: where rows are, the lab's links carried more than was measured of them,
// and all that stands beside a limit there looks better than it is. A line that says so; else empty.
std::string below_limit_text(const std::vector<Row>& rows);
// Every column of the rows with min, median, p99 and the number of samples.
std::string format_columns(const std::vector<Row>& rows);

// A number among the settings of the row's launch, such as THALWEG_LAB_LATENCY_S; 0 where it is not there.
double setting(const Row& row, const char* name);
// Bytes that must cross the busiest link, in one direction, by the collective's definition; 0 where only one
// host takes part. Ranks are shared out evenly.
double necessary_link_bytes(const Row& row);
// The time that the wire needs for them, and for the hops that no algorithm can save; 0 without a lab.
double limit_seconds(const Row& row);

// Those of one MPI, in their order.
template <typename Line>
std::vector<Line> lines_of(const std::vector<Line>& lines, const std::string& mpi) {
    std::vector<Line> own;
    for (const Line& line : lines)
        if (line.mpi == mpi) own.push_back(line);
    return own;
}

}  // namespace thalweg::bench
