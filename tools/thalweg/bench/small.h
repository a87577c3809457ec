// Short calls, which Thalweg mostly leaves to the MPI: what it adds to them, from a million calls of each
// side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/results.h"
#include "bench/statistics.h"

namespace thalweg::bench {

inline constexpr const char* small_phase = "small";

// The sizes measured unless told otherwise.
std::vector<std::string> small_sizes();

// "Not slower" for short calls: by at most 3 % of native's median or 150 ns, whichever is larger.
double small_allowance_ns(double native_ns);

// One size under one MPI.
struct SmallLine {
    std::string mpi, shape;
    std::uint64_t bytes = 0, calls = 0;  // calls: of each side
    double native_ns = 0, ours_ns = 0, again_ns = 0, native_p99_ns = 0, ours_p99_ns = 0;  // medians, p99
    Interval difference_ns;  // 95 %, ours - native, from the medians of equal parts of the run
    double clock_ns = 0, clock_step_ns = 0;  // two readings of the clock, and the steps it advances in
    double last_ns = 0;                      // a p99 of this much or more was not resolved; 0: unknown
    std::string algorithm;
    std::uint64_t wrong_words = 0;
    Verdict decision = Verdict::undecided;
};

// Of rows of phase "small", the newest of each (MPI, shape, size); sorted.
std::vector<SmallLine> summarize_small(const std::vector<Row>& rows);
// Empty where there are none.
std::string format_small(const std::vector<Row>& rows, bool markdown);

}  // namespace thalweg::bench
