// The kernel's account of threads: whose seconds and wake-ups are counted where.
#include "driver/threads.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "../cpu_time.h"

namespace thalweg::bench {
namespace {

using test::thread_cpu_seconds;

constexpr double worked_seconds = 0.05;
constexpr int sleeps = 20;

void work() {
    const double begin = thread_cpu_seconds();
    while (thread_cpu_seconds() - begin < worked_seconds) {
    }
}

// What a thread of this name costs that works and then sleeps so many times; it lives until it was read.
ProcessClocks cost_of_thread(const char* name) {
    std::atomic<bool> done{false}, read{false};
    const ProcessClocks before = read_process_clocks();
    std::thread thread([&] {
        pthread_setname_np(pthread_self(), name);
        work();
        for (int i = 0; i < sleeps; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        done = true;
        while (!read) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const ProcessClocks cost = read_process_clocks() - before;
    read = true;
    thread.join();
    return cost;
}

TEST(Threads, TheAgentIsKnownByItsName) {
    const ProcessClocks cost = cost_of_thread("thalweg-agent");
    EXPECT_GE(cost.agent.cpu_seconds, worked_seconds * 0.9);
    EXPECT_GE(cost.agent.wake_ups, sleeps);
    EXPECT_LT(cost.other.cpu_seconds, worked_seconds / 2);
}

TEST(Threads, EveryOtherThreadIsCountedApart) {
    const ProcessClocks cost = cost_of_thread("async");
    EXPECT_GE(cost.other.cpu_seconds, worked_seconds * 0.9);
    EXPECT_GE(cost.other.wake_ups, sleeps);
    EXPECT_EQ(cost.agent.cpu_seconds, 0);
    EXPECT_EQ(cost.agent.wake_ups, 0);
}

TEST(Threads, TheMainThreadsWorkIsItsOwn) {
    const ProcessClocks before = read_process_clocks();
    work();
    const ProcessClocks cost = read_process_clocks() - before;
    EXPECT_GE(cost.main.cpu_seconds, worked_seconds * 0.9);
    EXPECT_LT(cost.other.cpu_seconds, worked_seconds / 2);
}

}  // namespace
}  // namespace thalweg::bench
