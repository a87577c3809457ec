#include "engine/execution.h"

namespace thalweg {
namespace {

// Idle polls between two calls of drive_host(): it costs about as much as a poll. Sleeping waiters poll
// seldom, so they drive the host every time.
constexpr std::uint64_t polls_per_drive = 16;

}  // namespace

const char* name_of(WaitPolicy policy) { return policy == WaitPolicy::spin ? "spin" : "sleep"; }

Status wait(Execution& execution, WaitPolicy policy, WaitStatistics& statistics) {
    Execution::Impl& impl = *execution.impl_;
    Transport& transport = impl.channel->transport();
    Waiter& waiter = impl.channel->waiter(policy);
    Status status = impl.advance();
    ++statistics.polls;
    if (status != Status::in_progress) return status;
    waiter.begin();
    std::uint64_t idle_polls = 0;
    std::uint64_t events = impl.events;
    do {
        if (impl.events != events) {
            events = impl.events;
            waiter.progressed();
        } else if (!impl.has_local_work()) {
            const std::uint64_t sleeps = statistics.sleeps;
            waiter.idle(transport, statistics);
            if (statistics.sleeps != sleeps || ++idle_polls % polls_per_drive == 0) transport.drive_host();
        }
        status = impl.advance();
        ++statistics.polls;
    } while (status == Status::in_progress);
    waiter.end();
    return status;
}

}  // namespace thalweg
