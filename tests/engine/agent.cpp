// The agent: there when wanted and only then, free when idle, and operations end without their owners' help.
#include "engine/agent.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>

#include <atomic>

#include "engine/agent_group.h"
#include "engine/combined_message.h"

namespace thalweg {
namespace {

using test::agent_threads;
using test::AgentGroup;
using test::AgentGroupOptions;
using test::CombinedMessage;
using test::comes_to_rest;
using test::in_time;
using test::RingRun;
using namespace std::chrono_literals;

AgentGroupOptions ranks(int size) {
    AgentGroupOptions options;
    options.size = size;
    return options;
}

TEST(agent, lives_from_the_first_operation_that_outlasts_its_call_to_stop) {
    AgentGroup group({});
    RingRun first(group.channel(0), 0, 2, 3, 100), second(group.channel(1), 1, 2, 3, 100);
    EXPECT_TRUE(agent_threads().empty());
    ASSERT_EQ(first.start(0), Status::ok);
    EXPECT_TRUE(first.operation.pending());
    EXPECT_TRUE(group.agent(0).running());
    EXPECT_FALSE(group.agent(1).running());
    ASSERT_TRUE(in_time([] { return agent_threads().size() == 1; }));
    ASSERT_EQ(second.start(0), Status::ok);
    ASSERT_TRUE(in_time([&] { return !first.operation.pending() && !second.operation.pending(); }));
    EXPECT_TRUE(first.right() && second.right());
    group.agent(0).stop();
    group.agent(1).stop();
    EXPECT_FALSE(group.agent(0).running());
    EXPECT_TRUE(in_time([] { return agent_threads().empty(); }));  // the kernel may show it a moment longer
    // It may be had again.
    ASSERT_EQ(first.start(1), Status::ok);
    ASSERT_EQ(second.start(1), Status::ok);
    ASSERT_TRUE(in_time([&] { return !first.operation.pending() && !second.operation.pending(); }));
    EXPECT_TRUE(first.right() && second.right());
}

TEST(agent, an_operation_without_messages_needs_none) {
    AgentGroup group(ranks(1));
    RingRun run(group.channel(0), 0, 1, 0, 8);
    ASSERT_EQ(run.start(0), Status::ok);
    EXPECT_FALSE(run.operation.pending());
    EXPECT_EQ(run.operation.status(), Status::ok);
    EXPECT_FALSE(group.agent(0).running());
}

TEST(agent, what_is_handed_over_is_its_own_from_the_first_step) {
    AgentGroup group(ranks(1));
    RingRun run(group.channel(0), 0, 1, 0, 8);
    ASSERT_EQ(run.driven.hand_over(run.operation, {nullptr, run.out.data(), {}}, 0), Status::ok);
    ASSERT_TRUE(in_time([&] { return !run.operation.pending(); }));
    EXPECT_EQ(run.operation.status(), Status::ok);
    EXPECT_TRUE(group.agent(0).running());  // of what is started here the starting thread makes an end
}

TEST(agent, with_a_core_to_spare_it_posts_what_lasts) {
    for (const bool posts : {false, true}) {
        AgentGroupOptions options = ranks(1);
        options.agent.posts = posts;
        AgentGroup group(options);
        ASSERT_EQ(group.agent(0).start(), Status::ok);
        RingRun run(group.channel(0), 0, 1, 0, 8);
        const Bindings bindings{nullptr, run.out.data(), {}};
        std::uint32_t number = 0;
        const auto start = [&](bool lasts) {
            EXPECT_EQ(run.driven.start(run.operation, bindings, number++, lasts), Status::ok);
        };
        const auto postings = [&] { return group.agent(0).statistics().postings; };
        // Without messages the thread that posts an operation ends it, too.
        start(false);
        EXPECT_FALSE(run.operation.pending());
        EXPECT_EQ(postings(), 0u);
        start(true);
        EXPECT_EQ(run.operation.pending() || posts, posts);
        ASSERT_TRUE(in_time([&] { return !run.operation.pending(); }));
        EXPECT_EQ(postings(), posts ? 1u : 0u);
        // Whoever waits at once, again and again, posts for himself. Who loses the core between a start and
        // its wait has not waited at once.
        bool posts_himself = false;
        for (int tries = 0; tries < 100 && !posts_himself; ++tries) {
            for (int i = 0; i < 10; ++i) {
                start(true);
                WaitStatistics statistics;
                EXPECT_EQ(run.driven.wait(run.operation, WaitPolicy::sleep, statistics), Status::ok);
            }
            const std::uint64_t until_habit = postings();
            EXPECT_EQ(until_habit != 0, posts);
            start(true);
            ASSERT_TRUE(in_time([&] { return !run.operation.pending(); }));
            posts_himself = postings() == until_habit;
        }
        EXPECT_TRUE(posts_himself);
    }
}

// Agents that sleep and agents that spin, in the same five seconds.
TEST(agent, idle_it_is_never_woken) {
    std::vector<std::unique_ptr<AgentGroup>> groups;
    for (AgentManner manner : {AgentManner::sleep, AgentManner::spin}) {
        AgentGroupOptions options;
        options.agent.manner = manner;
        options.network.wakeup_descriptor = true;
        groups.push_back(std::make_unique<AgentGroup>(options));
        AgentGroup& group = *groups.back();
        RingRun first(group.channel(0), 0, 2, 3, 100), second(group.channel(1), 1, 2, 3, 100);
        ASSERT_EQ(first.start(0), Status::ok);
        ASSERT_EQ(second.start(0), Status::ok);
        ASSERT_TRUE(in_time([&] { return !first.operation.pending() && !second.operation.pending(); }));
    }
    ASSERT_TRUE(in_time([&] { return agent_threads().size() >= groups.size(); }));
    const auto threads = agent_threads();
    const auto switches = [&] {
        long sum = 0;
        for (const std::string& thread : threads) sum += test::switches_of(thread);
        return sum;
    };
    EXPECT_TRUE(comes_to_rest(switches, 0, 5s));
    for (const std::string& thread : threads) EXPECT_GT(test::switches_of(thread), 0);
}

// A channel whose operation waits for a late peer costs next to nothing where the transport can wake.
TEST(agent, waiting_for_a_late_peer_it_sleeps) {
    AgentGroupOptions options;
    options.network.wakeup_descriptor = true;
    AgentGroup group(options);
    RingRun first(group.channel(0), 0, 2, 1, 100), second(group.channel(1), 1, 2, 1, 100);
    ASSERT_EQ(first.start(0), Status::ok);
    ASSERT_TRUE(in_time([] { return agent_threads().size() == 1; }));
    const std::string thread = agent_threads()[0];
    EXPECT_TRUE(comes_to_rest([&] { return test::switches_of(thread); }, 16)) << "ten safety looks a second";
    ASSERT_EQ(second.start(0), Status::ok);
    ASSERT_TRUE(in_time([&] { return !first.operation.pending() && !second.operation.pending(); }));
    EXPECT_TRUE(first.right());
    EXPECT_GT(group.agent(0).statistics().uses[static_cast<int>(SleeperKind::epoll)].sleeps, 0u);
}

TEST(agent, no_signal_reaches_it_but_of_its_faults) {
    AgentGroup group(ranks(1));
    ASSERT_EQ(group.agent(0).start(), Status::ok);
    // It gives itself its name.
    ASSERT_TRUE(in_time([] { return agent_threads().size() == 1; }));
    const auto threads = agent_threads();
    const auto blocked = std::strtoull(test::status_of(threads[0], "SigBlk").c_str(), nullptr, 16);
    for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGPROF, SIGRTMIN, SIGRTMAX})
        EXPECT_NE(blocked & (1ull << (signal - 1)), 0u) << signal;
    // Of its own faults it hears: blocked, they would end the process in spite of the program's handler.
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
        EXPECT_EQ(blocked & (1ull << (fault - 1)), 0u) << fault;
    // And the maker's mask is as it was.
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    EXPECT_EQ(sigismember(&mine, SIGTERM), 0);
}

