// Two ports of the shm transport in one process, as two processes have them: who sleeps, who is woken.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "transport/composite/composite.h"
#include "transport/shm/shm.h"

namespace thalweg {
namespace {

constexpr std::size_t large = std::size_t{1} << 20;
constexpr std::uint64_t longest_ns = 5'000'000'000;

class shm_port : public testing::Test {
  protected:
    void SetUp() override {
        std::string why;
        for (std::uint32_t process = 0; process < 2; ++process) {
            ShmOptions options;
            options.process = process;
            ASSERT_EQ(ShmPort::open(options, ports[process], why), Status::ok) << why;
        }
        for (std::uint32_t process = 0; process < 2; ++process)
            ASSERT_EQ(ports[process]->meet(1 - process, ports[1 - process]->address(), why), Status::ok)
                << why;
    }
    // One of the channels number `counter`.
    std::unique_ptr<Transport> channel(int rank, std::uint32_t counter) {
        ShmGroup group;
        group.name = {0, counter};
        group.rank = rank;
        group.size = 2;
        std::unique_ptr<Transport> made;
        EXPECT_EQ(ports[rank]->make_channel(group, made), Status::ok);
        return made;
    }
    // Polls until a slot of `channel` completes; `peer` copies its share.
    static void finish(Transport& channel, Transport& peer) {
        std::size_t count = 0, ignored = 0;
        Slot done[1];
        const std::uint64_t until_ns = now_ns() + longest_ns;
        while (count == 0 && now_ns() < until_ns) {
            ASSERT_EQ(channel.progress(done, count), Status::ok);
            if (count == 0) {
                ASSERT_EQ(peer.progress({}, ignored), Status::ok);
            }
        }
        ASSERT_EQ(count, 1u);
    }
    static void arm(Transport& channel) {
        std::size_t count = 0;
        const std::uint64_t until_ns = now_ns() + longest_ns;
        while (channel.arm() != Status::ok && now_ns() < until_ns) {
            ASSERT_EQ(channel.progress({}, count), Status::ok);
        }
        ASSERT_EQ(channel.arm(), Status::ok);
    }
    static void elsewhere(const std::function<void()>& action) { std::thread(action).join(); }
    // Whether a thread that sleeps for this channel would wake.
    static bool rings(const Transport& channel) {
        pollfd descriptor{channel.wait_descriptor(), POLLIN, 0};
        return ::poll(&descriptor, 1, 0) > 0;
    }

    std::unique_ptr<ShmPort> ports[2];
};

// A thread that looks whether it may sleep, and finds that it may not, has not taken the bell from another
// one that sleeps already and has not had a core since it was rung.
TEST_F(shm_port, who_may_not_sleep_leaves_the_bell_to_who_sleeps) {
    const auto slept_for = channel(0, 0), led = channel(0, 1), from = channel(1, 0);
    const std::string sent(large, 'x');
    std::string received(large, ' ');
    ASSERT_EQ(slept_for->post_recv(0, 1, {}, received.data(), large), Status::ok);
    elsewhere([&] { arm(*slept_for); });
    EXPECT_FALSE(rings(*led));
    ASSERT_EQ(from->post_send(0, 0, {}, sent.data(), large, SendMode::buffered), Status::ok);
    EXPECT_TRUE(rings(*led));
    EXPECT_EQ(led->arm(), Status::in_progress);
    EXPECT_TRUE(rings(*led)) << "the sleeper does not hear of it any more";
    finish(*slept_for, *from);
    EXPECT_TRUE(received == sent);
}

// And what it has rung for before does not keep it from ringing for the next.
TEST_F(shm_port, who_may_not_sleep_rings_for_all_that_it_finds) {
    const auto slept_for = channel(0, 0), led = channel(0, 1), from = channel(1, 0), other = channel(1, 1);
    const std::string sent(large, 'x');
    std::string received(large, ' '), for_itself(large, ' ');
    elsewhere([&] { arm(*slept_for); });
    ASSERT_EQ(led->post_recv(0, 1, {}, for_itself.data(), large), Status::ok);
    ASSERT_EQ(slept_for->post_recv(0, 1, {}, received.data(), large), Status::ok);
    ASSERT_EQ(other->post_send(0, 0, {}, sent.data(), large, SendMode::buffered), Status::ok);
    finish(*led, *other);
    EXPECT_TRUE(rings(*led)) << "a copy was begun that it may not be there to end";
    // The sleeper has had no core, and the next copy is for it.
    ASSERT_EQ(from->post_send(0, 0, {}, sent.data(), large, SendMode::buffered), Status::ok);
    EXPECT_EQ(led->arm(), Status::in_progress);
    std::size_t count = 0;
    ASSERT_EQ(led->progress({}, count), Status::ok);
    EXPECT_TRUE(rings(*led)) << "the copy stands still";
    finish(*slept_for, *from);
    EXPECT_TRUE(received == sent && for_itself == sent);
}

// A network over which nothing comes, and which fails when it is told to.
class Failing final : public Transport {
  public:
    explicit Failing(const bool& fails) : fails_(fails) {
        capabilities_.max_message_bytes = large;
        capabilities_.live_operations = 1 << 16;
        capabilities_.wakeup_descriptor = capabilities_.any_thread = true;
    }
    ~Failing() override { close(descriptor_); }
    const Capabilities& capabilities() const override { return capabilities_; }
    int rank() const override { return 0; }
    int size() const override { return 2; }
    Slot slots() const override { return 64; }
    Status grow(Slot) override { return Status::ok; }
    Status post_send(Slot, int, MessageId, const void*, std::size_t, SendMode) override {
        return Status::unsupported;
    }
    Status post_recv(Slot, int, MessageId, void*, std::size_t) override { return Status::unsupported; }
    Status progress(std::span<Slot>, std::size_t& count) override {
        count = 0;
        return fails_ ? Status::transport_failed : Status::ok;
    }
    int wait_descriptor() const override { return descriptor_; }
    Status arm() override { return Status::ok; }

  private:
    Capabilities capabilities_;
    const bool& fails_;
    const int descriptor_ = eventfd(0, EFD_CLOEXEC);
};

// Where the network of a transport of two fails, its part inside the host is polled no more either: what
// still comes for it must not keep those who sleep for other channels awake for ever.
TEST_F(shm_port, half_of_what_has_failed_does_not_ring_for_ever) {
    bool fails = false;
    Junction junction;
    CompositeParts parts;
    parts.inside = channel(0, 0);
    parts.between = std::make_unique<Failing>(fails);
    parts.is_near = {true, true};
    parts.junction = &junction;
    std::unique_ptr<Transport> failing;
    ASSERT_EQ(make_composite(std::move(parts), failing), Status::ok);
    const auto other = channel(0, 1), from = channel(1, 0);
    char byte = 0;
    std::size_t count = 0;
    ASSERT_EQ(failing->post_recv(0, 1, {}, &byte, 1), Status::ok);
    elsewhere([&] { arm(*failing); });
    fails = true;
    Slot done[1];
    EXPECT_EQ(failing->progress(done, count), Status::transport_failed);
    EXPECT_TRUE(rings(*other)) << "so that the sleeper hears that it has failed";
    ASSERT_EQ(from->post_send(0, 0, {}, "x", 1, SendMode::buffered), Status::ok);
    ASSERT_EQ(other->progress({}, count), Status::ok);
    arm(*other);
}

}  // namespace
}  // namespace thalweg
