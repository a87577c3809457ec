// Threads that drive a channel beside the one that leads it.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
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

}  // namespace
}  // namespace thalweg
