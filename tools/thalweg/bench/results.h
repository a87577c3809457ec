// Result rows as JSON lines: one per point, column and phase, each with its full provenance.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace thalweg::bench {

// One measured (point, column) of one launch.
struct Row {
    // commit, date, mpi, shape, rates, capacity, settings: equal for rows of one session. Of columns of ours
    // also transport and waiting (thalweg.h); rows from before 2026-11-23 lack them, those of applications
    // up to 2026-11-29.
    nlohmann::json context;
    std::string collective, column,
        phase;  // "screen", "decide", "rings", "small", "overlap", "waiters", "exchange", "halo", "apps",
                // "amr"
    std::uint64_t launch = 0;  // rows that share it were interleaved
    std::uint64_t bytes = 0;
    std::vector<double> seconds, back_to_back;
    std::uint64_t wrong_words = 0, late_samples = 0;
    std::string algorithm, reason;
    // Why it has fewer samples than the other columns, or none: "over 2x after 1", "left out: 3x at 4 MiB".
    std::string stopped;
    nlohmann::json calls;    // phase "small" only: how many calls, and quantiles of their times in ns
    nlohmann::json overlap;  // phase "overlap" only: what the driver wrote of it (bench/driver/overlap.cpp)
    nlohmann::json
        exchange;           // phase "exchange" only: what the driver wrote of it (bench/driver/exchange.cpp)
    nlohmann::json halo;    // phase "halo" only: what the driver wrote of it (bench/driver/halo.cpp)
    nlohmann::json waiter;  // phase "waiters" only: a line of bench/waiters
    nlohmann::json app;     // "apps" and "amr" only: the application's parameters, seconds of each run
    double tx_bytes = -1, tx_packets = -1;  // per call on the busiest host; negative: not counted
    double all_tx_bytes = -1;               // per call, all hosts together
    std::string element;  // of a reduction: what its vector is made of, "int64"; empty in rows from before
};

// The same, also of rows from before: all of them were of 64-bit integers. Empty where nothing is reduced.
std::string element_of(const Row& row);

// The row that a line of a file, or one of the driver's with a context, holds. Throws nlohmann's exceptions
// where it is none.
Row row_of(const nlohmann::json& line);

// Appends; what was decided also says limit_s and time_over_limit where a link limits it. False with one
// sentence in `why` when the file cannot be written.
bool append_rows(const std::string& path, const std::vector<Row>& rows, std::string& why);
// Rows of all files in order; a file that does not exist has none. Malformed lines end the reading with
// `why`. A row that was cut off at the end of a file is told on standard error and left out; the next
// append_rows takes its place.
bool read_rows(const std::vector<std::string>& paths, std::vector<Row>& rows, std::string& why);
// The same of the file that append_rows() is to add to, which may have no name. What is no file, as
// /dev/stdout before a pipe, has none: reading it would wait for what this program writes.
bool read_rows_before(const std::string& out, std::vector<Row>& rows, std::string& why);

}  // namespace thalweg::bench
