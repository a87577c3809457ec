// How threads wait for an operation of a driven channel: one leads, the others follow.
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <utility>

#include "base/clock.h"
#include "engine/agent.h"
#include "engine/driven.h"
#include "engine/execution.h"
#include "engine/waiters/between_polls.h"
#include "engine/waiters/leaders_bell.h"
#include "engine/waiters/relax.h"
#include "engine/waiters/timer_slack.h"

namespace thalweg {
namespace {

// As in wait() of engine.h: idle polls between two calls of drive_host().
constexpr std::uint64_t polls_per_drive = 16;
// The host MPI is driven at least this often by a thread that blocks.
constexpr long longest_rest_ns = 1'000'000;
// Times in a row that a transport cannot be listened to though nothing moves: it is another thread's turn
// then, one that was rung and has not run yet.
constexpr std::uint32_t most_unarmed = 2;

bool is_over(std::uint64_t until_ns) { return until_ns != DrivenChannel::forever_ns && now_ns() >= until_ns; }

void nap(std::uint64_t ns) {
    const timespec span{0, static_cast<long>(ns)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &span, nullptr);
}

}  // namespace

Status DrivenChannel::wait(Operation& operation, WaitPolicy policy, WaitStatistics& statistics,
                           std::uint64_t until_ns, bool goes_on) {
    if (orphaned()) return Status::unsupported;
    note_wait();
    while (operation.pending()) {
        if (is_over(until_ns)) return Status::in_progress;
        if (lead_.exchange(true, std::memory_order_seq_cst)) {
            // What is not begun yet, such as this one (run()): who leads may have just gone to sleep.
            if (posted_.load(std::memory_order_relaxed) != nullptr) {
                const Helm helm(*this);
                drive_beside();
                ++statistics.polls;
            }
            follow(operation, statistics);
            continue;
        }
        lead(operation, policy, statistics, until_ns);
        lead_.store(false, std::memory_order_seq_cst);
        wake_followers();
        // The agent looked at lead_ before it slept without us; it looks again when it is rung.
        if (agent_ == nullptr || !busy()) continue;
        const bool comes_back = goes_on && !operation.pending();
        due_ns_.store(comes_back ? now_ns() + agent_delay_ns : 0, std::memory_order_relaxed);
        if (comes_back)
            agent_->expect(*this);
        else
            agent_->want(*this);
    }
    return operation.status();
}

void DrivenChannel::lead(Operation& operation, WaitPolicy policy, WaitStatistics& statistics,
                         std::uint64_t until_ns) {
    Transport& transport = channel_->transport();
    Waiter& waiter = channel_->waiter(policy);
    const bool listens = policy == WaitPolicy::sleep && transport.capabilities().wakeup_descriptor;
    std::uint64_t idle_polls = 0, idle_since_ns = 0;
    std::uint32_t useless = 0, stirs = 0, unarmed = 0;
    TimerSlack slack;
    LeadersBell bell;
    waiter.begin();
    Blocked blocked(policy, until_ns != forever_ns);
    while (operation.pending()) {
        take_helm_soon();
        const Found found = drive();
        const std::uint32_t moved_beside = moved_beside_;
        leave_helm();
        ++statistics.polls;
        if (is_over(until_ns)) break;
        if (found == Found::stirred && ++stirs < most_stirs) continue;
        stirs = 0;
        if (found == Found::progress || found == Found::work) {
            idle_since_ns = 0;
            useless = unarmed = 0;
            waiter.progressed();
            blocked.progressed();
            continue;
        }
        if (!operation.pending()) break;
        bool slept = false;
        if (blocked.yielded()) {
            idle_since_ns = 0;
        } else if (!listens) {
            const std::uint64_t sleeps = statistics.sleeps;
            waiter.idle(transport, statistics);
            slept = statistics.sleeps != sleeps;
        } else if (idle_since_ns == 0) {
            idle_since_ns = now_ns();
        } else if (now_ns() - idle_since_ns < polling_ns) {
            // About the cost of a sleep on the descriptor. No yield (waiters/timed.cpp): what it waits for
            // wakes it.
            relax();
        } else {
            slack.lower();
            slept = rest(operation, moved_beside, statistics, useless, bell);
            unarmed = slept ? 0 : unarmed + 1;
            if (unarmed > most_unarmed) nap(nap_ns());
        }
        if (slept || ++idle_polls % polls_per_drive == 0) {
            const Helm helm(*this);  // the transport is used by one thread at a time, for this too
            transport.drive_host();
        }
    }
    waiter.end();
}

bool DrivenChannel::rest(const Operation& operation, std::uint32_t moved_beside, WaitStatistics& statistics,
                         std::uint32_t& useless, LeadersBell& bell) {
    const std::uint64_t time_ns = now_ns();
    const int rung_by = bell.descriptor();
    take_helm_soon();
    if (moved_beside_ != moved_beside || !operation.pending()) {
        leave_helm();
        return false;
    }
    Transport& transport = channel_->transport();
    const std::uint64_t merge_ns = useless < useless_before_merge ? 0 : merged(span_ns(time_ns));
    // Deaf to packets, not to the ranks of this host: what they ask for is done at once.
    const bool merges = merge_ns != 0;
    const int descriptor = merges ? transport.inside_descriptor() : transport.wait_descriptor();
    const bool naps = merges && descriptor < 0;
    // Nobody inside to listen to is no reason not to sleep; something to do is.
    const Status asked = merges ? transport.arm_inside() : transport.arm();
    const bool armed = asked == Status::ok || (naps && asked == Status::unsupported);
    if (armed) leaders_bell_ = rung_by;
    leave_helm();
    if (!armed) return false;
    // Who starts something puts it into the queue and then tries to take the helm (start()); we let go of the
    // helm and then look at the queue: either it begins it, or we see it and do not sleep.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool begins = posted_.load(std::memory_order_relaxed) != nullptr;
    // Of a descriptor below zero nothing is heard.
    pollfd listened[] = {{descriptor, POLLIN, 0}, {rung_by, POLLIN, 0}};
    const timespec span{0, begins ? 0 : merges ? static_cast<long>(merge_ns) : longest_rest_ns};
    ppoll(listened, 2, &span, nullptr);
    if (!merges && listened[0].revents != 0) ++useless;
    // Who rings has the helm, and does so once: from here on nobody does.
    take_helm_soon();
    const bool rung = std::exchange(leaders_bell_, -1) < 0 && rung_by >= 0;
    leave_helm();
    if (rung) bell.silence();
    ++statistics.sleeps;
    statistics.slept_ns += now_ns() - time_ns;
    return true;
}

// Sleeps until something completes, the lead is free, or 1 ms is over. The leader counts completions_ up and
// then reads followers_; a follower counts followers_ up and then reads completions_ (the kernel compares it
// with `seen`): one of them sees the other's.
void DrivenChannel::follow(const Operation& operation, WaitStatistics& statistics) {
    const std::uint32_t seen = completions_.load(std::memory_order_seq_cst);
    followers_.fetch_add(1, std::memory_order_seq_cst);
    if (operation.pending() && led()) {
        const std::uint64_t time_ns = now_ns();
        const timespec span{0, longest_rest_ns};
        syscall(SYS_futex, &completions_, FUTEX_WAIT_PRIVATE, seen, &span, nullptr, 0);
        ++statistics.sleeps;
        statistics.slept_ns += now_ns() - time_ns;
    }
    followers_.fetch_sub(1, std::memory_order_seq_cst);
}

void DrivenChannel::wake_followers() {
    completions_.fetch_add(1, std::memory_order_seq_cst);
    if (followers_.load(std::memory_order_seq_cst) != 0)
        syscall(SYS_futex, &completions_, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

}  // namespace thalweg
