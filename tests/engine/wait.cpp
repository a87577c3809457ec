// How a thread waits: what is slept is bounded and counted, and the thread is left as it was.
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "engine/group.h"
#include "engine/system_calls.h"
#include "engine/waiters/between_polls.h"
#include "engine/waiters/waiter.h"
#include "schedule/builder.h"

namespace thalweg {
namespace {

using test::system_calls;

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
    system_calls.forget();
    std::thread peer([&] {
        while (system_calls.naps < 200) std::this_thread::yield();
        WaitStatistics statistics;
        EXPECT_EQ(send.start({nullptr, &sent, {}}, 0), Status::ok);
        EXPECT_EQ(wait(send, WaitPolicy::sleep, statistics), Status::ok);
    });
    WaitStatistics statistics;
    const std::uint64_t begin_ns = now_ns();
    EXPECT_EQ(wait(recv, WaitPolicy::sleep, statistics), Status::ok);
    const std::uint64_t waited_ns = now_ns() - begin_ns;
    peer.join();
    EXPECT_EQ(received, 5);
    // Each sleep is counted, with what it took at least; the polls are those between them and those before.
    EXPECT_GE(statistics.slept_ns, 200u * 15'000u);
    EXPECT_LE(statistics.slept_ns, waited_ns);
    EXPECT_GE(statistics.sleeps, 200u);
    EXPECT_LE(statistics.sleeps, system_calls.naps);
    EXPECT_GE(statistics.polls, statistics.sleeps);
    EXPECT_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), slack_before);
}

