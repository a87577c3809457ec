// What one column of one point has measured, whichever exchange it was.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "driver/config.h"
#include "driver/ours.h"
#include "driver/session.h"

namespace thalweg::bench {

// Writes it into a result row.
void add_to(nlohmann::json& row, const Ran& ran);

struct MeasuredSeries {
    std::vector<double> seconds;          // of each timed call, the last rank's
    double tx_bytes = 0, tx_packets = 0;  // busiest host, all timed calls added up
    std::uint64_t wrong_words = 0, late_samples = 0;
    int warm_samples = 0;  // that had an untimed call of this column right before them
    Ran ran;
    std::string stopped;
};

// TCP begins anew where a connection was idle this long (RFC 5681, 4.1; Linux waits 0.2 s at least). A
// program's collective keeps its own connections warm; a column's are idle while others have their turns, and
// then an untimed call goes first.
// latest_start: that of the column's latest call, as Session says it.
inline bool was_idle(const Session& session, double latest_start) {
    constexpr double idle_seconds = 0.2;
    return session.latest_start() - latest_start > idle_seconds;
}

// Calls `sample` with the place of each of `columns` columns in turn, `samples` times, in an order that is
// new each time and, for the same seed, the same on all ranks; `idle`: its connections may have been.
// `progress` is called after each round with the number of rounds that are done.
void take_turns(const Session& session, std::size_t columns, int samples, std::uint64_t seed,
                const std::function<void(std::size_t, bool idle)>& sample,
                const std::function<void(int)>& progress);

// The row of a column, to which the caller adds what is its own. `links`: the kernel's counters were read.
nlohmann::json row_of(const std::string& collective, std::uint64_t bytes, const Column& column,
                      const MeasuredSeries& series, bool links);

}  // namespace thalweg::bench
