// Calls so short that only very many of them tell two sides apart: what Thalweg costs where it does nothing.
//
// Blocks of calls of each column in turn, in one launch, on one communicator. The root goes round, so that a
// call begins when the one before has arrived and no rank runs ahead. The time of a call is from the root's
// entry to the last rank's return, by a clock that all ranks share; reading it is part of the time, alike on
// all sides. The first and the last call of each block are checked byte by byte into poisoned memory and not
// timed; every other call carries its number in the first and last bytes, which is checked too.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver/cases.h"
#include "driver/ours.h"

namespace thalweg::bench {

// Times by the nanosecond; what exceeds the last one is counted in it.
class Histogram {
  public:
    void add(std::int64_t ns);
    void add(const Histogram& other);
    void clear();
    std::uint64_t count() const { return count_; }
    // The smallest time that at least `fraction` of the calls did not exceed, in ns: as exact as the clock up
    // to last_ns.
    std::int64_t quantile(double fraction) const;
    static constexpr std::int64_t last_ns = (1 << 20) - 1;

  private:
    std::vector<std::uint32_t> counts_ = std::vector<std::uint32_t>(last_ns + 1);
    std::uint64_t count_ = 0;
};

struct SmallResult {
    Histogram all;                        // on rank 0
    std::vector<double> segment_medians;  // seconds, of equal parts of the run in time: how much it drifts
    std::uint64_t wrong_words = 0;        // of all ranks
    std::uint64_t checked_calls = 0;      // byte by byte
    Ran ran;
    std::int64_t clock_ns = 0;       // what two readings of the clock cost
    std::int64_t clock_step_ns = 0;  // the smallest difference of two readings that is not 0
};

struct SmallColumn {
    bool native = true;
    std::function<void()> select;  // makes the column's choice effective; not timed
    SmallResult result;
};

// Collective over comm and control, which hold the same ranks. `calls` timed ones of each column.
void measure_small(const Case& what, std::size_t bytes, int calls, MPI_Comm comm, MPI_Comm control,
                   Ours& ours, std::vector<SmallColumn>& columns);

// The result's part of a line of the driver's output.
nlohmann::json to_json(const SmallResult& result);

}  // namespace thalweg::bench