// A single sleep is at most 1 ms long, however long the wait has been; the first ones are 15 us. How long the
// system makes of each is its own affair.
TEST(wait, sleeps_grow_to_a_millisecond_and_no_further) {
    test::Group group(1, {});
    const auto waiter = make_timed_waiter();
    Transport& transport = group.channel(0)->transport();
    WaitStatistics statistics;
    // The first one of a wait is that short unless the thread lost its core just before.
    for (int tries = 0; tries < 100; ++tries) {
        waiter->begin();
        system_calls.forget();
        statistics = {};
        while (system_calls.naps == 0) waiter->idle(transport, statistics);
        if (system_calls.longest_nap_ns == 15'000u) break;
    }
    EXPECT_EQ(system_calls.longest_nap_ns, 15'000u);
    while (system_calls.longest_nap_ns < 1'000'000) waiter->idle(transport, statistics);
    const std::uint64_t before = system_calls.naps;
    while (system_calls.naps < before + 20) waiter->idle(transport, statistics);
    waiter->end();
    EXPECT_EQ(system_calls.longest_nap_ns, 1'000'000u);
    EXPECT_EQ(statistics.sleeps, system_calls.naps);
    EXPECT_GE(statistics.slept_ns, 20'000'000u);
}

// A wait ends late by no more than a thirty-second of what it took, and by some naps.
TEST(wait, a_sleep_is_short_beside_what_was_waited) {
    test::Group group(1, {});
    const auto waiter = make_timed_waiter();
    WaitStatistics statistics;
    const std::uint64_t begin_ns = now_ns();
    waiter->begin();
    std::uint64_t waited_ns = 0, longest_ns = 0;
    while (waited_ns < 20'000'000) {
        system_calls.forget();
        waiter->idle(group.channel(0)->transport(), statistics);
        waited_ns = now_ns() - begin_ns;
        longest_ns = std::max(longest_ns, system_calls.longest_nap_ns.load());
        EXPECT_LE(system_calls.longest_nap_ns, std::max<std::uint64_t>(20'000, waited_ns / 32));
    }
    waiter->end();
    EXPECT_GT(longest_ns, 100'000u);
}

// More ranks of a core poll less often, each of them: 7.5 us of nap per rank, 15 to 60 in all.
TEST(wait, naps_leave_a_core_to_all_of_its_ranks) {
    const auto nap_among = [](std::uint64_t ranks, std::uint64_t cores) {
        naps_among(ranks, cores);
        return nap_ns();
    };
    EXPECT_EQ(nap_among(2, 2), 15'000u);
    EXPECT_EQ(nap_among(4, 2), 15'000u);
    EXPECT_EQ(nap_among(5, 2), 18'750u);
    EXPECT_EQ(nap_among(1000, 2), 60'000u);
    EXPECT_EQ(nap_among(3, 0), 22'500u);  // of a machine that does not say
    EXPECT_EQ(nap_among(8, 2), 30'000u);
    test::Group group(1, {});
    const auto waiter = make_timed_waiter();
    WaitStatistics statistics;
    for (int tries = 0; tries < 100 && system_calls.longest_nap_ns != 30'000u; ++tries) {
        waiter->begin();
        system_calls.forget();
        while (system_calls.naps == 0) waiter->idle(group.channel(0)->transport(), statistics);
        waiter->end();
    }
    EXPECT_EQ(system_calls.longest_nap_ns, 30'000u);
    EXPECT_EQ(nap_among(1, 1), 15'000u);
}

// A yield would hand the core for a slice or two to whatever wants it; a nap gives it back.
TEST(wait, where_cores_are_shared_nobody_yields) {
    test::Group group(1, {});
    const auto waiter = make_timed_waiter();
    WaitStatistics statistics;
    waiter->begin();
    system_calls.forget();
    // Until it has slept often: how soon that is depends on what else the machine does. One that polled
    // without end would run into the test's time limit.
    while (statistics.sleeps <= 20) waiter->idle(group.channel(0)->transport(), statistics);
    waiter->end();
    EXPECT_EQ(system_calls.yields, 0);
}

// A thread of the program that shares the core gets it back at every poll of a long wait; a wait that is over
// in a few polls, or in which something happens every few, makes no system call.
TEST(wait, a_long_spin_yields_at_every_poll) {
    test::Group group(1, {});
    const auto waiter = make_spin_waiter();
    Transport& transport = group.channel(0)->transport();
    WaitStatistics statistics;
    waiter->begin();
    system_calls.forget();
    for (int events = 0; events < 100; ++events) {
        for (int i = 0; i < 50; ++i) waiter->idle(transport, statistics);
        waiter->progressed();
    }
    EXPECT_EQ(system_calls.yields, 0);
    for (int i = 0; i < 1000; ++i) waiter->idle(transport, statistics);
    EXPECT_GE(system_calls.yields, 900);
    waiter->begin();
    system_calls.forget();
    for (int i = 0; i < 50; ++i) waiter->idle(transport, statistics);
    EXPECT_EQ(system_calls.yields, 0);
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

// Waits for what is no operation of ours: as often as it takes until the calls are there, on any machine.
TEST(wait, between_polls_a_sleeper_naps_and_never_yields) {
    const int slack_before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    std::uint64_t shortest_ns = 0;
    // The first nap of a wait is that short unless the thread lost its core just before.
    for (int tries = 0; tries < 100 && shortest_ns != 15'000u; ++tries) {
        system_calls.forget();
        std::uint64_t began_ns = pause_between_polls(WaitPolicy::sleep, 0);
        EXPECT_EQ(system_calls.naps, 0u);
        while (system_calls.naps == 0) began_ns = pause_between_polls(WaitPolicy::sleep, began_ns);
        shortest_ns = system_calls.longest_nap_ns;
    }
    EXPECT_EQ(shortest_ns, 15'000u);
    std::uint64_t began_ns = now_ns();
    while (system_calls.longest_nap_ns < 200'000) began_ns = pause_between_polls(WaitPolicy::sleep, began_ns);
    const std::uint64_t before = system_calls.naps;
    while (system_calls.naps < before + 20) began_ns = pause_between_polls(WaitPolicy::sleep, began_ns);
    EXPECT_EQ(system_calls.longest_nap_ns, 200'000u);
    EXPECT_EQ(system_calls.yields, 0);
    EXPECT_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), slack_before);
}

TEST(wait, between_polls_a_spinner_yields_and_never_naps) {
    system_calls.forget();
    std::uint64_t began_ns = 0;
    while (system_calls.yields < 100) began_ns = pause_between_polls(WaitPolicy::spin, began_ns);
    EXPECT_EQ(system_calls.naps, 0u);
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
