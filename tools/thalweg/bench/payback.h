// At which sizes planned exchanges pay at once: N* against the bytes of a pair, as a table and as a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/exchange_table.h"

namespace thalweg::bench {

// One plan against one way without it, on one shape, at all sizes at which both took turns.
struct Payback {
    struct Point {
        std::uint64_t bytes = 0;
        BreakEven pays;
    };

    std::string mpi, shape, rate, pattern, plan, against;
    std::vector<Point> points;  // by size, ascending

    // The sizes at which N* is at most immediate_payoff, neighbouring ones as a range: "16 KiB to 64 KiB, 1
    // MiB"; "never". surely: the end of its 95 % interval is, too.
    std::string at_once_text(bool surely) const;
};

// The paper's plan and ours, each against what a program would do without it. Sorted by MPI, shape, rate and
// pattern.
std::vector<Payback> paybacks(const std::vector<ExchangeLine>& lines);

// Where each begins and ceases to pay at once. Empty where there are none.
std::string format_payback(const std::vector<Payback>& all, bool markdown);

// Those of one MPI where all pairs are alike, a panel for each shape, as SVG; empty where there are none.
std::string draw_payback(const std::vector<Payback>& all, const std::string& mpi);

}  // namespace thalweg::bench