// A blocking operation is its caller's alone: no agent is started for it.
TEST(agent, a_blocking_operation_does_not_wake_it) {
    AgentGroup group({});
    RingRun first(group.channel(0), 0, 2, 5, 100), second(group.channel(1), 1, 2, 5, 100);
    std::thread peer([&] {
        WaitStatistics statistics;
        EXPECT_EQ(second.driven.run(second.operation, {nullptr, second.out.data(), {}}, 0, WaitPolicy::sleep,
                                    statistics),
                  Status::ok);
    });
    WaitStatistics statistics;
    EXPECT_EQ(
        first.driven.run(first.operation, {nullptr, first.out.data(), {}}, 0, WaitPolicy::sleep, statistics),
        Status::ok);
    peer.join();
    EXPECT_FALSE(group.agent(0).running());
    EXPECT_FALSE(group.agent(1).running());
}

// More operations than the transport tells apart wait in the queue, in their order.
TEST(agent, operations_beyond_the_transports_tags_wait_their_turn) {
    AgentGroupOptions options;
    options.network.live_operations = 2;
    AgentGroup group(options);
    std::vector<std::unique_ptr<RingRun>> runs;
    for (std::uint32_t number = 0; number < 12; ++number) {
        for (int rank = 0; rank < 2; ++rank)
            runs.push_back(std::make_unique<RingRun>(group.channel(rank), rank, 2, 3, 64));
    }
    for (std::size_t i = 0; i < runs.size(); i += 2)
        ASSERT_EQ(runs[i]->start(static_cast<std::uint32_t>(i / 2)), Status::ok);
    EXPECT_EQ(group.channel(0).pending(), 12u);
    for (std::size_t i = 1; i < runs.size(); i += 2)
        ASSERT_EQ(runs[i]->start(static_cast<std::uint32_t>(i / 2)), Status::ok);
    for (const auto& run : runs) {
        ASSERT_TRUE(in_time([&] { return !run->operation.pending(); }));
        EXPECT_TRUE(run->right());
    }
}

