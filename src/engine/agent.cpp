// The agent's life: its thread's beginning and end, who asks for it, forked children, what it counted.
#include "engine/agent.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/float_modes.h"
#include "base/log.h"
#include "base/signals_blocked.h"

namespace thalweg {
namespace {

// What thread-local variables and the C library take of a stack: the size given to pthread_create includes
// it. glibc tells (as it tells Java and Rust); elsewhere the system's own minimum is near.
std::size_t least_stack_bytes(const pthread_attr_t* attributes) {
    using Ask = std::size_t (*)(const pthread_attr_t*);
    const auto ask = reinterpret_cast<Ask>(dlsym(RTLD_DEFAULT, "__pthread_get_minstack"));
    return ask != nullptr ? ask(attributes) : 64 * 1024;
}

// The stack of a thread that the program makes without saying how large, or of its first one where that may
// be larger by now; bounded, since it may be without bound.
std::size_t program_stack_bytes() {
    constexpr std::size_t most_bytes = std::size_t{64} << 20;
    std::size_t bytes = 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    rlimit limit{};
    if (getrlimit(RLIMIT_STACK, &limit) == 0) bytes = std::max<std::size_t>(bytes, limit.rlim_cur);
    return std::min(bytes, most_bytes);  // RLIM_INFINITY is the largest number
}

// Between two looks at whether the thread has ended.
constexpr long exit_nap_ns = 50'000;

constinit std::mutex agents_mutex;
constinit Agent* agents = nullptr;

}  // namespace

// The child has one thread: the one that forked. Our locks may be held by threads that it lacks, so nothing
// of ours is used there any more.
void Agent::mark_children() {
    for (Agent* agent = agents; agent != nullptr; agent = agent->next_agent_) agent->in_child_ = true;
    agents_mutex.unlock();
}

Agent::Agent(const AgentOptions& options) : options_(options) {
    static std::once_flag handlers;
    std::call_once(handlers, [] {
        pthread_atfork([] { agents_mutex.lock(); }, [] { agents_mutex.unlock(); }, mark_children);
    });
    const std::lock_guard lock(agents_mutex);
    next_agent_ = agents;
    agents = this;
}

Agent::~Agent() {
    if (in_child()) return;
    stop();
    if (alarm_ >= 0) close(alarm_);
    const std::lock_guard lock(agents_mutex);
    Agent** link = &agents;
    while (*link != this) link = &(*link)->next_agent_;
    *link = next_agent_;
}

Status Agent::start() {
    if (in_child()) return Status::unsupported;
    const std::lock_guard lock(mutex_);
    if (running()) return Status::ok;
    if (!sleepers_[0]) {
        cpu_ = detect_cpu();
        std::string why;
        // All of them or, without memory for one, none.
        std::array<std::unique_ptr<Sleeper>, sleeper_kinds> made;
        for (std::size_t kind = 0; kind < sleeper_kinds; ++kind) {
            if (has_sleeper(SleeperKind{static_cast<std::uint8_t>(kind)}, cpu_, why))
                made[kind] = make_sleeper(SleeperKind{static_cast<std::uint8_t>(kind)}, cpu_,
                                          options_.manner == AgentManner::spin);
        }
        sleepers_ = std::move(made);
    }
    // Before it runs, because no memory is taken while operations do.
    if (!inside_) inside_ = make_sleeper(SleeperKind::epoll, cpu_, false);
    if (alarm_ < 0) make_alarm();
    stopping_.store(false, std::memory_order_relaxed);
    ended_.store(false, std::memory_order_relaxed);
    if (const Status status = create_thread(); status != Status::ok) return status;
    running_.store(true, std::memory_order_release);
    return Status::ok;
}

void Agent::give_room_to_program() {
    if (in_child()) return;
    const std::lock_guard lock(mutex_);
    options_.stack_bytes = std::max(options_.stack_bytes, program_stack_bytes());
}

// While there is no thread that listens.
void Agent::make_alarm() {
    Sleeper* const listener = sleepers_[static_cast<std::size_t>(SleeperKind::epoll)].get();
    if (listener == nullptr || bell_.descriptor() < 0) return;
    const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer < 0) return;
    if (listener->watch(timer) == Status::ok)
        alarm_ = timer;
    else
        close(timer);
}

Status Agent::create_thread() {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, least_stack_bytes(&attributes) + options_.stack_bytes);
    int error = 0;
    {
        const SignalsBlocked blocked;  // from the thread's birth on
        error = pthread_create(&thread_, &attributes, enter, this);
        // Room for the program's own functions is not to be had everywhere (ulimit -v, overcommit).
        if (constexpr std::size_t own_bytes = AgentOptions{}.stack_bytes;
            error != 0 && options_.stack_bytes > own_bytes) {
            pthread_attr_setstacksize(&attributes, least_stack_bytes(&attributes) + own_bytes);
            error = pthread_create(&thread_, &attributes, enter, this);
        }
    }
    pthread_attr_destroy(&attributes);
    if (error == 0) return Status::ok;
    if (!refused_.exchange(true)) {
        THALWEG_LOG_AT(warn, "no progress thread: %s; what needs one is left to the MPI library",
                       std::strerror(error));
    }
    return Status::out_of_memory;
}

