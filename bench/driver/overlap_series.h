// What is kept of the calls of one column at one point, and how it is written.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver/ours.h"

namespace thalweg::bench {

// What one rank saw of one call. Only doubles: it travels as such.
struct OverlapCall {
    double late = 0;     // after the agreed instant
    double total = 0;    // from the start to the return of the wait
    double compute = 0;  // without the tests in between
    double tests = 0;    // MPI_Test calls in between
    double delay = 0;    // runnable without a core while it computed
    double lost = 0;     // times the core was taken while it computed
    double agent_cpu = 0, agent_wakes = 0, other_cpu = 0, other_wakes = 0;
    double softirq = 0;                          // of the whole machine
    double tx_bytes = 0;                         // of this host
    double crossed = 0, crossed_in_compute = 0;  // bytes of this host's link, both directions
    double wrong = 0;
};

struct OverlapSeries {
    std::vector<double> pure, pure_mean;  // of each rank's own time the longest; mean of the ranks
    // Since the instant at which all were to begin: a rank that began late makes this longer, and the other
    // shorter.
    std::vector<double> pure_from_instant;
    std::vector<double> here;  // as pure, of this rank
    std::vector<double> own_total, own_compute, own_visible;
    std::vector<double> worst_pure, worst_compute, worst_total;  // of the rank with the longest own call
    struct Equal {
        std::vector<double> total, compute;
        double delay = 0, lost = 0, softirq = 0, crossed = 0, crossed_in_compute = 0;
    };
    std::map<std::string, Equal> equal;
    std::vector<double> last_pure;  // by rank
    double agent_cpu = 0, agent_wakes = 0, other_cpu = 0, other_wakes = 0, tests = 0, tx_bytes = 0;
    std::uint64_t wrong_words = 0, late_samples = 0;
    Ran ran;

    // Wrong words and late starts of all ranks of one call.
    void note(const std::vector<OverlapCall>& calls);
    // The column's part of the results. `compute` is the kind that overlapped, `equal_seconds` how long the
    // equal work takes alone.
    nlohmann::json to_json(const std::string& compute, double equal_seconds) const;
};

}  // namespace thalweg::bench
