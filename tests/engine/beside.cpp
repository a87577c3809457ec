// Threads that drive a channel beside the one that leads it.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/driven.h"
#include "engine/receiving.h"
#include "schedule/builder.h"

namespace thalweg {
namespace {

// What comes is told once, to any thread but the one that leads: as where that has been rung, and has had no
// core before another one looked.
class ToldOnce final : public test::Receiving {
  public:
    ToldOnce() : Receiving(2) {}
    ~ToldOnce() override { close(descriptor_); }
    Status post_recv(Slot slot, int, MessageId, void*, std::size_t) override {
        slot_ = slot;
        return Status::ok;
    }
    Status progress(std::span<Slot> done, std::size_t& count) override {
        count = 0;
        if (!came || std::this_thread::get_id() == leader_) return Status::ok;
        done[count++] = slot_;
        came = false;
        return Status::ok;
    }
    int wait_descriptor() const override { return descriptor_; }
    Status arm() override {
        ++arms;
        return Status::ok;
    }

    std::atomic<int> arms{0};
    std::atomic<bool> came{false};

  private:
    const std::thread::id leader_ = std::this_thread::get_id();
    const int descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    Slot slot_ = 0;
};

std::shared_ptr<const Schedule> one_message() {
    Builder builder(0, 2);
    builder.recv(1, {Buffer::out, 0, 64});
    return std::make_shared<const Schedule>(std::move(builder).finish());
}

// It would sleep on for the rest of a millisecond. In one round of many both threads have a core when they
// need it.
TEST(beside, who_takes_the_news_wakes_the_thread_that_leads) {
    constexpr std::uint32_t rounds = 100;
    constexpr std::uint64_t soon_ns = 300'000;
    ToldOnce transport;
    std::vector<std::byte> out(64);
    DrivenChannel channel(make_channel(transport, {}), nullptr);
    const auto execution = channel.make(one_message());
    Operation operation(*execution);
    std::uint64_t least_ns = UINT64_MAX;
    for (std::uint32_t round = 0; round < rounds; ++round) {
        const int arms = transport.arms;
        std::uint64_t told_ns = 0;
        std::thread other([&] {
            while (transport.arms == arms) std::this_thread::yield();
            transport.came = true;
            while (transport.came) channel.help();
            told_ns = now_ns();
        });
        WaitStatistics waited;
        EXPECT_EQ(channel.run(operation, {nullptr, out.data(), {}}, round, WaitPolicy::sleep, waited),
                  Status::ok);
        const std::uint64_t ended_ns = now_ns();
        other.join();
        EXPECT_GE(waited.sleeps, 1u);
        least_ns = std::min(least_ns, ended_ns - std::min(ended_ns, told_ns));
    }
    EXPECT_LT(least_ns, soon_ns);
}

// Of two operations; both messages come when the second receive is posted.
class Second final : public test::Receiving {
  public:
    Second() : Receiving(2) {}
    ~Second() override { close(descriptor_); }
    Status post_recv(Slot slot, int, MessageId, void*, std::size_t) override {
        slots_[posted_++] = slot;
        posted_ns = now_ns();
        return Status::ok;
    }
    Status progress(std::span<Slot> done, std::size_t& count) override {
        count = 0;
        if (arms != 0 && in_poll) std::exchange(in_poll, nullptr)();
        if (posted_ == slots_.size())
            while (posted_ != 0) done[count++] = slots_[--posted_];
        return Status::ok;
    }
    int wait_descriptor() const override { return descriptor_; }
    Status arm() override {
        if (arms != 0 && in_arm) std::exchange(in_arm, nullptr)();
        ++arms;
        return Status::ok;
    }

    std::atomic<int> arms{0};
    std::uint64_t posted_ns = 0;
    // Called once after a first sleep, by the thread that sleeps.
    std::function<void()> in_poll, in_arm;

  private:
    const int descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    std::array<Slot, 2> slots_{};
    std::size_t posted_ = 0;
};

constexpr std::uint32_t few_rounds = 20;
constexpr std::uint64_t at_once_ns = 200'000;

// Its messages would leave when the leader has slept for a millisecond.
TEST(beside, who_blocks_while_another_thread_leads_begins_first) {
    Second transport;
    std::vector<std::byte> out(64), others(64);
    DrivenChannel channel(make_channel(transport, {}), nullptr);
    const auto execution = channel.make(one_message()), others_execution = channel.make(one_message());
    Operation operation(*execution), others_operation(*others_execution);
    std::uint64_t least_ns = UINT64_MAX;
    for (std::uint32_t round = 0; round < few_rounds; ++round) {
        transport.arms = 0;
        std::uint64_t begun_ns = 0;
        std::thread other([&] {
            while (transport.arms == 0) std::this_thread::yield();
            usleep(100);  // the leader sleeps by then
            begun_ns = now_ns();
            WaitStatistics waited;
            EXPECT_EQ(channel.run(others_operation, {nullptr, others.data(), {}}, 2 * round + 1,
                                  WaitPolicy::sleep, waited),
                      Status::ok);
        });
        WaitStatistics waited;
        EXPECT_EQ(channel.run(operation, {nullptr, out.data(), {}}, 2 * round, WaitPolicy::sleep, waited),
                  Status::ok);
        other.join();
        least_ns = std::min(least_ns, transport.posted_ns - std::min(transport.posted_ns, begun_ns));
    }
    EXPECT_LT(least_ns, at_once_ns);
}

// Who starts it finds the helm held, and goes its way.
TEST(beside, what_is_started_before_the_thread_that_leads_sleeps_is_begun_before) {
    Second transport;
    std::vector<std::byte> out(64), others(64);
    DrivenChannel channel(make_channel(transport, {}), nullptr);
    const auto execution = channel.make(one_message()), others_execution = channel.make(one_message());
    Operation operation(*execution), others_operation(*others_execution);
    for (const bool arming : {false, true}) {
        std::uint64_t least_ns = UINT64_MAX;
        for (std::uint32_t i = 0; i < few_rounds; ++i) {
            const std::uint32_t number = 2 * (i + (arming ? few_rounds : 0u));
            std::uint64_t started_ns = 0;
            transport.arms = 0;
            (arming ? transport.in_arm : transport.in_poll) = [&] {
                std::thread other([&] {
                    EXPECT_EQ(channel.start(others_operation, {nullptr, others.data(), {}}, number + 1),
                              Status::ok);
                });
                other.join();
                started_ns = now_ns();
            };
            WaitStatistics waited;
            EXPECT_EQ(channel.run(operation, {nullptr, out.data(), {}}, number, WaitPolicy::sleep, waited),
                      Status::ok);
            EXPECT_FALSE(others_operation.pending());
            least_ns = std::min(least_ns, transport.posted_ns - std::min(transport.posted_ns, started_ns));
        }
        EXPECT_LT(least_ns, at_once_ns) << (arming ? "while it is arming" : "while it polls");
    }
}

}  // namespace
}  // namespace thalweg
