// What the rows of phase "halo_overlap" say: how much of a halo exchange hides behind computation.
#pragma once

#include <string>
#include <vector>

#include "bench/results.h"

namespace thalweg::bench {

// One column of one point, the newest of each.
struct HaloHidden {
    std::string mpi, shape, rate, what, column, ran, stopped, compute;
    std::size_t samples = 0;
    double seconds = 0;          // a call without computation
    double limit_seconds = 0;    // what wire, copies or cores need at least
    double target_of_limit = 0;  // of a call without computation, in limits: only then what it hides counts
    double osu = 0, imb = 0;     // percent hidden, as overlap_table.h says
    std::uint64_t wrong_words = 0;

    // Of what hides behind computation, by OSU's count.
    static constexpr double target = 90;
};

// Sorted by MPI, shape, links, grid; within these as they were measured.
std::vector<HaloHidden> summarize_halo_hidden(const std::vector<Row>& rows);
// Empty where there are none.
std::string format_halo_hidden(const std::vector<HaloHidden>& lines, bool markdown);

}  // namespace thalweg::bench
