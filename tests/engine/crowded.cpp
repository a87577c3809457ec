// Threads that share a core: one that cannot sleep because another one's turn has come gives it the core.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "cpu_time.h"
#include "engine/agent.h"
#include "engine/driven.h"
#include "engine/execution.h"
#include "engine/receiving.h"
#include "engine/system_calls.h"
#include "engine/waiters/timer_slack.h"
#include "schedule/builder.h"

namespace thalweg {
namespace {

constexpr std::uint64_t ms = 1'000'000;

// A network on which nothing happens until it is answered. Its descriptor is readable for a thread that has
// been rung and has not run yet, and nobody else can sleep on it until then, unless `armed` says so.
class Rung final : public test::Receiving {
  public:
    Rung() : Receiving(2) {}
    ~Rung() override { close(descriptor_); }
    Status post_recv(Slot slot, int, MessageId, void*, std::size_t) override {
        slot_ = slot;
        return Status::ok;
    }
    Status progress(std::span<Slot> done, std::size_t& count) override {
        polls.fetch_add(1, std::memory_order_relaxed);
        count = 0;
        if (!answers()) return Status::ok;
        done[count++] = slot_;
        return Status::ok;
    }
    int wait_descriptor() const override { return descriptor_; }
    Status arm() override {
        slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
        return armed;
    }

    std::atomic<std::uint64_t> polls{0};
    std::atomic<int> slack_ns{0};
    std::atomic<bool> answered{false};
    std::function<bool()> answers = [this] { return answered.load(std::memory_order_acquire); };
    Status armed = Status::in_progress;

  private:
    Slot slot_ = 0;
    const int descriptor_ = eventfd(0, EFD_NONBLOCK);
};

std::shared_ptr<const Schedule> one_message() {
    Builder builder(0, 2);
    builder.recv(1, {Buffer::out, 0, 64});
    return std::make_shared<const Schedule>(std::move(builder).finish());
}

// Threads that are made from now on share one hardware thread with this one, as long as it lives.
class OneCore {
  public:
    OneCore() {
        sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        for (std::size_t i = 0; i < CPU_SETSIZE; ++i)
            if (CPU_ISSET(i, &before_)) {
                CPU_SET(i, &one);
                break;
            }
        sched_setaffinity(0, sizeof one, &one);
    }
    ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }

  private:
    cpu_set_t before_;
};

// The thread that was rung needs 50 ms of the core. Who polls without giving way polls some ten thousand
// times in its half of 100 ms; who gives way sleeps between two polls, however long others keep the core.
void use_the_core() {
    while (test::thread_cpu_seconds() < 0.05) {
    }
}
constexpr std::uint64_t few_polls = 20'000;

TEST(crowded, a_waiting_thread_gives_way_to_one_that_was_rung) {
    Rung transport;
    const OneCore shared;
    std::vector<std::byte> out(64);
    DrivenChannel channel(make_channel(transport, {}), nullptr);
    const auto execution = channel.make(one_message());
    Operation operation(*execution);
    WaitStatistics waited;
    test::system_calls.forget();
    std::thread rung([&] {
        use_the_core();
        transport.answered.store(true, std::memory_order_release);
    });
    EXPECT_EQ(channel.run(operation, {nullptr, out.data(), {}}, 0, WaitPolicy::sleep, waited), Status::ok);
    rung.join();
    EXPECT_LT(waited.polls, few_polls + 2 * test::system_calls.naps);
}

TEST(crowded, so_does_the_agent) {
    Rung transport;
    const OneCore shared;
    std::vector<std::byte> out(64);
    Agent agent{AgentOptions()};
    DrivenChannel channel(make_channel(transport, {}), &agent);
    const auto execution = channel.make(one_message());
    Operation operation(*execution);
    ASSERT_EQ(channel.start(operation, {nullptr, out.data(), {}}, 0), Status::ok);
    std::thread rung(use_the_core);
    rung.join();
    const std::uint64_t polls = transport.polls.load();
    const auto futex = static_cast<std::size_t>(SleeperKind::futex);
    EXPECT_LT(polls, few_polls + 2 * agent.statistics().uses[futex].sleeps);
    transport.answered.store(true, std::memory_order_release);
    while (operation.pending()) usleep(1000);
    EXPECT_EQ(operation.status(), Status::ok);
}

// A yield would hand the core for a slice or two to whatever wants it; from a sleep it is called back. And
// the sleeps of a thread that listens are cut short by its predictions, not by the slack of the program's
// timers.
TEST(crowded, a_thread_that_can_listen_never_yields) {
    Rung transport;
    transport.armed = Status::ok;
    std::vector<std::byte> out(64);
    DrivenChannel channel(make_channel(transport, {}), nullptr);
    const auto execution = channel.make(one_message());
    Operation operation(*execution);
    WaitStatistics waited;
    transport.answers = [&] { return waited.sleeps >= 20; };
    const int slack_before_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    test::system_calls.forget();
    EXPECT_EQ(channel.run(operation, {nullptr, out.data(), {}}, 0, WaitPolicy::sleep, waited), Status::ok);
    EXPECT_EQ(test::system_calls.yields, 0);
    EXPECT_GE(waited.sleeps, 20u);
    EXPECT_EQ(transport.slack_ns, static_cast<int>(TimerSlack::low_ns));
    EXPECT_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), slack_before_ns);
}

// This thread is blocked until it has polled in vain so often and slept so often.
void blocked_for(std::uint64_t polls, std::uint64_t sleeps) {
    Rung network;
    WaitStatistics waited;
    network.armed = Status::ok;
    network.answers = [&] { return network.polls.load() > polls && waited.sleeps >= sleeps; };
    std::vector<std::byte> out(64);
    DrivenChannel channel(make_channel(network, {}), nullptr);
    const auto execution = channel.make(one_message());
    Operation operation(*execution);
    test::system_calls.forget();
    EXPECT_EQ(channel.run(operation, {nullptr, out.data(), {}}, 0, WaitPolicy::sleep, waited), Status::ok);
    EXPECT_EQ(waited.sleeps, sleeps);
}

// After the first poll in vain; how long others wait together is the next test's.
TEST(crowded, threads_that_wait_together_yield_at_first) {
    blocked_for(1, 0);
    EXPECT_EQ(test::system_calls.yields, 0) << "alone";
    blocked_for(1, 5);  // alone it soon sleeps
    const Blocked other(WaitPolicy::sleep);
    blocked_for(1, 0);
    EXPECT_EQ(test::system_calls.yields, 1) << "together";
}

// Two that are blocked yield to each other; one that has waited for long sleeps, and no longer counts until
// something of its own moves. Slices of a longer wait neither yield nor count.
TEST(crowded, who_sleeps_is_no_reason_to_yield) {
    Blocked parked(WaitPolicy::sleep), other(WaitPolicy::sleep);
    EXPECT_TRUE(other.yielded());
    const std::uint64_t begin_ns = now_ns();
    EXPECT_TRUE(parked.yielded());
    while (parked.yielded()) {
    }
    EXPECT_GT(now_ns(), begin_ns + 10 * ms);
    other.progressed();
    EXPECT_FALSE(other.yielded());
    parked.progressed();
    other.progressed();
    EXPECT_TRUE(other.yielded());
    Blocked slice(WaitPolicy::sleep, true), spinner(WaitPolicy::spin);
    EXPECT_FALSE(slice.yielded());
    EXPECT_FALSE(spinner.yielded());
}

}  // namespace
}  // namespace thalweg
