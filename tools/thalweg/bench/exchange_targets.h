// What planned and repeated exchanges shall reach, and whether the rows do.
#pragma once

#include <string>
#include <vector>

#include "bench/exchange_table.h"

namespace thalweg::bench {

// One target under one MPI, on one shape or, where that is empty, over all of its points.
struct ExchangeTarget {
    std::string target, column, mpi, place;  // place: "4x1, 100mbit"
    int points = 0, reached = 0, undecided = 0;
    std::string worst;  // the point that is furthest from it, or the value over all of them

    // Of a mean there is one point. Undecided ones are told apart.
    bool met() const { return reached + undecided == points && reached > 0; }
};
std::vector<ExchangeTarget> judge_exchange(const std::vector<ExchangeLine>& lines,
                                           const std::vector<WindowLine>& windows);
// Empty where there are none.
std::string format_exchange_targets(const std::vector<ExchangeTarget>& targets, bool markdown);

// Data packets that must leave the busiest host in an exchange of `bytes` per pair, between `hosts` of `ppn`
// ranks each, where all that goes from one host to another is one message.
int packets_by_hosts(int hosts, int ppn, std::uint64_t bytes);

}  // namespace thalweg::bench
