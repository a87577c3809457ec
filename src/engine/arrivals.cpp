#include "engine/arrivals.h"

#include <algorithm>

#include "base/float_modes.h"

namespace thalweg {
namespace {

// A message that is this much of its gap late is overdue: listened for until then.
constexpr double grace = 0.25;
constexpr std::uint64_t waits_per_merge = 16;
// The network goes on while we sleep only as far as the kernel's and the library's buffers take and give; the
// smallest default of a TCP socket's send side.
constexpr double buffered_bytes = 32 * 1024;
// The weight of the newest rate. A peer that joins late makes one that is too low, so a higher one is
// believed sooner.
constexpr double weight_up = 0.5, weight_down = 0.25;

}  // namespace

void Arrivals::arrived(std::uint64_t time_ns, std::uint64_t bytes) {
    const std::uint64_t span_ns = time_ns - std::min(time_ns, last_ns_);
    last_ns_ = time_ns;
    if (bytes == 0) return;
    in_standard_modes([&] {
        const double rate =
            static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(span_ns, 1));
        if (rate_ == 0)
            rate_ = rate;
        else
            rate_ += (rate - rate_) * (rate > rate_ ? weight_up : weight_down);
    });
}

std::uint64_t Arrivals::span_ns(std::uint64_t time_ns, std::uint64_t next_bytes) const {
    const std::uint64_t waited_ns = time_ns - std::min(time_ns, last_ns_);
    if (rate_ == 0) return std::min(waited_ns / waits_per_merge, longest_merge_ns);
    return in_standard_modes([&]() -> std::uint64_t {
        double span_ns = static_cast<double>(waited_ns / waits_per_merge);
        const double gap_ns = static_cast<double>(next_bytes) / rate_;
        const double left_ns = gap_ns - static_cast<double>(waited_ns);
        if (left_ns > 0)
            span_ns = left_ns / 2;
        else if (left_ns > -grace * gap_ns)
            return 0;
        span_ns = std::min(span_ns, buffered_bytes / rate_);
        return static_cast<std::uint64_t>(std::min(span_ns, static_cast<double>(longest_merge_ns)));
    });
}

}  // namespace thalweg
