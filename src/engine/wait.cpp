#include <sched.h>

#include "base/clock.h"
#include "engine/execution.h"

namespace thalweg {
namespace {

// Idle polls between two calls of drive_host(): it costs about as much as a poll. Sleeping waiters poll
// seldom, so they drive the host every time.
constexpr std::uint64_t polls_per_drive = 16;
// Threads that wait together sleep after so long without an event: some slices of whoever keeps the cores.
constexpr std::uint64_t longest_yields_ns = 20'000'000;

}  // namespace

const char* name_of(WaitPolicy policy) { return policy == WaitPolicy::spin ? "spin" : "sleep"; }

constinit std::atomic<std::uint32_t> Blocked::threads_{0};

bool Blocked::yielded() {
    if (!counted_) return false;
    const std::uint64_t time_ns = now_ns();
    if (idle_since_ns_ == 0) idle_since_ns_ = time_ns;
    if (time_ns - idle_since_ns_ > longest_yields_ns) {
        leave();
        return false;
    }
    if (threads_.load(std::memory_order_relaxed) < 2) return false;
    sched_yield();
    return true;
}

Status wait(Execution& execution, WaitPolicy policy, WaitStatistics& statistics) {
    Execution::Impl& impl = *execution.impl_;
    Transport& transport = impl.channel->transport();
    Waiter& waiter = impl.channel->waiter(policy);
    Status status = impl.advance();
    ++statistics.polls;
    if (status != Status::in_progress) return status;
    waiter.begin();
    Blocked blocked(policy);
    std::uint64_t idle_polls = 0;
    std::uint64_t events = impl.events;
    do {
        if (impl.events != events) {
            events = impl.events;
            waiter.progressed();
            blocked.progressed();
        } else if (!impl.has_local_work()) {
            const std::uint64_t sleeps = statistics.sleeps;
            if (!blocked.yielded()) waiter.idle(transport, statistics);
            if (statistics.sleeps != sleeps || ++idle_polls % polls_per_drive == 0) transport.drive_host();
        }
        status = impl.advance();
        ++statistics.polls;
    } while (status == Status::in_progress);
    waiter.end();
    return status;
}

}  // namespace thalweg
