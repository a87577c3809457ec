// A channel that several threads may drive: the agent, and whoever starts, tests or waits for an operation.
//
// Who drives. The *helm* is held for one poll at a time by whoever wants to and finds it free; nobody waits
// for it longer than one poll of another. A thread that blocks in wait() takes the *lead*: as long as it
// leads it drives, the agent keeps its hands off this channel (and is not woken for it), and other threads
// that block here begin what they have started, and sleep until the lead is free or their operation is done.
// When it leaves with operations still pending, it rings the agent. So an operation in flight is always
// somebody's: the leader's, or the agent's. A transport tells its news once: whoever takes some while the
// leader sleeps wakes it.
//
// Whom nobody calls. A program that waits for what it has just started drives it itself, and a thread that is
// woken for it in between only takes the core from that. So where the last few waits came at once, starting
// does not ring: an alarm has the agent look whether this time nobody came (agent_delay_ns).
//
// Operations are posted to a queue without a lock, so that starting one waits for nobody; whoever holds the
// helm takes them from there in their order. An operation that the transport could not yet tell apart from
// the oldest in flight stays in the queue until it can.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/float_modes.h"
#include "engine/arrivals.h"
#include "engine/engine.h"

namespace thalweg {

class Agent;
class DrivenChannel;
class LeadersBell;

// One started run of an execution, which another thread may finish. Made with its plan; used again and again.
class Operation {
  public:
    // `execution` was made by the channel that this operation is started on (DrivenChannel::make), and
    // outlives it.
    explicit Operation(Execution& execution) : execution_(execution) {}
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    // Started and not complete. One load; when it says false, everything that the run wrote is visible, and
    // nobody else refers to this operation, its execution or its buffers any more.
    bool pending() const { return state_.load(std::memory_order_acquire) == State::pending; }
    // How the last run ended. Pre: not pending. ok, or the errors of Execution::start and advance.
    Status status() const { return result_; }

  private:
    friend class DrivenChannel;
    enum class State : std::uint8_t { idle, pending };

    Execution& execution_;
    Bindings bindings_;
    FloatModes modes_;  // of the thread that started it, where its reducer rounds
    std::uint32_t number_ = 0;
    Operation* next_ = nullptr;  // in the queue of posted ones, then in the list of running ones
    Status result_ = Status::ok;
    std::atomic<State> state_{State::idle};
};

class DrivenChannel {
  public:
    // `agent`: who drives when nobody leads; it outlives this. Null: only those who call drive. Pre: the
    // transport's capability any_thread, where agent is not null.
    DrivenChannel(std::shared_ptr<Channel> channel, Agent* agent);
    // Waits until the agent has let go, at most one pass of its. Pre: nothing is pending, nobody calls.
    ~DrivenChannel();
    DrivenChannel(const DrivenChannel&) = delete;
    DrivenChannel& operator=(const DrivenChannel&) = delete;

    const std::shared_ptr<Channel>& channel() const { return channel_; }

    // Makes an execution on this channel while others may be in flight on it. Throws std::bad_alloc.
    std::unique_ptr<Execution> make(std::shared_ptr<const Schedule> schedule);

    // As Execution::start, but from any thread, one at a time for what MPI orders; posts what can be posted
    // at once, and leaves the rest to the agent, which goes on with it after agent_delay_ns at the latest.
    // Allocates nothing; one system call where the agent sleeps.
    // Errors: invalid_argument (the operation is pending), unsupported (a forked child). What goes wrong
    // later, the operation's status() says. `lasts`: longer than it takes to wake a thread, so that an agent
    // with a core to spare posts it (AgentOptions::posts), unless another thread leads or this one is
    // expected to wait at once.
    Status start(Operation& operation, const Bindings& bindings, std::uint32_t number, bool lasts = false);
    // As start(), but all of it is the agent's: this thread posts nothing. Pre: there is an agent.
    Status hand_over(Operation& operation, const Bindings& bindings, std::uint32_t number);

    // Drives for one poll if the helm is free; what a Test does. Never blocks.
    void help();

    // Blocks until the operation is done, leading meanwhile; keeps the host MPI progressing, as wait() of
    // engine.h does. Returns status(). Adds to `statistics`. unsupported: a forked child. in_progress: the
    // clock passed until_ns (a sleep may add 1 ms). `goes_on`: this thread waits for another operation of
    // this channel right afterwards, so the agent is not woken in between; it looks after agent_delay_ns
    // whether nobody came.
    static constexpr std::uint64_t forever_ns = UINT64_MAX;
    Status wait(Operation& operation, WaitPolicy policy, WaitStatistics& statistics,
                std::uint64_t until_ns = forever_ns, bool goes_on = false);

    // start() and wait() in one, without waking the agent: a blocking operation.
    Status run(Operation& operation, const Bindings& bindings, std::uint32_t number, WaitPolicy policy,
               WaitStatistics& statistics);

    // What else touches the channel, such as making an Execution on it: runs `action` while nobody drives.
    template <typename Action>
    auto exclusively(Action&& action) {
        struct Helm {
            DrivenChannel& channel;
            explicit Helm(DrivenChannel& held) : channel(held) { channel.take_helm_soon(); }
            ~Helm() { channel.leave_helm(); }
        } const helm(*this);
        return action();
    }