bool Agent::stop_within(std::uint64_t most_ns) {
    if (in_child()) return true;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;  // perhaps the call that was interrupted has it
    if (!running()) return true;
    // It ends the process itself, as an MPI library does that finds an error while it is driven.
    if (pthread_equal(thread_, pthread_self()) != 0) return false;
    stopping_.store(true, std::memory_order_seq_cst);
    bell_.ring();
    for (const std::uint64_t begin_ns = now_ns(); !ended_.load(std::memory_order_acquire);) {
        if (now_ns() - begin_ns > most_ns) return false;
        const timespec nap{0, exit_nap_ns};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
    }
    pthread_join(thread_, nullptr);
    running_.store(false, std::memory_order_release);
    return true;
}

void Agent::stop() {
    if (in_child()) return;
    const std::lock_guard lock(mutex_);
    if (running()) {
        stopping_.store(true, std::memory_order_seq_cst);
        bell_.ring();
        pthread_join(thread_, nullptr);
        running_.store(false, std::memory_order_release);
    }
    forget_all();
}

void Agent::want(DrivenChannel& channel) {
    list(channel);
    bell_.ring();
}

// The alarm is set at most once until it has gone off, whoever has done so: what was started later is then
// looked at too, and if it is early, again when its time has come. Who wants it first wakes the thread, which
// has slept without an ear for it until then.
void Agent::expect(DrivenChannel& channel) {
    list(channel);
    if (!running() || alarm_ < 0 || !alarm_used_.exchange(true, std::memory_order_seq_cst)) {
        bell_.ring();
        return;
    }
    const itimerspec once{{0, 0}, {0, static_cast<long>(DrivenChannel::agent_delay_ns)}};
    if (!alarm_set_.exchange(true, std::memory_order_seq_cst)) timerfd_settime(alarm_, 0, &once, nullptr);
}

// A channel is on our list while listed_ is not `unlisted`; whoever changes it from that puts it there.
// `wanted` says that somebody asked again: then forget() does not take it off.
void Agent::list(DrivenChannel& channel) {
    if (channel.listed_.exchange(DrivenChannel::wanted, std::memory_order_seq_cst) ==
        DrivenChannel::unlisted) {
        DrivenChannel* newest = arrivals_.load(std::memory_order_relaxed);
        do {
            channel.next_listed_ = newest;
            // In one order with alarm_set_ (expect, loop).
        } while (!arrivals_.compare_exchange_weak(newest, &channel, std::memory_order_seq_cst,
                                                  std::memory_order_relaxed));
    }
    if (!running() && !refused_.load(std::memory_order_relaxed)) start();
}

void Agent::let_go(DrivenChannel&) {
    bell_.ring();
    if (running()) return;
    const std::lock_guard lock(mutex_);
    if (!running()) forget_all();
}

// Pre: the thread does not run.
void Agent::forget_all() {
    gather();
    while (listed_ != nullptr) {
        DrivenChannel* const channel = listed_;
        listed_ = channel->next_listed_;
        channel->listed_.store(DrivenChannel::unlisted, std::memory_order_release);
    }
}

AgentStatistics Agent::statistics() const {
    AgentStatistics all;
    const std::lock_guard lock(mutex_);
    all.running = running();
    all.passes = counters_.passes.load(std::memory_order_relaxed);
    all.merged_sleeps = counters_.merged.load(std::memory_order_relaxed);
    all.useless = counters_.useless.load(std::memory_order_relaxed);
    all.postings = counters_.postings.load(std::memory_order_relaxed);
    all.yielded = counters_.yielded.load(std::memory_order_relaxed);
    timespec used{};
    clockid_t clock;
    if (!all.running || pthread_getcpuclockid(thread_, &clock) != 0 || clock_gettime(clock, &used) != 0)
        used = {};
    in_standard_modes([&] {
        all.cpu_seconds = seconds(counters_.cpu_ns.load(std::memory_order_relaxed)) +
                          static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
        for (std::size_t kind = 0; kind < sleeper_kinds; ++kind) {
            all.uses[kind].sleeps = counters_.sleeps[kind].load(std::memory_order_relaxed);
            all.uses[kind].seconds = seconds(counters_.slept_ns[kind].load(std::memory_order_relaxed));
        }
    });
    return all;
}

std::vector<std::string> Agent::ways_to_sleep() const {
    const AgentStatistics all = statistics();
    // Asked before its first start, the agent has not looked at the CPU yet.
    const Cpu cpu = sleepers_[0] ? cpu_ : detect_cpu();
    std::vector<std::string> sentences;
    for (std::size_t kind = 0; kind < sleeper_kinds; ++kind)
        sentences.push_back(describe(SleeperKind{static_cast<std::uint8_t>(kind)}, cpu, all.uses[kind]));
    return sentences;
}

}  // namespace thalweg
