// What the rows of phase "exchange" say: each way beside the limit, when plans pay, and the paper's
// comparison.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/exchange.h"
#include "bench/results.h"
#include "bench/statistics.h"
#include "model/break_even.h"

namespace thalweg::bench {

// A predicted N* beside the measured one: both are never, both are numbers within a factor of 2, or neither.
// Undecided, and not counted: the measured gain's interval has zero in it. Unknown: nothing was measured that
// a prediction is made of.
enum class Foresight : std::uint8_t { unknown, undecided, both_never, within_two, differs };
const char* name_of(Foresight foresight);
Foresight foresight_of(double predicted_calls, const BreakEven& measured);

// One column of one point.
struct ExchangeLine {
    std::string mpi, shape, rate, pattern, column;
    std::uint64_t bytes = 0, samples = 0, wrong_words = 0, launch = 0;
    int neighbours = 0;
    std::string ran;                        // of ours: what it ran, or "native" with the reason
    std::string stopped;                    // why there is nothing else
    double seconds = 0, limit_seconds = 0;  // seconds: the median call
    double init_seconds = 0;                // making and freeing the plan; 0: there is none
    Ratio of_native;                        // against MPI_Alltoallv of the same launch
    Ratio of_plan;                          // of our plans: against MPI_Alltoallv_init's in that launch
    Ratio of_best;                          // against the fastest of the MPI's own columns in that launch
    std::string best_native;                // which column that is: MPI_Alltoallv's or MPI_Alltoallv_init's
    double window_seconds = 0;              // of the window per call in that launch; 0: there is none
    BreakEven against_native;               // of a plan: against MPI_Alltoallv
    BreakEven against_best;                 // of a plan: against best_native, whose own plan costs nothing
    BreakEven against_window;               // of a plan: against the window made in every call
    // Of a plan, against MPI_Alltoallv: N* as forecast_plan() has it from other calls than the measured ones,
    // those of the A/A column, here and at the smallest size.
    double predicted_calls = 0;
    Foresight foresight = Foresight::unknown;
    // Of a plan that was chosen and is ours: the column with the native default's algorithm, and how many
    // times as fast that is as MPI_Alltoallv of its own launch. 0: none was measured, or it was not ours.
    std::string twin;
    double waiting = 0;
    // Per call on the busiest host; packets without those of the bench's own meetings, negative: not known.
    // And what must cross.
    double tx_bytes = -1, tx_packets = -1, link_bytes = 0;

    double of_limit() const { return limit_seconds > least_limit_seconds ? seconds / limit_seconds : 0; }
    bool is_plan() const { return init_seconds > 0; }
    // native / this = algorithm() * waiting, where that is known; else 0.
    double algorithm() const {
        return waiting > 0 && of_native.value > 0 ? 1 / (of_native.value * waiting) : 0;
    }
    // Whether there is an N* of it: against which calls one took turns with it.
    bool pays_native() const { return is_plan() && of_native.value > 0; }
    bool pays_best() const { return is_plan() && of_best.value > 0 && best_native != column; }
    bool pays_window() const { return is_plan() && window_seconds > 0; }
    static constexpr double least_limit_seconds = 1e-4;
};

// Of rows of phase "exchange", the newest of each column; sorted by MPI, shape, pattern, size, column.
std::vector<ExchangeLine> summarize_exchange(const std::vector<Row>& rows);

// The points of which it is undecided whether a choice of Thalweg's is slower than the best of natives, or
// than what the front of the page judges it by: pattern and bytes.
std::set<std::pair<std::string, std::uint64_t>> undecided_points(const std::vector<ExchangeLine>& lines);

// How many lines there are of each verdict.
struct ForesightCount {
    std::size_t undecided = 0, both_never = 0, within_two = 0, differ = 0;

    std::size_t agree() const { return both_never + within_two; }
    std::size_t decided() const { return agree() + differ; }
    bool empty() const { return decided() + undecided == 0; }
};
ForesightCount count_foresight(const std::vector<ExchangeLine>& lines);

// The paper's comparison at one point: a plan over fences against a window made in every call.
struct WindowLine {
    std::string mpi, shape, rate, pattern, plan;
    std::uint64_t bytes = 0;
    double once_seconds = 0, set_up_seconds = 0, plan_seconds = 0, kept_seconds = 0, native_seconds = 0;
    // Shares of once_seconds: what the plan saves; what of the baseline's call is set-up; and what keeping
    // the window saves, which has in it what a library puts off until a new window is first used.
    double reduction = 0, set_up = 0, kept_saves = 0;
    BreakEven pays;

    // The most that planning the window can save, and how much of it is saved; 0 where that is nothing.
    double ceiling() const { return set_up > kept_saves ? set_up : kept_saves; }
    double of_ceiling() const { return ceiling() > 0 ? reduction / ceiling() : 0; }
};
std::vector<WindowLine> compare_windows(const std::vector<Row>& rows);

}  // namespace thalweg::bench
