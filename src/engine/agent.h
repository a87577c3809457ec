// The progress thread: advances started operations while the program computes, or sits in a native call.
//
// One per process. It is free when idle (asleep on its bell, no wake-up at all), cheap when busy (asleep
// until the network or the prediction of the next useful arrival wakes it), and it never calls the program's
// MPI: only what a transport with the capability any_thread does by itself. Where that calls an MPI library,
// the program's functions may run here, too (give_room_to_program). No signal is for it but those of its own
// faults (SignalsBlocked), which a handler of the program's may mend on the agent's stack; floating-point
// exceptions do not trap. In a forked child it does not exist, and what it drives cannot be started or waited
// for there.
//
//   bell ──> look at every channel with something pending, unless a thread of the program leads it
//              something moved: look again
//              nothing pending, or only what somebody is expected to wait for: sleep on the bell (and an
//              alarm) wake-ups were useless: sleep by the clock until the next message is near else: arm the
//              transports, sleep on their descriptors
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/driven.h"
#include "engine/waiters/sleeper.h"

namespace thalweg {

// How it passes time while something is pending. watch: by an instruction that leaves the core to its other
// hardware thread (umwait, mwaitx), where the CPU has one, else as sleep. spin: watch, or pause.
enum class AgentManner : std::uint8_t { sleep, watch, spin };

struct AgentOptions {
    AgentManner manner = AgentManner::sleep;
    int hardware_thread = -1;  // the one it is bound to, as in taskset; -1: none
    // It has a core to spare: it posts what lasts, in the place of the thread that starts it. Then the
    // kernel's work for these messages is done where the agent runs too, and the program's thread loses
    // nothing to it.
    bool posts = false;
    // Its stack beyond what the C library and thread-local variables take: address space, of which UCX's
    // deepest call touches about 16 KiB. Half of it is for a signal handler of the program's.
    std::size_t stack_bytes = 512 * 1024;
    // Where it may run while it is bound to none (base/cpu_mask.h); lives as long as the agent. Empty: where
    // the thread that makes it may, which the program may have bound to one that it computes on.
    std::span<const unsigned long> mask = {};
};

struct AgentStatistics {
    bool running = false;
    std::uint64_t passes = 0;         // looks at its channels
    std::uint64_t merged_sleeps = 0;  // by the prediction, deaf to the network
    std::uint64_t useless = 0;        // wake-ups by the network that completed nothing
    std::uint64_t postings = 0;       // starts that were left to it
    std::uint64_t yielded = 0;        // times it gave up spinning because somebody else wanted its CPU
    double cpu_seconds = 0;
    SleeperUses uses;
};

class Agent {
  public:
    explicit Agent(const AgentOptions& options);
    // Stops. Pre: no DrivenChannel refers to it.
    ~Agent();
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    // Starts the thread if it does not run; it also starts by itself at the first operation that it is wanted
    // for. Errors: unsupported (a forked child), out_of_memory (the system refuses a thread; logged once, and
    // operations then progress in the calls of their owners only). Its first call throws std::bad_alloc, too,
    // and may be made again.
    Status start();
    // From its next start on its stack has the size that the program's threads have theirs: where a transport
    // may call an MPI library, whose progress runs reductions and callbacks of the program's, in operations
    // that are not ours. Address space only; at most 64 MiB, where the program's has no bound.
    void give_room_to_program();
    // Ends the thread; operations that are pending are left to their owners' calls. Before MPI_Finalize, and
    // before the process's exit handlers run. It may be started again.
    void stop();
    // stop() for the end of a process, which a signal handler may bring about in the midst of a call of ours:
    // then the thread may wait for a lock that is never given back, and is left alone after `most_ns`. Its
    // own call, in the midst of its work, does nothing. False: it is still there.
    bool stop_within(std::uint64_t most_ns);
    bool running() const { return running_.load(std::memory_order_acquire); }

    AgentStatistics statistics() const;
    // One sentence for each way to sleep: how often it ran, or why it could not.
    std::vector<std::string> ways_to_sleep() const;

  private:
    friend class DrivenChannel;
    struct Pass;

    // By any thread: something is pending on this channel and nobody leads it. expect: somebody will at once;
    // looks at the channel no later than its agent_delay_ns, without a wake-up now.
    void want(DrivenChannel& channel);
    void expect(DrivenChannel& channel);
    void list(DrivenChannel& channel);
    // By the channel's destructor: makes the thread look at the channel once more, and so forget it.
    void let_go(DrivenChannel& channel);
    // Whether it is there to post what lasts; whoever leaves that to it counts it.
    bool posts() const { return options_.posts && running(); }
    void count_posting() { counters_.postings.fetch_add(1, std::memory_order_relaxed); }
    bool in_child() const { return in_child_.load(std::memory_order_relaxed); }
    static void mark_children();

    static void* enter(void* self);
    Status create_thread();
    void make_alarm();
    void settle_in();
    void loop();
    void gather();
    Pass look();
    bool forget(DrivenChannel& channel);
    void forget_all();
    void rest(const Pass& pass, std::uint32_t seen);
    bool listen(const Pass& pass, std::uint32_t seen, std::uint64_t time_ns);
    void leave_turn(std::uint32_t seen);
    void merge(std::uint32_t seen, std::uint64_t until_ns);
    void hush(DrivenChannel& channel);
    bool may_spin(std::uint64_t time_ns);
    bool sleep(SleeperKind kind, std::uint32_t seen, std::uint64_t until_ns);
    Sleeper& sleeper(SleeperKind kind) { return *sleepers_[static_cast<std::size_t>(kind)]; }

    AgentOptions options_;
    Cpu cpu_;
    Doorbell bell_;
    int alarm_ = -1;  // a timer that the thread hears of; set before the thread runs, -1 where there is none
    std::atomic<bool> alarm_used_{false}, alarm_set_{false};
    std::atomic<DrivenChannel*> arrivals_{nullptr};  // listed by want(), newest first, not yet gathered
    std::atomic<bool> running_{false}, stopping_{false}, ended_{false}, refused_{false}, in_child_{false};
    mutable std::mutex mutex_;  // start, stop, statistics
    pthread_t thread_{};
    Agent* next_agent_ = nullptr;  // of this process, for the fork handlers

    // The thread's own.
    DrivenChannel* listed_ = nullptr;
    std::array<std::unique_ptr<Sleeper>, sleeper_kinds> sleepers_;
    std::unique_ptr<Sleeper> inside_;  // listens to the ranks of this host alone; null where it cannot
    SleeperKind spinner_ = SleeperKind::pause;
    bool spins_ = false;
    std::uint32_t stirs_ = 0;           // looks in a row that found part of a message moving
    std::uint32_t useless_ = 0;         // wake-ups in vain since something moved
    std::uint32_t unarmed_ = 0;         // times in a row that it could not listen, and nothing moved either
    std::uint64_t quiet_since_ns_ = 0;  // the first look in vain since something moved; 0: none yet
    std::uint64_t spin_checked_ns_ = 0, no_spin_until_ns_ = 0;
    long involuntary_switches_ = 0;

    // Written by the thread, postings by those that start something; read by statistics().
    struct Counters {
        std::atomic<std::uint64_t> passes{0}, merged{0}, useless{0}, yielded{0}, cpu_ns{0}, postings{0};
        std::array<std::atomic<std::uint64_t>, sleeper_kinds> sleeps{}, slept_ns{};
    };
    Counters counters_;
};

}  // namespace thalweg
