#include <time.h>

#include <algorithm>

#include "base/clock.h"
#include "engine/waiters/between_polls.h"
#include "engine/waiters/relax.h"
#include "engine/waiters/timer_slack.h"
#include "engine/waiters/waiter.h"

namespace thalweg {
namespace {

// Where ranks exceed cores, time spent spinning is taken from the rank we wait for. Some polls (polling_ns)
// cost less than a sleep; then naps, which are longer where more ranks share a core (nap_ns()).
// Never a yield: it gives up the rest of the slice, and since Linux 6.18 a whole one more, so that whatever
// else wants the core, of idle priority too, keeps it for 1 to 3 ms. A sleeper has its core back when it
// wakes. (A build of idle priority beside 4 hosts of 2 ranks on 2 cores, 64 KiB, Intel MPI: 4.6 ms in
// naps, 6.8 in yields; with nothing beside 4.49 and 4.47. Naps of 5 us: 4.65, as each costs the others about
// as much.)
// Longer sleeps (naps_for_ns) only when the pieces of a pipeline on a slow link have stopped coming. On 4
// hosts of 2 ranks that shared 2 cores, at 100 Mbit/s a piece of 12 KiB each ms, waits that slept longer
// after 30 us took 2 to 5 % longer (64 KiB, Open MPI and Intel MPI), because every rank of the chain added
// its lateness. longest_sleep_ns bounds how long a peer that needs our library's progress waits, and what a
// wrong prediction costs. A sleep is this fraction of the usual distance of events, so that a hidden event (a
// rendezvous request that only the MPI underneath sees) waits at most a thirty-second of what a visible one
// takes, or of the time already waited. In a chain every rank adds its lateness: 64 KiB in one piece over
// four hosts at 100 Mbit/s, 4.3 ms a hop, took 14.3 ms with an eighth and a quarter, and 13.3 with these
// (MPICH).
constexpr std::uint64_t sleeps_per_gap = 32;
// Moving average of the distance of events: weight 1/4 for the newest.
constexpr std::uint64_t average_over = 4;

class TimedWaiter final : public Waiter {
  public:
    void begin() override { last_event_ns_ = 0; }

    void progressed() override {
        // Only a wait that has slept knows that time has passed; the rest came back to back.
        if (last_event_ns_ == 0) return;
        const std::uint64_t time_ns = now_ns();
        const std::uint64_t gap_ns = time_ns - last_event_ns_;
        gap_ns_ = gap_ns_ - gap_ns_ / average_over + gap_ns / average_over;
        last_event_ns_ = time_ns;
    }

    void idle(Transport&, WaitStatistics& statistics) override {
        const std::uint64_t time_ns = now_ns();
        if (last_event_ns_ == 0) last_event_ns_ = time_ns;
        const std::uint64_t waited_ns = time_ns - last_event_ns_;
        if (waited_ns < polling_ns) {
            relax();
            return;
        }
        slack_.lower();
        const std::uint64_t wanted_ns =
            std::max(std::min(gap_ns_, 4 * waited_ns) / sleeps_per_gap, waited_ns / waited_per_sleep);
        const std::uint64_t sleep_ns =
            waited_ns < naps_for_ns ? nap_ns()
                                    : std::clamp(wanted_ns, shortest_sleep_ns(nap_ns()), longest_sleep_ns);
        timespec span{0, static_cast<long>(sleep_ns)};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &span, nullptr);
        ++statistics.sleeps;
        statistics.slept_ns += now_ns() - time_ns;
    }

    void end() override { slack_.restore(); }

  private:
    std::uint64_t last_event_ns_ = 0;  // or the beginning of the wait; 0: no idle poll yet
    std::uint64_t gap_ns_ = 0;
    TimerSlack slack_;
};

}  // namespace

std::unique_ptr<Waiter> make_timed_waiter() { return std::make_unique<TimedWaiter>(); }

}  // namespace thalweg
