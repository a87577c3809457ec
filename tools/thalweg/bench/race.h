// How a screen spends its time: slow columns are dropped from a race, and what was far behind at a smaller
// size does not start at a large one. Pure functions; docs/guide/measuring.md states the rule for users.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::bench {

// A column stops when its median so far is more than this many times the best median so far.
inline constexpr double race_ratio = 2.0;
// From this size on one call takes so long that two samples must do to tell columns apart this far.
inline constexpr std::uint64_t race_large_bytes = 4u << 20;
inline constexpr double race_large_ratio = 1.5;
inline constexpr std::size_t race_large_samples = 2;
// Shorter calls cost nothing to repeat, and one of them may have been interrupted.
inline constexpr double race_shortest_seconds = 1e-3;
// From this size on a column does not start that was this many times the best at a quarter of it.
inline constexpr std::uint64_t left_out_from_bytes = 16u << 20;
inline constexpr double left_out_ratio = 3.0;

// Why a column with these samples gets no more of them: "over 2x after 1". Empty: it goes on. `best` is the
// lowest median in seconds of all columns at this size so far.
std::string race_stop(std::uint64_t bytes, const std::vector<double>& seconds, double best);

// Why a column whose median was `previous` seconds at bytes / 4, where the best had `previous_best`, is not
// measured at `bytes`: "left out: 3x at 4 MiB". Empty: it starts; so does one that was not measured there
// (0).
std::string race_left_out(std::uint64_t bytes, double previous, double previous_best);

// The sentence of --help.
std::string race_rule();

// What a sweep will take, in seconds, before anything was measured: `call` is the time a good call needs.
// Assumes what the natives of the first tables did: three times a good call on average, half of the columns
// out of the race after the first sample and, from left_out_from_bytes on, a third of them left out.
struct ScreenPlan {
    std::uint64_t bytes = 0;
    int columns = 0, always = 0, samples = 0;  // always: of the columns, those that get all samples
    double call = 0;
};
double predicted_screen_seconds(const ScreenPlan& plan);
// Decisions: every column twice a good call.
double predicted_decide_seconds(int columns, int calls, double call);

}  // namespace thalweg::bench
