// Receives of which the sender was told, and messages that go to such, where one side's channel ends
// meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cpu_time.h"
#include "shm_two_ports.h"

namespace thalweg {
namespace {

class shm_withdrawn : public TwoPorts {};

// At once, because only this process writes there; and what is sent later finds no receive.
TEST_F(shm_withdrawn, a_receive_that_is_withdrawn_is_told_of_no_more) {
    for (const bool heard : {false, true}) {
        const std::uint32_t name = heard ? 1 : 2;
        auto to = channel(0, name);
        const auto from = channel(1, name), other = channel(0, name + 2), other_from = channel(1, name + 2);
        std::string received(least, ' ');
        const std::string sent = bytes_of(least, 1), untouched = received;
        std::size_t ignored = 0;
        ASSERT_EQ(to->post_recv(0, 1, {}, received.data(), least), Status::ok);
        if (heard) {
            ASSERT_EQ(from->progress({}, ignored), Status::ok);
        }
        const std::uint64_t begin_ns = now_ns();
        to.reset();
        EXPECT_LT(now_ns() - begin_ns, 500'000'000u);
        ASSERT_EQ(from->progress({}, ignored), Status::ok);
        ASSERT_EQ(from->post_send(0, 0, {}, sent.data(), least, SendMode::buffered), Status::ok);
        EXPECT_FALSE(is_done(*from));
        ASSERT_EQ(other->post_recv(0, 1, {}, received.data(), least), Status::ok);
        ASSERT_EQ(other_from->post_send(0, 0, {}, sent.data(), least, SendMode::buffered), Status::ok);
        ASSERT_EQ(take(*other, *other_from, 1), Status::ok);
        EXPECT_TRUE(received == sent);
        // A channel of the same name finds the message that was sent to the one before.
        to = channel(0, name);
        received = untouched;
        ASSERT_EQ(to->post_recv(0, 1, {}, received.data(), least), Status::ok);
        ASSERT_EQ(take(*to, *from, 1), Status::ok);
        EXPECT_TRUE(received == sent);
    }
}

TEST_F(shm_withdrawn, a_channel_that_the_sender_has_not_opened_yet_or_has_closed) {
    std::string received(least, ' ');
    const std::string sent = bytes_of(least, 1);
    const auto to = channel(0, 0), other = channel(1, 1);
    std::size_t ignored = 0;
    for (std::uint32_t i = 0; i < 2; ++i) {
        // Nothing is kept of what came meanwhile.
        ASSERT_EQ(to->post_recv(0, 1, {i, 0}, received.data(), least), Status::ok);
        ASSERT_EQ(other->progress({}, ignored), Status::ok);
        const auto from = channel(1, 0);
        ASSERT_EQ(from->post_send(0, 0, {i, 0}, sent.data(), least, SendMode::buffered), Status::ok);
        ASSERT_EQ(take(*to, *from, 1), Status::ok);
        ASSERT_EQ(take(*from, *to, 1), Status::ok);
        EXPECT_TRUE(received == sent);
        received.assign(least, ' ');
    }
    // Heard of by a channel that closes before it sends.
    auto from = channel(1, 0);
    ASSERT_EQ(to->post_recv(0, 1, {2, 0}, received.data(), least), Status::ok);
    ASSERT_EQ(from->progress({}, ignored), Status::ok);
    from.reset();
    const auto again = channel(1, 0);
    EXPECT_FALSE(is_done(*to));
    // It knows of nothing that was told to the one before, and asks.
    ASSERT_EQ(again->post_send(0, 0, {2, 0}, sent.data(), least, SendMode::buffered), Status::ok);
    ASSERT_EQ(take(*to, *again, 1), Status::ok);
    ASSERT_EQ(take(*again, *to, 1), Status::ok);
    EXPECT_TRUE(received == sent);
}

// Its message was asked about before; who comes next does not get what is left of that.
TEST_F(shm_withdrawn, a_receive_that_is_withdrawn_when_its_message_is_on_its_way) {
    for (const std::size_t bytes : {least, longest}) {
        auto to = channel(0, 0);
        const auto from = channel(1, 0);
        const std::string first = bytes_of(bytes, 1), second = bytes_of(bytes, 2);
        std::string received(bytes, ' '), sent = first;
        ASSERT_EQ(from->post_send(0, 0, {}, sent.data(), bytes, SendMode::buffered), Status::ok);
        ASSERT_EQ(to->post_recv(0, 1, {}, received.data(), bytes), Status::ok);
        to.reset();
        to = channel(0, 0);
        ASSERT_EQ(ports[0]->set_protocol(""), Status::ok);
        EXPECT_EQ(take(*from, *to, 1), Status::ok);
        sent = second;
        ASSERT_EQ(from->post_send(0, 0, {}, sent.data(), bytes, SendMode::buffered), Status::ok);
        ASSERT_EQ(to->post_recv(0, 1, {}, received.data(), bytes), Status::ok);
        EXPECT_EQ(take(*to, *from, 1), Status::ok);
        EXPECT_EQ(take(*from, *to, 1), Status::ok);
        EXPECT_TRUE(received == second);
        ASSERT_EQ(ports[0]->set_protocol("eager"), Status::ok);
    }
}

// Nobody will receive what is early there; who sent it does not wait for that for ever.
TEST_F(shm_withdrawn, a_message_that_came_before_its_receive_ends_with_the_channel) {
    const std::string sent = bytes_of(8 * longest, 1);
    for (const bool met : {false, true}) {
        const std::uint32_t name = met ? 1 : 2;
        auto to = channel(0, name);
        const auto from = channel(1, name), other = channel(0, name + 2);
        std::string received(sent.size(), ' ');
        std::size_t ignored = 0;
        ASSERT_EQ(from->post_send(0, 0, {}, sent.data(), sent.size(), SendMode::buffered), Status::ok);
        ASSERT_EQ(other->progress({}, ignored), Status::ok);
        EXPECT_FALSE(is_done(*from));
        if (met) {
            ASSERT_EQ(to->post_recv(0, 1, {}, received.data(), received.size()), Status::ok);
        }
        to.reset();
        EXPECT_NE(take(*from, *other, 1), Status::in_progress);
    }
}

// Part of the message is in the ring, or nothing yet: who waits for it hears that it is void.
TEST_F(shm_withdrawn, a_message_that_is_withdrawn_half_way) {
    const std::string sent(longest, 'x');
    std::uint32_t name = 0;
    for (const bool full : {false, true}) {
        const auto to = channel(0, name), other = channel(1, 50 + name);
        auto from = channel(1, name++);
        std::string received(longest, ' '), fill(1000, ' ');
        std::size_t ignored = 0;
        ASSERT_EQ(to->post_recv(0, 1, {}, received.data(), longest), Status::ok);
        for (std::uint32_t i = 0; full && ports[1]->has_left(); ++i)
            ASSERT_EQ(other->post_send(i % 64, 0, {i, 0}, fill.data(), fill.size(), SendMode::buffered),
                      Status::ok);
        ASSERT_EQ(from->post_send(0, 0, {}, sent.data(), longest, SendMode::buffered), Status::ok);
        for (int polls = 0; polls < 5; ++polls) ASSERT_EQ(from->progress({}, ignored), Status::ok);
        EXPECT_NE(ports[1]->copies_left(), 0u) << "it is longer than the ring";
        std::thread giving_up([&] { from->give_up(); });
        EXPECT_EQ(take(*to, *to, 1), Status::transport_failed);
        while (ports[1]->copies_left() != 0) ports[0]->poll();
        for (const std::uint64_t begin_ns = now_ns(); now_ns() - begin_ns < 10'000'000;) ports[0]->poll();
        giving_up.join();
    }
}

// Memory that a peer puts into is its owner's again when that has given up: nothing is written there any
// more, and who was putting hears of it at once. Who was not, when it wants something of the owner.
TEST_F(shm_withdrawn, nothing_is_put_into_memory_whose_owner_gave_up) {
    constexpr std::size_t bytes = 32u << 20;
    const std::string sent(bytes, 'x');
    for (const bool puts : {false, true}) {
        const std::uint32_t name = puts;
        const auto to = channel(0, name), from = channel(1, name);
        if (!to->capabilities().one_sided || !from->capabilities().one_sided)
            GTEST_SKIP() << "the system does not let one process write into another";
        std::string memory(bytes, ' '), then;
        std::vector<std::byte> key;
        Region region = 0;
        Target target = 0;
        std::size_t ignored = 0;
        ASSERT_EQ(to->expose(memory.data(), bytes, region, key), Status::ok);
        ASSERT_EQ(from->attach(0, key, target), Status::ok);
        ASSERT_EQ(to->post_recv(0, 1, {}, memory.data(), 0), Status::ok);
        if (puts) {
            ASSERT_EQ(from->post_put(0, target, 0, sent.data(), bytes, {}), Status::ok);
            for (int polls = 0; polls < 3; ++polls) ASSERT_EQ(from->progress({}, ignored), Status::ok);
            ASSERT_NE(ports[1]->copies_left(), 0u);
        }
        std::atomic<bool> is_given_up{false};
        const std::uint64_t begin_ns = now_ns();
        std::thread owner([&] {
            to->give_up();
            then = memory;
            is_given_up = true;
        });
        // Until it has said so, in all likelihood.
        while (now_ns() - begin_ns < 100'000'000) std::this_thread::yield();
        EXPECT_FALSE(is_given_up) << "the peer may still be putting";
        while (!is_given_up) ports[1]->poll();
        owner.join();
        EXPECT_LT(now_ns() - begin_ns, 1'000'000'000u) << "the peer has answered";
        EXPECT_EQ(ports[1]->copies_left(), 0u);
        EXPECT_EQ(from->progress({}, ignored), puts ? Status::transport_failed : Status::ok);
        EXPECT_EQ(from->post_put(1, target, 0, sent.data(), bytes, {1, 0}), Status::transport_failed);
        for (int polls = 0; polls < 100; ++polls) ports[1]->poll();
        EXPECT_TRUE(memory == then);
        EXPECT_TRUE(memory != sent);
    }
}

// It says so while its peer sends to it, who reads that on the way, to find out whether it is expected.
TEST_F(shm_withdrawn, who_sends_hears_that_its_receiver_has_given_up) {
    const auto to = channel(0, 0), from = channel(1, 0);
    if (!to->capabilities().one_sided)
        GTEST_SKIP() << "the system does not let one process write into another";
    const std::string sent = bytes_of(least, 1);
    std::string memory(64, ' ');
    std::vector<std::byte> key;
    Region region = 0;
    ASSERT_EQ(to->expose(memory.data(), memory.size(), region, key), Status::ok);
    const std::uint64_t begin_ns = now_ns();
    std::thread owner([&] { to->give_up(); });
    // Until it has said so, in all likelihood.
    while (now_ns() - begin_ns < 100'000'000) std::this_thread::yield();
    EXPECT_EQ(from->post_send(0, 0, {}, sent.data(), least, SendMode::buffered), Status::transport_failed);
    owner.join();
    EXPECT_LT(now_ns() - begin_ns, 1'000'000'000u) << "the peer has answered";
}

// The peer may need the core to answer; here it never does.
TEST_F(shm_withdrawn, who_gives_up_waits_asleep) {
    const auto to = channel(0, 0), from = channel(1, 0);
    const std::string sent = bytes_of(2 * longest, 1);
    ASSERT_EQ(from->post_send(0, 0, {}, sent.data(), sent.size(), SendMode::buffered), Status::ok);
    const double began_s = test::thread_cpu_seconds();
    const std::uint64_t begin_ns = now_ns();
    from->give_up();
    EXPECT_GT(now_ns() - begin_ns, 900'000'000u) << "it waits for nobody";
    EXPECT_LT(test::thread_cpu_seconds() - began_s, 0.4);
}

}  // namespace
}  // namespace thalweg