    // Operations started and not complete.
    std::uint32_t pending() const { return pending_.load(std::memory_order_seq_cst); }
    // Something is pending; or all is complete, and what was sent has not left the process: the agent goes on
    // polling then, ever more seldom, though nobody here waits for it.
    bool busy() const { return pending() != 0 || (lingers() && !closing_.load(std::memory_order_seq_cst)); }
    bool led() const { return lead_.load(std::memory_order_seq_cst); }
    // The rest of what it has sent has not left the process yet: before it is destroyed, a channel that polls
    // for the same port is told (see_out).
    bool lingers() const { return lingers_.load(std::memory_order_seq_cst); }
    // Has the agent poll until all that has been sent over this transport's port, by whichever channel, has
    // left the process. Any thread. Pre: there is an agent.
    void see_out();

    // How long the agent leaves what was started to a thread that is expected to wait for it.
    static constexpr std::uint64_t agent_delay_ns = 1'000'000;

  private:
    friend class Agent;
    // What a poll found: nothing; something complete; copies or reductions that go on at the next one; or
    // that part of a message moved, so that it pays to look again before a sleep.
    enum class Found : std::uint8_t { nothing, progress, work, stirred };

    // Holds the helm as long as it lives.
    class Helm {
      public:
        explicit Helm(DrivenChannel& channel) : channel_(channel) { channel_.take_helm_soon(); }
        ~Helm() { channel_.leave_helm(); }
        Helm(const Helm&) = delete;
        Helm& operator=(const Helm&) = delete;

      private:
        DrivenChannel& channel_;
    };
    // In one order with posted_ (rest).
    bool take_helm() { return !helm_.exchange(true, std::memory_order_seq_cst); }
    void leave_helm() { helm_.store(false, std::memory_order_release); }
    void take_helm_soon();
    Status post(Operation& operation, const Bindings& bindings, std::uint32_t number);
    bool orphaned() const;
    void note_start(std::uint64_t time_ns);
    void note_wait();
    void learn_habit(bool at_once);
    bool waits_at_once() const;
    // Until then what is pending is its owner's; 0: it is the agent's.
    std::uint64_t due_ns() const { return due_ns_.load(std::memory_order_relaxed); }

    // Pre for all of these: the helm is held.
    Found drive();
    // By a thread that does not lead.
    Found drive_beside();
    void linger();
    // Of what lingers: for how long it has.
    std::uint64_t lingered_ns(std::uint64_t time_ns) const {
        return time_ns - std::min(time_ns, lingers_since_ns_);
    }
    void take_posted();
    void begin_runs();
    void complete(Operation** link, Status status);
    Awaited awaited() const;
    // Of what is awaited (arrivals.h).
    std::uint64_t span_ns(std::uint64_t time_ns) const { return traffic_.span_ns(time_ns, awaited()); }
    bool starved() const;

    void lead(Operation& operation, WaitPolicy policy, WaitStatistics& statistics, std::uint64_t until_ns);
    // Sleeps until the transport's descriptor is ready, or about until the next useful arrival. False: did
    // not sleep, because there is something to do; or others have moved something since `moved_beside`.
    bool rest(const Operation& operation, std::uint32_t moved_beside, WaitStatistics& statistics,
              std::uint32_t& useless, LeadersBell& bell);
    void follow(const Operation& operation, WaitStatistics& statistics);
    void wake_followers();

    std::shared_ptr<Channel> channel_;
    Agent* const agent_;

    // Written by every thread that starts, drives or waits.
    alignas(64) std::atomic<bool> helm_{false};
    std::atomic<bool> lead_{false};
    std::atomic<bool> lingers_{false}, closing_{false};
    std::atomic<std::uint32_t> pending_{0};
    std::atomic<Operation*> posted_{nullptr};   // newest first
    std::atomic<std::uint32_t> habit_{0};       // of waiting at once: how often, of late
    std::atomic<std::uint64_t> started_ns_{0};  // a start that nobody has waited for yet; 0: none
    std::atomic<std::uint64_t> due_ns_{0};
    std::atomic<std::uint32_t> completions_{0};  // what followers sleep on
    std::atomic<std::uint32_t> followers_{0};

    // Under the helm.
    alignas(64) Operation* queue_ = nullptr;  // taken from posted_, oldest first, not yet begun
    Operation* running_ = nullptr;            // oldest first
    BothWays traffic_;
    std::uint64_t sent_ = 0, lingers_since_ns_ = 0;  // where lingers_ is set
    int leaders_bell_ = -1;                          // while one that leads sleeps, and was not rung
    std::uint32_t moved_beside_ = 0;                 // counts what those who do not lead have moved

    // The agent's. listed_: see Agent::want().
    enum Listing : std::uint32_t { unlisted, listed, wanted };
    std::atomic<std::uint32_t> listed_{unlisted};
    DrivenChannel* next_listed_ = nullptr;
    bool watched_ = false;
    bool deaf_;  // the transport cannot wake a sleeper
};

}  // namespace thalweg
