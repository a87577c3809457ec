// The agent beside the threads that own the operations: nobody calls while they run, all call as they please,
// or one thread leads and the agent takes over from it.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "engine/agent.h"
#include "engine/agent_group.h"

namespace thalweg {
namespace {

using test::AgentGroup;
using test::AgentGroupOptions;
using test::comes_to_rest;
using test::in_time;
using test::RingRun;
using namespace std::chrono_literals;

struct Setting {
    const char* name;
    AgentManner manner;
    bool descriptor, delays;
};

class agent_setting : public testing::TestWithParam<Setting> {
  protected:
    AgentGroupOptions options(int size, int channels) const {
        AgentGroupOptions options;
        options.size = size;
        options.channels = channels;
        options.agent.manner = GetParam().manner;
        options.network.wakeup_descriptor = GetParam().descriptor;
        options.network.delay_polls = GetParam().delays ? 3 : 0;
        options.network.eager_bytes = GetParam().delays ? 1000 : 0;
        return options;
    }
};

// Several operations at a time on several channels, started in one order, and nobody calls while they run.
TEST_P(agent_setting, operations_end_without_their_owners) {
    constexpr int size = 3, channels = 4, each = 5, repeats = 10;
    AgentGroup group(options(size, channels));
    std::vector<std::unique_ptr<RingRun>> runs;
    for (int rank = 0; rank < size; ++rank) {
        for (int channel = 0; channel < channels; ++channel) {
            for (int i = 0; i < each; ++i)
                runs.push_back(
                    std::make_unique<RingRun>(group.channel(rank, channel), rank, size, 4 + i, 700 * i + 1));
        }
    }
    for (int repeat = 0; repeat < repeats; ++repeat) {
        for (std::size_t i = 0; i < runs.size(); ++i)
            ASSERT_EQ(runs[i]->start(static_cast<std::uint32_t>(repeat * each) + i % each), Status::ok);
        for (const auto& run : runs) {
            ASSERT_TRUE(in_time([&] { return !run->operation.pending(); })) << "repeat " << repeat;
            EXPECT_EQ(run->operation.status(), Status::ok);
            EXPECT_TRUE(run->right());
        }
    }
    for (int rank = 0; rank < size; ++rank) {
        const AgentStatistics statistics = group.agent(rank).statistics();
        EXPECT_TRUE(statistics.running);
        EXPECT_GT(statistics.passes, 0u);
        EXPECT_GT(statistics.cpu_seconds, 0);
    }
}

// Ranks as threads that start, test and wait as they please; orders of completion differ between ranks.
TEST_P(agent_setting, owners_test_and_wait_in_any_order) {
    constexpr int size = 3, channels = 2, each = 4, rounds = 40;
    AgentGroup group(options(size, channels));
    std::atomic<int> wrong{0};
    auto work = [&](int rank) {
        std::mt19937 random(static_cast<unsigned>(rank));
        std::vector<std::unique_ptr<RingRun>> runs;
        for (int i = 0; i < channels * each; ++i)
            runs.push_back(
                std::make_unique<RingRun>(group.channel(rank, i % channels), rank, size, 3, 50 + 600 * i));
        std::vector<int> order(runs.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
        WaitStatistics statistics;
        for (int round = 0; round < rounds; ++round) {
            for (int i = 0; i < channels * each; ++i) {
                if (runs[i]->start(static_cast<std::uint32_t>(round * each + i / channels)) != Status::ok)
                    ++wrong;
            }
            std::shuffle(order.begin(), order.end(), random);
            for (int i : order) {
                if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
                if (random() % 2 == 0) {
                    while (runs[i]->operation.pending()) runs[i]->driven.help();
                } else {
                    const auto policy = random() % 2 == 0 ? WaitPolicy::sleep : WaitPolicy::spin;
                    if (runs[i]->driven.wait(runs[i]->operation, policy, statistics) != Status::ok) ++wrong;
                }
                if (!runs[i]->right()) ++wrong;
            }
        }
    };
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) threads.emplace_back(work, rank);
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

// Two threads of one rank block in operations of one channel: one leads, the other follows, both end.
TEST_P(agent_setting, two_threads_of_a_rank_wait) {
    constexpr int rounds = 60;
    AgentGroup group(options(2, 1));
    std::atomic<int> wrong{0};
    std::array<std::atomic<int>, 2> turn{0, 0};
    auto work = [&](int rank, int half) {
        RingRun run(group.channel(rank), rank, 2, 3, 2000);
        WaitStatistics statistics;
        for (int round = 0; round < rounds; ++round) {
            // MPI orders what is started on one communicator; here the two threads take turns.
            while (turn[rank].load() != 2 * round + half) std::this_thread::yield();
            if (run.start(static_cast<std::uint32_t>(2 * round + half)) != Status::ok) ++wrong;
            ++turn[rank];
            if (run.driven.wait(run.operation, half == 0 ? WaitPolicy::sleep : WaitPolicy::spin,
                                statistics) != Status::ok)
                ++wrong;
            if (!run.right()) ++wrong;
        }
    };
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
        for (int half = 0; half < 2; ++half) threads.emplace_back(work, rank, half);
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

// Waits at once after each start, as a program that repeats a persistent operation does.
void repeat_at_once(RingRun& run, std::uint32_t& number, int rounds, std::atomic<int>& wrong) {
    WaitStatistics statistics;
    for (int round = 0; round < rounds; ++round) {
        if (run.start(number++) != Status::ok) ++wrong;
        if (run.driven.wait(run.operation, WaitPolicy::sleep, statistics) != Status::ok) ++wrong;
        if (!run.right()) ++wrong;
    }
}

// A busy machine may keep a thread from its core between start and wait, so one batch of many has to show it.
TEST_P(agent_setting, who_waits_at_once_wakes_nobody) {
    constexpr int rounds = 50, batches = 100;
    AgentGroup group(options(2, 1));
    std::atomic<int> wrong{0}, wanted{0};
    bool quiet = false;
    std::thread other([&] {
        RingRun run(group.channel(1), 1, 2, 2, 500);
        std::uint32_t number = 0;
        for (int batch = 1; batch <= batches; ++batch) {
            while (wanted < batch) std::this_thread::yield();
            if (wanted > batches) break;
            repeat_at_once(run, number, rounds, wrong);
        }
    });
    RingRun run(group.channel(0), 0, 2, 2, 500);
    std::uint32_t number = 0;
    while (!quiet && ++wanted <= batches) {
        const std::uint64_t passes = group.agent(0).statistics().passes, begin_ns = now_ns();
        repeat_at_once(run, number, rounds, wrong);
        const std::uint64_t by_clock = (now_ns() - begin_ns) / DrivenChannel::agent_delay_ns;
        quiet = group.agent(0).statistics().passes - passes < rounds / 2 + 2 * by_clock;
    }
    wanted = batches + 1;
    other.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(quiet);
}

// The agent is not rung where a wait is expected, and goes on all the same when none comes.
TEST_P(agent_setting, what_nobody_waits_for_after_all_ends) {
    AgentGroup group(options(2, 1));
    std::atomic<int> wrong{0};
    const auto work = [&](int rank) {
        RingRun run(group.channel(rank), rank, 2, 6, 3000);
        std::uint32_t number = 0;
        for (int turn = 0; turn < 3; ++turn) {
            repeat_at_once(run, number, 20, wrong);
            for (int alone = 0; alone < 3; ++alone) {
                if (run.start(number++) != Status::ok) ++wrong;
                if (!in_time([&] { return !run.operation.pending(); }) || !run.right()) ++wrong;
            }
        }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(settings, agent_setting,
                         testing::Values(Setting{"sleep_descriptor", AgentManner::sleep, true, false},
                                         Setting{"sleep_polling", AgentManner::sleep, false, false},
                                         Setting{"sleep_delays", AgentManner::sleep, false, true},
                                         Setting{"watch_descriptor", AgentManner::watch, true, false},
                                         Setting{"spin_descriptor", AgentManner::spin, true, false},
                                         Setting{"spin_delays", AgentManner::spin, false, true}),
                         [](const auto& setting) { return std::string(setting.param.name); });

// While a thread blocks in wait() it drives, and the agent stays asleep.
TEST(agent, leaves_a_channel_to_the_thread_that_leads) {
    AgentGroupOptions options;
    options.network.wakeup_descriptor = true;
    AgentGroup group(options);
    RingRun first(group.channel(0), 0, 2, 50, 100), second(group.channel(1), 1, 2, 50, 100);
    ASSERT_EQ(first.start(0), Status::ok);
    std::thread waiter([&] {
        WaitStatistics statistics;
        EXPECT_EQ(first.driven.wait(first.operation, WaitPolicy::sleep, statistics), Status::ok);
        EXPECT_GT(statistics.sleeps, 0u);
    });
    ASSERT_TRUE(in_time([&] { return group.channel(0).led(); }));
    EXPECT_TRUE(comes_to_rest([&] { return group.agent(0).statistics().passes; }));
    ASSERT_EQ(second.start(0), Status::ok);
    waiter.join();
    EXPECT_TRUE(in_time([&] { return !second.operation.pending(); }));
    EXPECT_TRUE(first.right());
    EXPECT_FALSE(group.channel(0).led());
}

// Who leads drives what others start, too.
TEST(agent, is_not_woken_for_what_is_started_beside_the_thread_that_leads) {
    constexpr std::uint32_t starts = 50;
    AgentGroupOptions options;
    options.network.wakeup_descriptor = true;
    AgentGroup group(options);
    std::vector<std::unique_ptr<RingRun>> mine, others;
    for (std::uint32_t i = 0; i < starts; ++i) {
        mine.push_back(std::make_unique<RingRun>(group.channel(0), 0, 2, 1, 100));
        others.push_back(std::make_unique<RingRun>(group.channel(1), 1, 2, 1, 100));
    }
    ASSERT_EQ(mine[0]->start(0), Status::ok);
    std::thread waiter([&] {
        WaitStatistics statistics;
        EXPECT_EQ(mine[0]->driven.wait(mine[0]->operation, WaitPolicy::sleep, statistics), Status::ok);
    });
    ASSERT_TRUE(in_time([&] { return group.channel(0).led(); }));
    const auto passes = [&] { return group.agent(0).statistics().passes; };
    EXPECT_TRUE(comes_to_rest(passes));
    const std::uint64_t before = passes();
    for (std::uint32_t i = 1; i < starts; ++i) {
        EXPECT_EQ(mine[i]->start(i), Status::ok);
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_LT(passes() - before, starts / 5);
    for (std::uint32_t i = 0; i < starts; ++i) EXPECT_EQ(others[i]->start(i), Status::ok);
    waiter.join();
    for (const auto& run : mine) {
        EXPECT_TRUE(in_time([&] { return !run->operation.pending(); }));
        EXPECT_TRUE(run->right());
    }
    for (const auto& run : others) EXPECT_TRUE(in_time([&] { return !run->operation.pending(); }));
}

// The leader's own operation is done and another is not: the agent takes over.
TEST(agent, takes_over_when_the_leader_leaves) {
    AgentGroupOptions options;
    options.network.wakeup_descriptor = true;
    AgentGroup group(options);
    RingRun a0(group.channel(0), 0, 2, 1, 10), a1(group.channel(1), 1, 2, 1, 10);
    RingRun b0(group.channel(0), 0, 2, 20, 10), b1(group.channel(1), 1, 2, 20, 10);
    ASSERT_EQ(a0.start(0), Status::ok);
    ASSERT_EQ(b0.start(1), Status::ok);
    std::thread peer([&] {
        EXPECT_EQ(a1.start(0), Status::ok);
        std::this_thread::sleep_for(30ms);
        EXPECT_EQ(b1.start(1), Status::ok);
    });
    WaitStatistics statistics;
    EXPECT_EQ(a0.driven.wait(a0.operation, WaitPolicy::sleep, statistics), Status::ok);
    EXPECT_TRUE(a0.right());
    peer.join();
    EXPECT_TRUE(in_time([&] { return !b0.operation.pending() && !b1.operation.pending(); }));
    EXPECT_TRUE(b0.right());
}

// One operation of two is done, and its thread waits for the other one next: the agent looks only where that
// does not come. A busy machine may keep any of the threads from its core for longer than the agent waits, so
// some of many turns have to show it.
TEST(agent, is_not_woken_between_two_waits_in_a_row) {
    constexpr int most_turns = 20, enough = 3;
    AgentGroupOptions options;
    options.network.wakeup_descriptor = true;
    AgentGroup group(options);
    RingRun a0(group.channel(0), 0, 2, 1, 10), a1(group.channel(1), 1, 2, 1, 10);
    RingRun b0(group.channel(0), 0, 2, 1, 10), b1(group.channel(1), 1, 2, 1, 10);
    const auto passes = [&] { return group.agent(0).statistics().passes; };
    int told = 0, woken = 0;
    // The first turn is the first use of the alarm, which wakes the agent.
    for (int turn = 0; turn < most_turns && told < enough; ++turn) {
        const auto number = static_cast<std::uint32_t>(2 * turn);
        std::uint64_t before = 0, begin_ns = 0;
        ASSERT_EQ(a0.start(number), Status::ok);
        ASSERT_EQ(b0.start(number + 1), Status::ok);
        std::thread peer([&] {
            EXPECT_TRUE(in_time([&] { return group.channel(0).led(); }));
            EXPECT_TRUE(comes_to_rest(passes));
            before = passes();
            begin_ns = now_ns();
            EXPECT_EQ(a1.start(number), Status::ok);
        });
        WaitStatistics statistics;
        EXPECT_EQ(
            a0.driven.wait(a0.operation, WaitPolicy::sleep, statistics, DrivenChannel::forever_ns, true),
            Status::ok);
        std::this_thread::sleep_for(200us);
        const std::uint64_t after = passes(), end_ns = now_ns();
        peer.join();
        if (turn > 0 && end_ns - begin_ns < DrivenChannel::agent_delay_ns) {
            ++told;
            woken += after != before;
        }
        EXPECT_EQ(b1.start(number + 1), Status::ok);
        EXPECT_TRUE(in_time([&] { return !b0.operation.pending(); })) << "nobody came";
        EXPECT_TRUE(in_time([&] { return !a1.operation.pending() && !b1.operation.pending(); }));
        EXPECT_TRUE(a0.right() && b0.right());
    }
    if (told < enough) GTEST_SKIP() << "this machine is too busy";
    EXPECT_LT(woken, told);
}

}  // namespace
}  // namespace thalweg
