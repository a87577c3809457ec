// Receives of which the sender is told before it sends: two ports of the shm transport in one process.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "shm_two_ports.h"

extern thread_local bool memory_lacks;  // shm_port.cpp

namespace thalweg {
namespace {

class shm_ready : public TwoPorts {};

TEST_F(shm_ready, who_sends_what_was_told_of_does_not_ask) {
    const auto to = channel(0, 0), from = channel(1, 0);
    std::uint32_t operation = 0;
    for (const std::size_t bytes : {least, std::size_t{48'000}, std::size_t{65536}, std::size_t{100'001}}) {
        for (const SendMode mode : {SendMode::buffered, SendMode::synchronous}) {
            const std::string sent = bytes_of(bytes, operation);
            std::string received(bytes, ' ');
            ASSERT_EQ(to->post_recv(0, 1, {operation, 0}, received.data(), bytes), Status::ok);
            ASSERT_EQ(from->post_send(0, 0, {operation, 0}, sent.data(), bytes, mode), Status::ok);
            EXPECT_TRUE(is_done(*from)) << bytes << ": the receiver was asked";
            EXPECT_TRUE(is_done(*to)) << bytes;
            EXPECT_TRUE(received == sent) << bytes;
            ++operation;
        }
    }
}

TEST_F(shm_ready, longer_and_shorter_ones_and_those_that_have_come_are_as_ever) {
    const auto to = channel(0, 0), from = channel(1, 0);
    std::uint32_t operation = 0;
    for (const std::size_t bytes : {least - 1, longest, longest + 1}) {
        const std::string sent = bytes_of(bytes, operation);
        std::string received(bytes, ' ');
        ASSERT_EQ(to->post_recv(0, 1, {operation, 0}, received.data(), bytes), Status::ok);
        ASSERT_EQ(from->post_send(0, 0, {operation, 0}, sent.data(), bytes, SendMode::buffered), Status::ok);
        ASSERT_EQ(take(*to, *from, 1), Status::ok);
        ASSERT_EQ(take(*from, *to, 1), Status::ok);
        EXPECT_TRUE(received == sent) << bytes;
        ++operation;
    }
}

// The request is written before the sender hears of the receive, which is posted before the request is read.
TEST_F(shm_ready, what_is_told_and_what_is_asked_may_cross) {
    const auto to = channel(0, 0), from = channel(1, 0);
    for (std::uint32_t i = 0; i < 5; ++i) {
        const std::string sent = bytes_of(50'000, i);
        std::string received(sent.size(), ' ');
        ASSERT_EQ(from->post_send(0, 0, {i, 0}, sent.data(), sent.size(), SendMode::buffered), Status::ok);
        ASSERT_EQ(to->post_recv(0, 1, {i, 0}, received.data(), sent.size()), Status::ok);
        ASSERT_EQ(take(*to, *from, 1), Status::ok);
        EXPECT_TRUE(is_done(*from));
        EXPECT_TRUE(received == sent) << i;
    }
    EXPECT_EQ(ports[0]->accounts().at(0).messages[4], 5u);
}

// Messages of the same few names, in any order of posts and polls, by every protocol: they meet in order.
TEST_F(shm_ready, messages_of_one_name_meet_their_receives_in_order) {
    struct Half {
        std::string memory;
        std::uint32_t name = 0;
    };
    for (const char* const protocol : {"eager", "cma_get", "cma_put", "coop", ""}) {
        meet(protocol);
        const auto to = channel(0, 0), from = channel(1, 0);
        std::mt19937 random(7);
        constexpr std::size_t messages = 600;
        constexpr std::array<std::size_t, 4> sizes{40'000, 70'000, 130'000, 300};
        std::deque<Half> sent, received;
        std::array<Slot, 64> slots;
        std::vector<Slot> free[2];
        for (Slot slot = 0; slot < 16; ++slot) free[0].push_back(slot), free[1].push_back(slot);
        std::size_t left = 2 * messages, found = 0;
        std::vector<std::uint32_t> names(messages);
        for (std::uint32_t& name : names) name = random() % sizes.size();
        const std::uint64_t until_ns = now_ns() + 4 * longest_ns;
        while (left != 0 && now_ns() < until_ns) {
            // Now and then another protocol, so that of messages of one name some are told of.
            if (protocol[0] == '\0' && random() % 16 == 0) {
                ASSERT_EQ(ports[0]->set_protocol(std::array{"eager", "cma_get", ""}[random() % 3]),
                          Status::ok);
            }
            const unsigned act = random() % 8;
            if (act < 3 && !free[0].empty() && received.size() < messages) {
                const std::uint32_t name = names[received.size()];
                received.push_back({std::string(sizes[name], ' '), name});
                ASSERT_EQ(
                    to->post_recv(free[0].back(), 1, {name, 0}, received.back().memory.data(), sizes[name]),
                    Status::ok);
                free[0].pop_back();
            } else if (act < 6 && !free[1].empty() && sent.size() < messages) {
                const std::uint32_t name = names[sent.size()];
                sent.push_back({bytes_of(sizes[name], static_cast<unsigned>(sent.size())), name});
                ASSERT_EQ(
                    from->post_send(free[1].back(), 0, {name, 0}, sent.back().memory.data(), sizes[name],
                                    random() % 2 == 0 ? SendMode::buffered : SendMode::synchronous),
                    Status::ok);
                free[1].pop_back();
            } else {
                const std::size_t side = act % 2;
                ASSERT_EQ((side == 0 ? to : from)->progress(slots, found), Status::ok);
                free[side].insert(free[side].end(), slots.begin(), slots.begin() + found);
                left -= found;
            }
        }
        ASSERT_EQ(left, 0u) << protocol;
        for (std::size_t i = 0; i < messages; ++i)
            ASSERT_TRUE(received[i].memory == sent[i].memory) << protocol << ", message " << i;
    }
}

// The sender keeps so many; it asks about the others.
TEST_F(shm_ready, more_receives_than_the_sender_keeps) {
    const auto to = channel(0, 0), from = channel(1, 0);
    constexpr std::uint32_t count = shm::Readies::most + 10;
    std::vector<std::string> received(count), sent(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        received[i].assign(least, ' ');
        ASSERT_EQ(to->post_recv(i, 1, {i, 0}, received[i].data(), least), Status::ok);
    }
    std::size_t ignored = 0;
    ASSERT_EQ(from->progress({}, ignored), Status::ok);
    ASSERT_EQ(from->progress({}, ignored), Status::ok);
    for (std::uint32_t i = count; i-- > 0;) {
        sent[i] = bytes_of(least, i);
        ASSERT_EQ(from->post_send(i, 0, {i, 0}, sent[i].data(), least, SendMode::buffered), Status::ok);
    }
    ASSERT_EQ(take(*to, *from, count), Status::ok);
    ASSERT_EQ(take(*from, *to, count), Status::ok);
    for (std::uint32_t i = 0; i < count; ++i) EXPECT_TRUE(received[i] == sent[i]) << i;
}

TEST_F(shm_ready, sizes_that_differ_are_a_mismatch) {
    std::string received(longest, ' ');
    const std::string sent(longest + 1, 'x');
    std::uint32_t name = 0;
    for (const bool told_first : {true, false}) {
        for (const std::size_t bytes : {std::size_t{10}, least, std::size_t{40'000}, longest + 1}) {
            const auto to = channel(0, name), from = channel(1, name);
            ++name;
            if (told_first) {
                ASSERT_EQ(to->post_recv(0, 1, {}, received.data(), 50'000), Status::ok);
            }
            ASSERT_EQ(from->post_send(0, 0, {}, sent.data(), bytes, SendMode::synchronous), Status::ok);
            if (!told_first) {
                ASSERT_EQ(to->post_recv(0, 1, {}, received.data(), 50'000), Status::ok);
            }
            EXPECT_EQ(take(*to, *from, 1), Status::mismatch) << bytes;
            EXPECT_EQ(take(*from, *to, 1), Status::ok) << bytes;
        }
    }
}

TEST_F(shm_ready, the_end_of_either_side) {
    std::string received(least, ' ');
    const std::string sent(least, 'x');
    {
        const auto to = channel(0, 0);
        ASSERT_EQ(to->post_recv(0, 1, {}, received.data(), least), Status::ok);
        ports[1].reset();
        EXPECT_EQ(take(*to, *to, 1), Status::transport_failed);
    }
    meet("eager");
    const auto from = channel(1, 0);
    {
        const auto to = channel(0, 0);
        ASSERT_EQ(to->post_recv(0, 1, {}, received.data(), least), Status::ok);
    }
    ports[0].reset();
    std::size_t ignored = 0;
    ASSERT_EQ(from->progress({}, ignored), Status::ok);
    EXPECT_EQ(from->post_send(0, 0, {}, sent.data(), least, SendMode::buffered), Status::transport_failed);
}

TEST_F(shm_ready, elements_come_to_their_places) {
    const auto to = channel(0, 0), from = channel(1, 0);
    constexpr std::size_t runs = 200, run_bytes = 200, stride = 300;
    std::vector<std::byte> source(runs * stride), target(runs * stride), stand_in(runs * run_bytes),
        other(runs * run_bytes);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7);
    const auto layout = std::make_shared<const Layout>(
        Layout::strided(runs, run_bytes, stride, static_cast<std::int64_t>(runs * stride)));
    ASSERT_EQ(from->stand_in({stand_in.data(), stand_in.size(), layout, source.data(), false}), Status::ok);
    ASSERT_EQ(to->stand_in({other.data(), other.size(), layout, target.data(), false}), Status::ok);
    ASSERT_EQ(to->post_recv(0, 1, {}, other.data(), other.size()), Status::ok);
    ASSERT_EQ(from->post_send(0, 0, {}, stand_in.data(), stand_in.size(), SendMode::buffered), Status::ok);
    EXPECT_TRUE(is_done(*from));
    EXPECT_TRUE(is_done(*to));
    for (std::size_t i = 0; i < source.size(); ++i)
        ASSERT_EQ(target[i], i % stride < run_bytes ? source[i] : std::byte{0}) << i;
}

// In any order of posts and polls.
TEST_F(shm_ready, takes_no_memory) {
    const auto to = channel(0, 0), from = channel(1, 0);
    const std::string sent = bytes_of(60'000, 1);
    std::string received(sent.size(), ' ');
    std::size_t ignored = 0;
    for (std::uint32_t i = 0; i < 64; ++i) {
        memory_lacks = true;
        const bool early = (i & 1) != 0;
        Status posted = Status::ok;
        if (early) posted = from->post_send(0, 0, {i, 0}, sent.data(), sent.size(), SendMode::buffered);
        if (early && (i & 2) != 0) (void)to->progress({}, ignored);
        const Status asked = to->post_recv(0, 1, {i, 0}, received.data(), received.size());
        if (!early && (i & 4) != 0) (void)from->progress({}, ignored);
        if (!early) posted = from->post_send(0, 0, {i, 0}, sent.data(), sent.size(), SendMode::buffered);
        const Status came = take(*to, *from, 1), gone = take(*from, *to, 1);
        memory_lacks = false;
        ASSERT_EQ(posted, Status::ok);
        ASSERT_EQ(asked, Status::ok);
        ASSERT_EQ(came, Status::ok);
        ASSERT_EQ(gone, Status::ok);
        ASSERT_TRUE(received == sent);
        received.assign(sent.size(), ' ');
    }
}

}  // namespace
}  // namespace thalweg
