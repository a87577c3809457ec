// The closed against the trimmed ring (paper 4), both as schedules on our engine, one rank per host: what the
// saved transfers are worth in time, with and without a barrier between calls.
#pragma once

#include <string>
#include <vector>

#include "bench/results.h"

namespace thalweg::bench {

inline constexpr const char* rings_phase = "rings";
inline constexpr const char* closed_ring = "thalweg scatter_ring";
inline constexpr const char* closed_ring_again = "thalweg scatter_ring (A/A)";
inline constexpr const char* trimmed_ring = "thalweg scatter_ring_trimmed";

// One line per MPI, number of ranks, links and size found in `rows` (phase "rings"), of the newest launch
// that has both rings; empty text when there is none.
std::string format_rings(const std::vector<Row>& rows, bool markdown);

}  // namespace thalweg::bench
