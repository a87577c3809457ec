// The network that the engine's tests stand on keeps what transport.h promises.
#include "transport/inproc/inproc.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace thalweg {
namespace {

// Polls until `count` slots have come back, or gives up.
std::vector<Slot> collect(Transport& transport, std::size_t count, int polls = 100) {
    std::vector<Slot> all;
    while (polls-- > 0 && all.size() < count) {
        Slot done[2];
        std::size_t got = 0;
        EXPECT_EQ(transport.progress(done, got), Status::ok);
        all.insert(all.end(), done, done + got);
    }
    return all;
}

TEST(inproc, a_synchronous_send_completes_after_its_receive) {
    for (std::size_t eager_bytes : {0, 100}) {
        InprocOptions options;
        options.eager_bytes = eager_bytes;
        InprocNetwork network(2, options);
        Transport &from = network.endpoint(0), &to = network.endpoint(1);
        int sent = 42, received = 0;
        ASSERT_EQ(from.post_send(3, 1, {7, 1}, &sent, sizeof sent, SendMode::synchronous), Status::ok);
        EXPECT_TRUE(collect(from, 1).empty());
        ASSERT_EQ(to.post_recv(5, 0, {7, 1}, &received, sizeof received), Status::ok);
        EXPECT_EQ(collect(to, 1), std::vector<Slot>{5});
        EXPECT_EQ(received, 42);
        EXPECT_EQ(collect(from, 1), std::vector<Slot>{3});
        EXPECT_EQ(network.largest_unexpected_bytes(1), 0u);
    }
}

TEST(inproc, an_eager_send_completes_alone_and_is_counted_until_received) {
    InprocOptions options;
    options.eager_bytes = 8;
    InprocNetwork network(2, options);
    char sent[9] = "12345678", received[9] = {};
    Transport &from = network.endpoint(0), &to = network.endpoint(1);
    ASSERT_EQ(from.post_send(0, 1, {0, 0}, sent, 8, SendMode::buffered), Status::ok);
    ASSERT_EQ(from.post_send(1, 1, {0, 1}, sent, 9, SendMode::buffered), Status::ok);
    EXPECT_EQ(collect(from, 2), std::vector<Slot>{0});
    std::memset(sent, 'x', 8);
    EXPECT_EQ(network.unexpected_bytes(1), 8u);
    ASSERT_EQ(to.post_recv(0, 0, {0, 0}, received, 8), Status::ok);
    EXPECT_EQ(collect(to, 1).size(), 1u);
    EXPECT_STREQ(received, "12345678");
    EXPECT_EQ(network.unexpected_bytes(1), 0u);
    EXPECT_EQ(network.largest_unexpected_bytes(1), 8u);
}

TEST(inproc, equal_identities_meet_in_order_and_others_in_any) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        InprocOptions options;
        options.eager_bytes = 8;
        options.delay_polls = 9;
        options.live_operations = 4;
        options.seed = seed;
        InprocNetwork network(2, options);
        Transport &from = network.endpoint(0), &to = network.endpoint(1);
        int sent[3] = {1, 2, 3}, received[3] = {};
        // Operations 1 and 5 share an identity, 2 does not.
        from.post_send(0, 1, {1, 0}, &sent[0], sizeof(int), SendMode::buffered);
        from.post_send(1, 1, {5, 0}, &sent[1], sizeof(int), SendMode::buffered);
        from.post_send(2, 1, {2, 0}, &sent[2], sizeof(int), SendMode::buffered);
        to.post_recv(0, 0, {2, 0}, &received[2], sizeof(int));
        to.post_recv(1, 0, {1, 0}, &received[0], sizeof(int));
        to.post_recv(2, 0, {5, 0}, &received[1], sizeof(int));
        ASSERT_EQ(collect(to, 3).size(), 3u);
        EXPECT_EQ(received[0], 1);
        EXPECT_EQ(received[1], 2);
        EXPECT_EQ(received[2], 3);
    }
}

TEST(inproc, grow_keeps_what_is_in_flight) {
    InprocOptions options;
    options.slots = 2;
    InprocNetwork network(2, options);
    Transport &from = network.endpoint(0), &to = network.endpoint(1);
    int sent = 7, received = 0;
    from.post_send(1, 1, {0, 0}, &sent, sizeof sent, SendMode::buffered);
    ASSERT_EQ(from.grow(100), Status::ok);
    ASSERT_EQ(from.grow(10), Status::ok);
    EXPECT_EQ(from.slots(), 100u);
    EXPECT_EQ(to.slots(), 2u);
    to.post_recv(0, 0, {0, 0}, &received, sizeof received);
    EXPECT_EQ(collect(to, 1).size(), 1u);
    EXPECT_EQ(collect(from, 1), std::vector<Slot>{1});
    options.fixed_slots = true;
    InprocNetwork fixed(1, options);
    EXPECT_EQ(fixed.endpoint(0).grow(3), Status::unsupported);
    EXPECT_EQ(fixed.endpoint(0).slots(), 2u);
}

TEST(inproc, sizes_that_differ_are_a_mismatch) {
    for (std::size_t bytes : {3, 5}) {
        InprocNetwork network(2, {});
        char data[8] = {};
        network.endpoint(0).post_send(0, 1, {0, 0}, data, 4, SendMode::buffered);
        network.endpoint(1).post_recv(0, 0, {0, 0}, data, bytes);
        Slot done[1];
        std::size_t count = 0;
        EXPECT_EQ(network.endpoint(1).progress(done, count), Status::mismatch);
    }
}

}  // namespace
}  // namespace thalweg
