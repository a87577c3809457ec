#include "engine/waiters/between_polls.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>

#include "base/clock.h"
#include "engine/waiters/relax.h"
#include "engine/waiters/timer_slack.h"

namespace thalweg {
namespace {

constexpr std::uint64_t shortest_nap_ns = 15'000, longest_nap_ns = 60'000, nap_per_rank_ns = 7'500;
constinit std::atomic<std::uint64_t> the_nap_ns{shortest_nap_ns};

}  // namespace

std::uint64_t nap_ns() { return the_nap_ns.load(std::memory_order_relaxed); }

void naps_among(std::uint64_t ranks, std::uint64_t cores) {
    const std::uint64_t wanted_ns = nap_per_rank_ns * ranks / std::max<std::uint64_t>(cores, 1);
    the_nap_ns.store(std::clamp(wanted_ns, shortest_nap_ns, longest_nap_ns), std::memory_order_relaxed);
}

std::uint64_t pause_between_polls(WaitPolicy policy, std::uint64_t began_ns) {
    constexpr std::uint64_t longest_ns = 200'000, waited_per_nap = 16;
    const std::uint64_t time_ns = now_ns();
    if (began_ns == 0) return time_ns;
    const std::uint64_t waited_ns = time_ns - began_ns;
    if (waited_ns < polling_ns) {
        relax();
    } else if (policy == WaitPolicy::spin) {
        sched_yield();
    } else {
        TimerSlack slack;
        slack.lower();
        const timespec span{0,
                            static_cast<long>(std::clamp(waited_ns / waited_per_nap, nap_ns(), longest_ns))};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &span, nullptr);
    }
    return began_ns;
}

}  // namespace thalweg
