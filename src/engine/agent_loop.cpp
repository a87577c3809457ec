// What the agent's thread does: look at its channels, and rest between looks.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>

#include "base/clock.h"
#include "base/cpu_mask.h"
#include "engine/agent.h"
#include "engine/channel.h"
#include "engine/waiters/timer_slack.h"

namespace thalweg {
namespace {

// While another thread holds the helm it polls for us.
constexpr std::uint64_t contended_ns = 50'000;
// Between two polls of a transport that cannot wake us.
constexpr std::uint64_t shortest_poll_ns = 20'000;
// A descriptor that never becomes readable must not hang an operation. What lingers may wait for a peer that
// does not listen before it joins: it is looked at after as long again, ten seconds at most.
constexpr std::uint64_t longest_listen_ns = 100'000'000, longest_patience_ns = 10'000'000'000;
// A starved execution widens its window after some polls in vain (execution.h).
constexpr std::uint64_t starved_listen_ns = 1'000'000;
// Times in a row that a transport cannot be listened to though nothing moves: it is another thread's turn
// then, one that was rung and has not run yet.
constexpr std::uint32_t most_unarmed = 2;
// Between two polls while it spins: a sixteenth of the time already waited, within these.
constexpr std::uint64_t shortest_spin_ns = 1'000, longest_spin_ns = 20'000;
// It is in somebody's way where it was switched out against its will this often per check.
constexpr std::uint64_t spin_check_ns = 20'000'000;
constexpr long switches_in_the_way = 3;
// And does not spin for so long then.
constexpr std::uint64_t no_spin_ns = 10'000'000'000;

constexpr std::array waking_ways{SleeperKind::umwait, SleeperKind::mwaitx};

long switches_against_will() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

}  // namespace

// What a look at the channels found.
struct Agent::Pass {
    std::uint32_t mine = 0;  // channels with something pending that nobody leads
    bool moved = false;      // something completed, or local work goes on
    bool stirred = false;    // part of a message moved
    bool contended = false;  // another thread is driving one of them
    bool deaf = false;       // one of them has no descriptor
    bool starved = false;
    bool pending = false;                  // not all of what is mine only lingers
    std::uint64_t lingered_ns = never_ns;  // what lingers has at least
    std::uint64_t time_ns = 0;
    std::uint64_t span_ns = never_ns;  // the least of theirs (arrivals.h)
    std::uint64_t next_ns = never_ns;  // when the first of those that are their owners' is not any more
};

void* Agent::enter(void* self) {
    static_cast<Agent*>(self)->settle_in();
    static_cast<Agent*>(self)->loop();
    static_cast<Agent*>(self)->ended_.store(true, std::memory_order_release);
    return nullptr;
}

void Agent::settle_in() {
    pthread_setname_np(pthread_self(), "thalweg-agent");
    // In the modes of the thread that made it: an MPI library whose progress it drives combines the numbers
    // of its own operations here. But no trap that the program has set for its threads ends it in ours.
    std::fenv_t with_traps;
    std::feholdexcept(&with_traps);
    prctl(PR_SET_TIMERSLACK, TimerSlack::low_ns, 0, 0, 0);
    const bool bound = options_.hardware_thread < 0 || run_on(options_.hardware_thread);
    if ((options_.hardware_thread < 0 || !bound) && !options_.mask.empty()) run_on(options_.mask);
    spins_ = false;
    if (!bound || options_.manner == AgentManner::sleep) return;
    for (SleeperKind kind : waking_ways) {
        if (!spins_ && sleepers_[static_cast<std::size_t>(kind)]) spinner_ = kind, spins_ = true;
    }
    if (!spins_ && options_.manner == AgentManner::spin) spinner_ = SleeperKind::pause, spins_ = true;
}

void Agent::loop() {
    for (;;) {
        const std::uint32_t seen = bell_.rings();
        if (stopping_.load(std::memory_order_seq_cst)) break;
        // Before arrivals_ is read, and pending() of any channel: who starts something from now on sets it
        // again. Whoever expects us lists its channel and then looks at alarm_set_; we take that back and
        // then look at the list. Either it finds the alarm to be set, or we find the channel: all four in one
        // order.
        std::uint64_t expired = 0;
        if (alarm_set_.load(std::memory_order_relaxed) && read(alarm_, &expired, sizeof expired) > 0)
            alarm_set_.store(false, std::memory_order_seq_cst);
        gather();
        const Pass pass = look();
        add(counters_.passes, 1);
        if (pass.moved) {
            useless_ = 0;
            quiet_since_ns_ = 0;
            stirs_ = 0;
            unarmed_ = 0;
        } else if (!pass.stirred || ++stirs_ >= most_stirs) {
            stirs_ = 0;
            rest(pass, seen);
        }
    }
    for (DrivenChannel* channel = listed_; channel != nullptr; channel = channel->next_listed_)
        hush(*channel);
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    add(counters_.cpu_ns,
        static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(used.tv_nsec));
}

void Agent::gather() {
    // In one order with alarm_set_ (loop).
    if (arrivals_.load(std::memory_order_seq_cst) == nullptr) return;
    DrivenChannel* channel = arrivals_.exchange(nullptr, std::memory_order_acquire);
    while (channel != nullptr) {
        DrivenChannel* const next = channel->next_listed_;
        channel->next_listed_ = listed_;
        listed_ = channel;
        channel = next;
    }
}

// Pre: it is out of the list. True: the channel may be gone from now on.
bool Agent::forget(DrivenChannel& channel) {
    std::uint32_t expected = DrivenChannel::listed;
    return channel.listed_.compare_exchange_strong(expected, DrivenChannel::unlisted,
                                                   std::memory_order_seq_cst);
}

Agent::Pass Agent::look() {
    Pass pass;
    for (DrivenChannel** link = &listed_; *link != nullptr;) {
        DrivenChannel& channel = **link;
        DrivenChannel* const next = channel.next_listed_;
        // Before pending() is read: who starts something now says `wanted` again.
        channel.listed_.store(DrivenChannel::listed, std::memory_order_seq_cst);
        if (!channel.busy()) {
            hush(channel);
            *link = next;
            if (!forget(channel)) {
                channel.next_listed_ = next;
                *link = &channel;
                link = &channel.next_listed_;
            }
            continue;
        }
        link = &channel.next_listed_;
        if (channel.led()) {
            hush(channel);
            continue;
        }
        if (const std::uint64_t due_ns = channel.due_ns(); due_ns != 0) {
            if (pass.time_ns == 0) pass.time_ns = now_ns();
            if (pass.time_ns < due_ns) {
                hush(channel);
                pass.next_ns = std::min(pass.next_ns, due_ns);
                continue;
            }
        }
        ++pass.mine;
        if (!channel.take_helm()) {
            pass.contended = pass.pending = true;
            continue;
        }
        const DrivenChannel::Found found = channel.drive_beside();  // somebody may lead it by now
        if (found == DrivenChannel::Found::progress || found == DrivenChannel::Found::work) {
            pass.moved = true;
        } else if (!pass.moved) {
            if (pass.time_ns == 0) pass.time_ns = now_ns();
            std::uint64_t span_ns = 0;
            if (channel.pending() != 0) {
                span_ns = channel.span_ns(pass.time_ns);
                pass.pending = true;
            } else {
                // It only needs an ear.
                const std::uint64_t lingered_ns = channel.lingered_ns(pass.time_ns);
                pass.lingered_ns = std::min(pass.lingered_ns, lingered_ns);
                if (channel.deaf_) span_ns = std::min(lingered_ns / 16, longest_listen_ns);
            }
            pass.span_ns = std::min(pass.span_ns, span_ns);
            pass.stirred |= found == DrivenChannel::Found::stirred;
            pass.deaf |= channel.deaf_;
            pass.starved |= channel.starved();
        }
        channel.leave_helm();
    }
    return pass;
}

void Agent::rest(const Pass& pass, std::uint32_t seen) {
    if (pass.mine == 0) {
        useless_ = 0;
        quiet_since_ns_ = 0;
        const bool hears_alarm = alarm_used_.load(std::memory_order_seq_cst);
        sleep(hears_alarm ? SleeperKind::epoll : SleeperKind::futex, seen, pass.next_ns);
        return;
    }
    const std::uint64_t time_ns = pass.time_ns != 0 ? pass.time_ns : now_ns();
    if (quiet_since_ns_ == 0) quiet_since_ns_ = time_ns;
    if (pass.pending && may_spin(time_ns)) {
        const std::uint64_t span_ns =
            std::clamp((time_ns - quiet_since_ns_) / 16, shortest_spin_ns, longest_spin_ns);
        sleep(spinner_, seen, time_ns + span_ns);
    } else if (pass.contended) {
        sleep(SleeperKind::futex, seen, time_ns + contended_ns);
    } else if (pass.deaf || !sleepers_[static_cast<std::size_t>(SleeperKind::epoll)]) {
        sleep(SleeperKind::futex, seen, time_ns + std::max(pass.span_ns, shortest_poll_ns));
    } else if (const std::uint64_t span_ns = merged(pass.span_ns);
               span_ns != 0 && useless_ >= useless_before_merge) {
        add(counters_.merged, 1);
        merge(seen, time_ns + span_ns);
    } else if (listen(pass, seen, time_ns)) {
        ++useless_;
        add(counters_.useless, 1);
    }
}

// Arms every transport, then sleeps on their descriptors. True: one of them became ready.
bool Agent::listen(const Pass& pass, std::uint32_t seen, std::uint64_t time_ns) {
    for (DrivenChannel* channel = listed_; channel != nullptr; channel = channel->next_listed_) {
        if (channel->led() || !channel->busy() || time_ns < channel->due_ns()) continue;
        if (!channel->take_helm()) return false;
        Transport& transport = channel->channel()->transport();
        const Status armed = transport.arm();
        const int descriptor = transport.wait_descriptor();
        channel->leave_helm();
        if (armed != Status::ok) {
            leave_turn(seen);
            return false;
        }
        if (channel->watched_) continue;
        channel->watched_ = sleeper(SleeperKind::epoll).watch(descriptor) == Status::ok;
        channel->deaf_ = !channel->watched_;
        if (channel->deaf_) return false;
    }
    unarmed_ = 0;
    std::uint64_t longest_ns = pass.starved ? starved_listen_ns : longest_listen_ns;
    if (!pass.pending) longest_ns = std::clamp(pass.lingered_ns, longest_listen_ns, longest_patience_ns);
    return sleep(SleeperKind::epoll, seen, std::min(time_ns + longest_ns, pass.next_ns));
}

// It could not listen. Where that goes on though nothing moves, it leaves its core for a moment.
void Agent::leave_turn(std::uint32_t seen) {
    if (++unarmed_ > most_unarmed) sleep(SleeperKind::futex, seen, now_ns() + shortest_poll_ns);
}

// Deaf to packets, not to the ranks of this host: what they ask for is done at once. All channels that have
// such a descriptor have the same, and one that is armed is enough to hear of a peer.
void Agent::merge(std::uint32_t seen, std::uint64_t until_ns) {
    int descriptor = -1;
    for (DrivenChannel* channel = listed_; channel != nullptr; channel = channel->next_listed_) {
        Transport& transport = channel->channel()->transport();
        if (transport.inside_descriptor() < 0 || channel->led() || !channel->busy()) continue;
        if (!channel->take_helm()) return;
        const Status armed = transport.arm_inside();
        if (armed == Status::ok) descriptor = transport.inside_descriptor();
        channel->leave_helm();
        if (armed != Status::ok) {
            leave_turn(seen);
            return;
        }
    }
    unarmed_ = 0;
    if (descriptor < 0 || inside_ == nullptr || inside_->watch(descriptor) != Status::ok) {
        sleep(SleeperKind::futex, seen, until_ns);
        return;
    }
    const std::uint64_t begin_ns = now_ns();
    inside_->sleep(bell_, seen, until_ns);
    inside_->let_go(descriptor);
    constexpr auto index = static_cast<std::size_t>(SleeperKind::epoll);
    add(counters_.sleeps[index], 1);
    add(counters_.slept_ns[index], now_ns() - begin_ns);
}

void Agent::hush(DrivenChannel& channel) {
    if (!channel.watched_) return;
    sleeper(SleeperKind::epoll).let_go(channel.channel()->transport().wait_descriptor());
    channel.watched_ = false;
}

// Not where it would take the CPU from somebody who wants it: then it is switched out against its will.
bool Agent::may_spin(std::uint64_t time_ns) {
    if (!spins_ || time_ns < no_spin_until_ns_) return false;
    if (time_ns - spin_checked_ns_ < spin_check_ns) return true;
    const long switches = switches_against_will();
    const bool in_the_way = spin_checked_ns_ != 0 &&
                            switches - involuntary_switches_ >= switches_in_the_way &&
                            time_ns - spin_checked_ns_ < 8 * spin_check_ns;
    involuntary_switches_ = switches;
    spin_checked_ns_ = time_ns;
    if (!in_the_way) return true;
    no_spin_until_ns_ = time_ns + no_spin_ns;
    add(counters_.yielded, 1);
    return false;
}

bool Agent::sleep(SleeperKind kind, std::uint32_t seen, std::uint64_t until_ns) {
    const std::uint64_t begin_ns = now_ns();
    const bool ready = sleeper(kind).sleep(bell_, seen, until_ns);
    const auto index = static_cast<std::size_t>(kind);
    add(counters_.sleeps[index], 1);
    add(counters_.slept_ns[index], now_ns() - begin_ns);
    return ready;
}

}  // namespace thalweg
