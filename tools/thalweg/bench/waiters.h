// Post-to-wake latency of each way to sleep, as rows and as a table; bench/waiters measures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/results.h"

namespace thalweg::bench {

inline constexpr const char* waiters_phase = "waiters";

struct WaitersRequest {
    std::uint64_t samples = 1000;
    std::uint64_t pause_us = 300;  // how long the sleeper sleeps before it is rung
    std::string out;               // JSON lines to append to
};

// Measures and prints. The exit status: 0; 1: it could not be measured or written.
int run_waiters(const WaitersRequest& request);

// The newest row of each waiter; empty where there is none.
std::string format_waiters(const std::vector<Row>& rows, bool markdown);
// "AMD EPYC, 2 cores, Linux 6.18.1; commit abc1234": of those rows; several of either with commas between.
std::string waiters_source(const std::vector<Row>& rows);
// "umwait (this CPU has no WAITPKG), ...": those that the newest rows did not exercise; empty where all were.
std::string ways_not_exercised(const std::vector<Row>& rows);

}  // namespace thalweg::bench
