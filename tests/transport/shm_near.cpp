// Groups of which few ranks are on this host: what a channel costs, and that it reaches those.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cpu_time.h"
#include "shm_two_ports.h"
#include "transport/shm/peer_table.h"
#include "transport/shm/port.h"

namespace thalweg {
namespace {

TEST(PeerTable, FindsThoseThatItHas) {
    for (const std::uint32_t distance : {1u, 3u, 1024u, 1u << 23}) {
        SCOPED_TRACE(distance);
        std::vector<shm::Peer> peers(300);
        shm::PeerTable table;
        for (std::uint32_t i = 0; i < peers.size(); ++i) {
            EXPECT_EQ(table.find(i * distance), nullptr);
            table.reserve();
            table.add(i * distance, peers[i]);
        }
        for (std::uint32_t i = 0; i < peers.size(); ++i) EXPECT_EQ(table.find(i * distance), &peers[i]);
        EXPECT_EQ(table.find(300 * distance), nullptr);
    }
}

class shm_near : public TwoPorts {
  protected:
    // Ranks 3 and 7 are the two ports'.
    std::unique_ptr<Transport> channel_among_many(int process, std::uint32_t counter) {
        ShmGroup group;
        group.name = {0, counter};
        group.rank = near_[static_cast<std::size_t>(process)];
        group.size = static_cast<int>(processes_.size());
        group.processes = processes_.data();
        group.near = near_;
        std::unique_ptr<Transport> made;
        EXPECT_EQ(ports[process]->make_channel(group, made), Status::ok);
        return made;
    }

    void SetUp() override {
        TwoPorts::SetUp();
        for (std::uint32_t rank = 0; rank < 1000; ++rank) processes_.push_back(2 + rank);
        processes_[3] = 0;
        processes_[7] = 1;
    }

    const std::array<int, 2> near_{3, 7};
    std::vector<std::uint32_t> processes_;
};

TEST_F(shm_near, are_reached_and_others_are_not) {
    const auto to = channel_among_many(0, 1), from = channel_among_many(1, 1);
    const std::string sent = bytes_of(least, 1);
    std::string received(least, ' ');
    ASSERT_EQ(to->post_recv(0, 7, {}, received.data(), least), Status::ok);
    ASSERT_EQ(from->post_send(0, 3, {}, sent.data(), least, SendMode::buffered), Status::ok);
    ASSERT_EQ(take(*to, *from, 1), Status::ok);
    ASSERT_EQ(take(*from, *to, 1), Status::ok);
    EXPECT_TRUE(received == sent);
    EXPECT_EQ(from->post_send(1, 8, {1, 0}, sent.data(), least, SendMode::buffered),
              Status::transport_failed);
}

// Who gives up memory that others may put into asks those of this host.
TEST_F(shm_near, are_asked_to_put_nothing_more) {
    const auto to = channel_among_many(0, 1), from = channel_among_many(1, 1);
    if (!to->capabilities().one_sided || !from->capabilities().one_sided)
        GTEST_SKIP() << "the system does not let one process write into another";
    std::string memory(64, ' ');
    std::vector<std::byte> key;
    Region region = 0;
    Target target = 0;
    ASSERT_EQ(to->expose(memory.data(), memory.size(), region, key), Status::ok);
    ASSERT_EQ(from->attach(3, key, target), Status::ok);
    const std::uint64_t begin_ns = now_ns();
    std::atomic<bool> is_given_up{false};
    std::thread owner([&] {
        to->give_up();
        is_given_up = true;
    });
    while (!is_given_up) ports[1]->poll();
    owner.join();
    EXPECT_LT(now_ns() - begin_ns, 1'000'000'000u) << "the peer has answered";
    EXPECT_EQ(from->post_put(0, target, 0, "x", 1, {}), Status::transport_failed);
}

// A plan's channel is made for its messages, in a job of any size.
TEST_F(shm_near, are_all_that_a_channel_looks_at) {
    std::uint32_t counter = 1000;
    const auto seconds_among = [&](int ranks) {
        ShmGroup group;
        group.size = ranks;
        group.slots = 2;
        const std::array<int, 2> near{0, 1};
        group.near = near;
        const double begin = test::thread_cpu_seconds();
        for (int i = 0; i < 300; ++i) {
            group.name = {0, counter++};
            std::unique_ptr<Transport> made;
            EXPECT_EQ(ports[0]->make_channel(group, made), Status::ok);
        }
        return test::thread_cpu_seconds() - begin;
    };
    const double few = seconds_among(2), many = seconds_among(1 << 20);
    EXPECT_LT(many, 0.5 + 2 * few) << "it was " << few << " s among 2 ranks";
}

}  // namespace
}  // namespace thalweg
