// What the rows of phases "halo_pairs" and "halo_changing" say: the choice of protocols, inside hosts and
// between them, beside every fixed pair of them.
//
// Inside hosts a protocol can be asked for in mid-run, so those pairs take turns with the choice in one
// launch. Between hosts it cannot: those have launches of their own, round after round, and a column's
// samples of all rounds count together.
#pragma once

#include <string>
#include <vector>

#include "bench/halo.h"
#include "bench/results.h"
#include "bench/statistics.h"

namespace thalweg::bench {

// What was exchanged, of a row or a plan: a grid, or the phases of a run.
std::string what_text(const nlohmann::json& halo);

struct FixedPair {
    std::string inside, between;  // "cma_get", "eager"; between: "auto" where libucp went by size
    std::size_t samples = 0;
    double seconds = 0;
    Ratio chosen;                // the choice's time over this one's
    std::vector<double> phases;  // of a run that changes: median seconds in each
};

// One point, or one run that changes.
struct PairTable {
    std::string mpi, shape, rate, what;
    bool changes = false;
    std::size_t samples = 0;
    double seconds = 0;  // of the choice; 0: not measured
    double native_seconds = 0;
    std::vector<std::string> phase_names;
    std::vector<double> phases;    // of the choice
    bool slowed = false;           // its slow link was slow
    std::vector<FixedPair> fixed;  // the fastest first
    std::uint64_t wrong_words = 0;

    // At a point the choice may be so much behind the best fixed pair; in a run that changes it must be
    // ahead.
    static constexpr double most_behind = 1.05;
    // "ahead", "within 5 %", "behind", "undecided": its interval holds the limit. Pre: fixed is not empty.
    std::string_view verdict(const FixedPair& pair) const;
};

// Sorted by MPI, shape, what.
std::vector<PairTable> compare_pairs(const std::vector<Row>& rows);
// A row for each pair, and a sentence for each table. Empty where there are none.
std::string format_pairs(const std::vector<PairTable>& tables, bool markdown);

}  // namespace thalweg::bench