TEST(agent, a_pending_operation_cannot_be_started) {
    AgentGroup group({});
    RingRun run(group.channel(0), 0, 2, 1, 8), peer(group.channel(1), 1, 2, 1, 8);
    ASSERT_EQ(run.start(0), Status::ok);
    EXPECT_EQ(run.driven.start(run.operation, {nullptr, run.out.data(), {}}, 1), Status::invalid_argument);
    ASSERT_EQ(peer.start(0), Status::ok);
    ASSERT_TRUE(in_time([&] { return !run.operation.pending() && !peer.operation.pending(); }));
}

// A message of the wrong size fails the channel: everything in flight on it ends with that error.
TEST(agent, a_failure_ends_every_operation_of_the_channel) {
    AgentGroup group({});
    RingRun a(group.channel(0), 0, 2, 3, 100), b(group.channel(0), 0, 2, 3, 100);
    RingRun wrong(group.channel(1), 1, 2, 3, 99);
    ASSERT_EQ(a.start(0), Status::ok);
    ASSERT_EQ(b.start(1), Status::ok);
    ASSERT_EQ(wrong.start(0), Status::ok);
    ASSERT_TRUE(in_time([&] { return !a.operation.pending() && !b.operation.pending(); }));
    EXPECT_EQ(a.operation.status(), Status::mismatch);
    EXPECT_EQ(b.operation.status(), Status::mismatch);
    RingRun late(group.channel(0), 0, 2, 1, 8);
    EXPECT_EQ(late.start(2), Status::ok);
    ASSERT_TRUE(in_time([&] { return !late.operation.pending(); }));
    EXPECT_EQ(late.operation.status(), Status::mismatch);
    ASSERT_TRUE(in_time([&] { return !wrong.operation.pending(); }));
}

TEST(agent, is_absent_in_a_forked_child) {
    AgentGroup group({});
    RingRun first(group.channel(0), 0, 2, 3, 100), second(group.channel(1), 1, 2, 3, 100);
    ASSERT_EQ(first.start(0), Status::ok);
    ASSERT_TRUE(in_time([] { return agent_threads().size() == 1; }));
    // Somebody drives while the process forks, and nobody in the child lets go of the helm.
    const pid_t child = group.channel(0).exclusively([&] {
        const pid_t forked = fork();
        if (forked != 0) return forked;
        RingRun own(group.channel(0), 0, 2, 3, 100);
        WaitStatistics statistics;
        const bool absent =
            agent_threads().empty() && group.agent(0).start() == Status::unsupported &&
            own.start(1) == Status::unsupported &&
            first.driven.wait(first.operation, WaitPolicy::sleep, statistics) == Status::unsupported;
        group.agent(0).stop();  // returns at once
        _exit(absent ? 0 : 1);
    });
    ASSERT_GE(child, 0);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ASSERT_EQ(second.start(0), Status::ok);
    ASSERT_TRUE(in_time([&] { return !first.operation.pending() && !second.operation.pending(); }));
    EXPECT_TRUE(first.right());
}

// Bound to a hardware thread that somebody computes on, it stops spinning, and still gets its work done.
TEST(agent, does_not_spin_where_it_would_steal) {
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &mask)) ++cpu;
    AgentGroupOptions options;
    options.agent = {AgentManner::spin, cpu};
    AgentGroup group(options);
    RingRun first(group.channel(0), 0, 2, 3, 100), second(group.channel(1), 1, 2, 3, 100);
    std::atomic<bool> ends{false};
    std::thread computes([&] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        while (!ends) test::RingRun::value(1, 2, 3);
    });
    ASSERT_EQ(first.start(0), Status::ok);
    EXPECT_TRUE(in_time([&] { return group.agent(0).statistics().yielded > 0; }));
    EXPECT_TRUE(comes_to_rest([&] { return group.agent(0).statistics().cpu_seconds; }, 0.2));
    ASSERT_EQ(second.start(0), Status::ok);
    EXPECT_TRUE(in_time([&] { return !first.operation.pending() && !second.operation.pending(); }));
    ends = true;
    computes.join();
    EXPECT_TRUE(first.right());
}

