// Two ports of the shm transport of which only one has met the other.
#include <gtest/gtest.h>
#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "transport/shm/shm.h"

namespace thalweg {
namespace {

bool rings(const Transport& channel) {
    pollfd descriptor{channel.wait_descriptor(), POLLIN, 0};
    return ::poll(&descriptor, 1, 0) > 0;
}

// What another thread would be told that wants to sleep.
Status arm(Transport& channel) {
    Status status = Status::in_progress;
    std::thread([&] { status = channel.arm(); }).join();
    return status;
}

// Nothing can be done about what one writes that has not been met yet, and may never be: until then others
// sleep, and they hear of it when it is met.
TEST(shm_unmet, who_writes_keeps_nobody_awake) {
    std::unique_ptr<ShmPort> ports[2];
    std::string why;
    ShmGroup group;
    group.size = 2;
    for (ShmOptions options; options.process < 2; ++options.process)
        ASSERT_EQ(ShmPort::open(options, ports[options.process], why), Status::ok) << why;
    ASSERT_EQ(ports[1]->meet(0, ports[0]->address(), why), Status::ok) << why;
    std::unique_ptr<Transport> sleeps, to, from;
    ASSERT_EQ(ports[0]->make_bare_channel(sleeps), Status::ok);
    ASSERT_EQ(ports[0]->make_channel(group, to), Status::ok);
    group.rank = 1;
    ASSERT_EQ(ports[1]->make_channel(group, from), Status::ok);

    std::size_t count = 0;
    ASSERT_EQ(from->post_send(0, 0, {0, 0}, "x", 1, SendMode::buffered), Status::ok);
    ASSERT_EQ(sleeps->progress({}, count), Status::ok);
    ASSERT_EQ(arm(*sleeps), Status::ok) << "it waits for somebody whom nobody has met";
    ASSERT_EQ(from->post_send(1, 0, {1, 0}, "y", 1, SendMode::buffered), Status::ok);
    EXPECT_TRUE(rings(*sleeps));
    ASSERT_EQ(sleeps->progress({}, count), Status::ok);
    ASSERT_EQ(arm(*sleeps), Status::ok);
    EXPECT_FALSE(rings(*sleeps));

    ASSERT_EQ(ports[0]->meet(1, ports[1]->address(), why), Status::ok) << why;
    EXPECT_TRUE(rings(*sleeps)) << "what it wrote before stays unread";
    char received[2] = {};
    for (std::uint32_t i = 0; i < 2; ++i) ASSERT_EQ(to->post_recv(i, 1, {i, 0}, &received[i], 1), Status::ok);
    Slot done[2];
    const std::uint64_t until_ns = now_ns() + 5'000'000'000;
    for (std::size_t all = 0; all < 2 && now_ns() < until_ns; all += count)
        ASSERT_EQ(to->progress(done, count), Status::ok);
    EXPECT_EQ(received[0], 'x');
    EXPECT_EQ(received[1], 'y');
}

}  // namespace
}  // namespace thalweg
