// One run of `thalweg bench alltoallv`: the exchange by every way there is, what a plan costs, and after how
// many calls it has paid for itself. bench/driver/exchange.h says how it is measured.
#pragma once

#include <string>
#include <vector>

#include "bench/launch.h"

namespace thalweg::bench {

inline constexpr const char* exchange_phase = "exchange";

struct ExchangeRequest {
    Shape shape{.mpi = "openmpi", .hosts = 4, .ppn = 1, .rails = 1, .rate = "100mbit"};
    std::vector<std::string> patterns{"dense"};
    std::vector<std::string> sizes{"1K", "4K", "16K", "64K", "256K", "1M"};
    std::vector<std::string> ours;     // choices besides the automatic one; empty: every algorithm there is
    std::vector<std::string> columns;  // only these; empty: all
    int samples = 30, samples_large = 10;  // large: a limit of large_seconds or more
    std::string out;                       // what is in it is not measured again
    bool again = false;                    // but for what is undecided there, with three times the samples
    bool force = false;
};

// Measures and prints the tables. The exit status: 0; 1: the launch failed or wrong words were received; 2:
// the request cannot be read.
int run_exchange(ExchangeRequest request);

}  // namespace thalweg::bench
