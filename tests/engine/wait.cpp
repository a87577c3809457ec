// How a thread waits: what is slept is bounded and counted, and the thread is left as it was.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "engine/group.h"
#include "engine/waiters/waiter.h"
#include "engine/yields.h"
#include "schedule/builder.h"

std::atomic<int> thalweg::test::yields{0};

// In the place of the C library's, for all of this program: counts.
extern "C" int sched_yield() noexcept {
    ++thalweg::test::yields;
    return static_cast<int>(syscall(SYS_sched_yield));
}

namespace thalweg {
namespace {

using test::yields;

std::shared_ptr<const Schedule> one_byte(int rank) {
    Builder builder(rank, 2);
    if (rank == 0)
        builder.send(1, {Buffer::out, 0, 1});
    else
        builder.recv(0, {Buffer::out, 0, 1});
    return std::make_shared<const Schedule>(std::move(builder).finish());
}

TEST(wait, a_late_peer_is_waited_for_asleep) {
    test::Group group(2, {});
    std::uint8_t sent = 5, received = 0;
    Execution recv(one_byte(1), group.channel(1));
    Execution send(one_byte(0), group.channel(0));
    ASSERT_EQ(recv.start({nullptr, &received, {}}, 0), Status::ok);
    const int slack_before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    std::thread peer([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        WaitStatistics statistics;
        EXPECT_EQ(send.start({nullptr, &sent, {}}, 0), Status::ok);
        EXPECT_EQ(wait(send, WaitPolicy::sleep, statistics), Status::ok);
    });
    WaitStatistics statistics;
    const std::uint64_t begin_ns = now_ns();
    EXPECT_EQ(wait(recv, WaitPolicy::sleep, statistics), Status::ok);
    const double waited = seconds(now_ns() - begin_ns);
    peer.join();
    EXPECT_EQ(received, 5);
    // 50 ms in sleeps that grow to 1 ms: at least half of the wait was slept, in not too many pieces. A busy
    // machine makes each of them longer.
    EXPECT_GT(statistics.slept_seconds, 0.5 * waited);
    EXPECT_LE(statistics.slept_seconds, waited);
    EXPECT_GE(statistics.sleeps, 3u);
    EXPECT_LT(statistics.sleeps, 500u);
    EXPECT_GE(statistics.polls, statistics.sleeps);
    EXPECT_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), slack_before);
}

// A single sleep is at most 1 ms long, however long the wait has been.
TEST(wait, sleeps_grow_to_a_millisecond_and_no_further) {
    test::Group group(1, {});
    const auto waiter = make_timed_waiter();
    Transport& transport = group.channel(0)->transport();
    WaitStatistics statistics;
    waiter->begin();
    double first = 0, shortest_late = 1;
    int late = 0;
    const std::uint64_t begin_ns = now_ns();
    // As long as it takes: a busy machine may give this thread nothing for tens of milliseconds.
    while (late < 20) {
        const WaitStatistics before = statistics;
        waiter->idle(transport, statistics);
        if (statistics.sleeps == before.sleeps) continue;
        const double slept = statistics.slept_seconds - before.slept_seconds;
        if (first == 0) first = slept;
        if (now_ns() - begin_ns < 20'000'000 || statistics.sleeps < 20) continue;
        shortest_late = std::min(shortest_late, slept);
        ++late;
    }
    waiter->end();
    // The system may oversleep, so bounds on length hold for the shortest of several.
    EXPECT_GT(first, 15e-6);
    EXPECT_GE(shortest_late, 0.9e-3);
    EXPECT_LT(shortest_late, 10e-3);
}

// A yield would hand the core for a slice or two to whatever wants it; a nap gives it back.
TEST(wait, where_cores_are_shared_nobody_yields) {
    test::Group group(1, {});
    const auto waiter = make_timed_waiter();
    WaitStatistics statistics;
    waiter->begin();
    yields = 0;
    // Until it has slept often: how soon that is depends on what else the machine does. One that polled
    // without end would run into the test's time limit.
    while (statistics.sleeps <= 20) waiter->idle(group.channel(0)->transport(), statistics);
    waiter->end();
    EXPECT_EQ(yields, 0);
}

// A thread of the program that shares the core gets it back at every poll of a long wait; a wait that is over
// in a few polls, or in which something happens every few, makes no system call.
TEST(wait, a_long_spin_yields_at_every_poll) {
    test::Group group(1, {});
    const auto waiter = make_spin_waiter();
    Transport& transport = group.channel(0)->transport();
    WaitStatistics statistics;
    waiter->begin();
    yields = 0;
    for (int events = 0; events < 100; ++events) {
        for (int i = 0; i < 50; ++i) waiter->idle(transport, statistics);
        waiter->progressed();
    }
    EXPECT_EQ(yields, 0);
    for (int i = 0; i < 1000; ++i) waiter->idle(transport, statistics);
    EXPECT_GE(yields, 900);
    waiter->begin();
    yields = 0;
    for (int i = 0; i < 50; ++i) waiter->idle(transport, statistics);
    EXPECT_EQ(yields, 0);
}

// A long copy goes on between polls: nobody sleeps while there is something to do.
TEST(wait, copies_are_not_slept_through) {
    constexpr std::uint64_t bytes = 64 << 20;
    test::Group group(1, {});
    Builder builder(0, 1);
    builder.copy({Buffer::out, 0, bytes}, {Buffer::in, 0, bytes});
    Execution execution(std::make_shared<const Schedule>(std::move(builder).finish()), group.channel(0));
    const std::vector<std::uint8_t> in(bytes, 3);
    std::vector<std::uint8_t> out(bytes, 4);
    ASSERT_EQ(execution.start({in.data(), out.data(), {}}, 0), Status::ok);
    WaitStatistics statistics;
    EXPECT_EQ(wait(execution, WaitPolicy::sleep, statistics), Status::ok);
    EXPECT_GT(statistics.polls, 100u);
    EXPECT_EQ(statistics.sleeps, 0u);
    EXPECT_TRUE(in == out);
}

TEST(wait, spinning_never_sleeps) {
    test::Group group(1, {});
    const auto waiter = make_spin_waiter();
    WaitStatistics statistics;
    for (int i = 0; i < 1000; ++i) waiter->idle(group.channel(0)->transport(), statistics);
    EXPECT_EQ(statistics.sleeps, 0u);
    EXPECT_STREQ(name_of(WaitPolicy::spin), "spin");
    EXPECT_STREQ(name_of(WaitPolicy::sleep), "sleep");
}

}  // namespace
}  // namespace thalweg
