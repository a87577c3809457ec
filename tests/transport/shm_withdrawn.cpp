// Receives of which the sender was told, and messages that go to such, where one side's channel ends
// meanwhile.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

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

}  // namespace
}  // namespace thalweg
