// One line per message on standard error: "thalweg: rank 3: …", written by one write(2) so that lines of
// several ranks do not mix. No iostream, no allocation, no constructor before main; safe from any thread.
//
// Never call it on a hot path: guard with log_enabled where building the arguments costs.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/options.h"

namespace thalweg {

// Messages above this level are dropped; warn until set.
void set_log_level(LogLevel level);
bool log_enabled(LogLevel level);

// Shown as "rank N: " from then on; a negative number shows nothing (the start).
void set_log_rank(int rank);

// Redirects the lines, for tests; -1 is standard error.
void set_log_descriptor(int descriptor);

// One place in the code that logs. Lets a burst through, then one line a second with the number left out, so
// that a message in a loop cannot flood a job's output. All zero at start.
struct LogSite {
    std::atomic<std::uint64_t> window_start_ns{0};
    std::atomic<std::uint32_t> in_window{0};
    std::atomic<std::uint64_t> suppressed{0};
};
inline constexpr std::uint32_t log_burst = 8;                  // lines of one site …
inline constexpr std::uint64_t log_window_ns = 1'000'000'000;  // … in one window

[[gnu::format(printf, 3, 4)]] void log_at(LogSite& site, LogLevel level, const char* format, ...);

}  // namespace thalweg

// THALWEG_LOG_AT(warn, "rank %d …", rank): a sentence without prefix, full stop or newline.
#define THALWEG_LOG_AT(level, ...)                                                        \
    do {                                                                                  \
        if (::thalweg::log_enabled(::thalweg::LogLevel::level)) {                         \
            static constinit ::thalweg::LogSite thalweg_log_site;                         \
            ::thalweg::log_at(thalweg_log_site, ::thalweg::LogLevel::level, __VA_ARGS__); \
        }                                                                                 \
    } while (false)
