#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/clock.h"
#include "base/signals_blocked.h"

namespace thalweg {

namespace {

constinit std::atomic<std::uint8_t> current_level{static_cast<std::uint8_t>(LogLevel::warn)};
constinit std::atomic<int> current_rank{-1};
constinit std::atomic<int> descriptor{-1};

// Whether the site may speak now; `left_out` is how many lines it swallowed since it last spoke. Racing
// threads may let a line too many through, which does no harm.
bool admit(LogSite& site, std::uint64_t& left_out) {
    const std::uint64_t now = now_ns();
    std::uint64_t start = site.window_start_ns.load(std::memory_order_relaxed);
    if (start == 0 || now - start >= log_window_ns) {
        if (site.window_start_ns.compare_exchange_strong(start, now, std::memory_order_relaxed))
            // After a flood one line a second is enough; after silence a new burst is welcome.
            site.in_window.store(site.suppressed.load(std::memory_order_relaxed) > 0 ? log_burst - 1 : 0,
                                 std::memory_order_relaxed);
    }
    if (site.in_window.fetch_add(1, std::memory_order_relaxed) >= log_burst) {
        site.suppressed.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    left_out = site.suppressed.exchange(0, std::memory_order_relaxed);
    return true;
}

}  // namespace

void set_log_level(LogLevel level) {
    current_level.store(static_cast<std::uint8_t>(level), std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) {
    return static_cast<std::uint8_t>(level) <= current_level.load(std::memory_order_relaxed);
}

void set_log_rank(int rank) { current_rank.store(rank, std::memory_order_relaxed); }

void set_log_descriptor(int new_descriptor) { descriptor.store(new_descriptor, std::memory_order_relaxed); }

void log_at(LogSite& site, LogLevel level, const char* format, ...) {
    if (!log_enabled(level)) return;
    std::uint64_t left_out = 0;
    if (!admit(site, left_out)) return;

    char line[1024];
    std::size_t used = 0;
    auto keep = [&](int written) {
        if (written > 0) used = std::min(used + static_cast<std::size_t>(written), sizeof line - 1);
    };
    const int rank = current_rank.load(std::memory_order_relaxed);
    keep(std::snprintf(line, sizeof line, "thalweg: "));
    if (rank >= 0) keep(std::snprintf(line + used, sizeof line - used, "rank %d: ", rank));
    va_list arguments;
    va_start(arguments, format);
    keep(std::vsnprintf(line + used, sizeof line - used, format, arguments));
    va_end(arguments);
    if (left_out > 0)
        keep(std::snprintf(line + used, sizeof line - used, " (%llu more like this left out)",
                           static_cast<unsigned long long>(left_out)));
    if (used > sizeof line - 2) used = sizeof line - 2;
    line[used++] = '\n';
    const int target = descriptor.load(std::memory_order_relaxed);
    // Nowhere to report that standard error is gone.
    const WriteSignalsBlocked blocked;
    [[maybe_unused]] const ssize_t ignored = write(target < 0 ? STDERR_FILENO : target, line, used);
}

}  // namespace thalweg