// Channels come and go while the agent is at work on others.
TEST(agent, channels_come_and_go) {
    InprocOptions network_options;
    network_options.wakeup_descriptor = true;
    Agent agent({});
    InprocNetwork kept_network(2, network_options);
    DrivenChannel kept(make_channel(kept_network.endpoint(0), {}), &agent);
    DrivenChannel kept_peer(make_channel(kept_network.endpoint(1), {}), &agent);
    RingRun waits(kept, 0, 2, 1, 8), peer(kept_peer, 1, 2, 1, 8);
    ASSERT_EQ(waits.start(0), Status::ok);
    for (std::uint32_t i = 0; i < 200; ++i) {
        InprocNetwork network(2, network_options);
        DrivenChannel a(make_channel(network.endpoint(0), {}), &agent);
        DrivenChannel b(make_channel(network.endpoint(1), {}), &agent);
        RingRun run_a(a, 0, 2, 2, 100), run_b(b, 1, 2, 2, 100);
        ASSERT_EQ(run_a.start(0), Status::ok);
        ASSERT_EQ(run_b.start(0), Status::ok);
        ASSERT_TRUE(in_time([&] { return !run_a.operation.pending() && !run_b.operation.pending(); }));
        ASSERT_TRUE(run_a.right() && run_b.right());
    }
    ASSERT_EQ(peer.start(0), Status::ok);
    ASSERT_TRUE(in_time([&] { return !waits.operation.pending() && !peer.operation.pending(); }));
    EXPECT_TRUE(waits.right());
}

// Stopped with something in flight: the owner's own calls end it.
TEST(agent, stopped_it_leaves_the_rest_to_the_owners) {
    AgentGroup group({});
    RingRun first(group.channel(0), 0, 2, 3, 100), second(group.channel(1), 1, 2, 3, 100);
    ASSERT_EQ(first.start(0), Status::ok);
    group.agent(0).stop();
    ASSERT_TRUE(first.operation.pending());
    ASSERT_EQ(second.start(0), Status::ok);
    WaitStatistics statistics;
    EXPECT_EQ(first.driven.wait(first.operation, WaitPolicy::sleep, statistics), Status::ok);
    EXPECT_TRUE(first.right());
    ASSERT_TRUE(in_time([&] { return !second.operation.pending(); }));
}

// A process that ends by a signal in the midst of a call may hold what the thread waits for: here the lock
// that rank 0's reduction takes.
TEST(agent, the_end_of_a_process_does_not_wait_for_it_for_ever) {
    AgentGroup group({});
    struct Lock {
        std::mutex held;
        std::atomic<bool> wanted{false};
    } lock;
    CombinedMessage message(group);
    const auto wait_there = [](const void*, const void*, void*, std::size_t, void* context) {
        Lock& lock = *static_cast<Lock*>(context);
        lock.wanted = true;
        const std::lock_guard waits(lock.held);
    };
    lock.held.lock();
    ASSERT_EQ(message.start(wait_there, &lock), Status::ok);
    ASSERT_TRUE(in_time([&] { return !message.sent.pending() && lock.wanted; }));
    EXPECT_FALSE(group.agent(0).stop_within(20'000'000));
    lock.held.unlock();
    EXPECT_TRUE(group.agent(0).stop_within(100'000'000'000));
    EXPECT_FALSE(group.agent(0).running());
    // It had been told to stop: the rest is its owner's.
    WaitStatistics statistics;
    EXPECT_EQ(group.channel(0).wait(message.received, WaitPolicy::sleep, statistics), Status::ok);
}

TEST(agent, says_which_ways_to_sleep_ran) {
    AgentGroup group(ranks(1));
    ASSERT_EQ(group.agent(0).start(), Status::ok);
    ASSERT_TRUE(in_time([&] { return group.agent(0).statistics().passes > 0; }));
    group.agent(0).stop();
    const auto sentences = group.agent(0).ways_to_sleep();
    ASSERT_EQ(sentences.size(), sleeper_kinds);
    EXPECT_EQ(sentences[static_cast<int>(SleeperKind::futex)].rfind("futex: 1 sleeps", 0), 0u)
        << sentences[static_cast<int>(SleeperKind::futex)];
    EXPECT_EQ(sentences[static_cast<int>(SleeperKind::epoll)], "epoll: not exercised, never chosen");
}

}  // namespace
}  // namespace thalweg
