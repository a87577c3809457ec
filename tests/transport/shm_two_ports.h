// Two ports of the shm transport in one process, which have met.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "transport/shm/ready.h"
#include "transport/shm/shm.h"

namespace thalweg {

// Of messages whose receives are told of.
inline constexpr std::size_t least = shm::payload_bytes + 1, longest = shm::most_ready_bytes;
inline constexpr std::uint64_t longest_ns = 5'000'000'000;

// The message that both send in the beginning, so that they have heard of each other.
inline constexpr MessageId greeting{1000, 0};

// As two processes of one host have them.
class OpenPorts : public testing::Test {
  protected:
    // With these options, but for the process.
    void open_ports(ShmOptions options) {
        std::string why;
        for (auto& port : ports) port.reset();
        for (std::uint32_t process = 0; process < 2; ++process) {
            options.process = process;
            ASSERT_EQ(ShmPort::open(options, ports[process], why), Status::ok) << why;
        }
        for (std::uint32_t process = 0; process < 2; ++process)
            ASSERT_EQ(ports[process]->meet(1 - process, ports[1 - process]->address(), why), Status::ok)
                << why;
    }
    // One of the channels number `counter`.
    std::unique_ptr<Transport> channel(int rank, std::uint32_t counter, Slot slots = 64) {
        ShmGroup group;
        group.slots = slots;
        group.name = {0, counter};
        group.rank = rank;
        group.size = 2;
        std::unique_ptr<Transport> made;
        EXPECT_EQ(ports[rank]->make_channel(group, made), Status::ok);
        return made;
    }

    std::unique_ptr<ShmPort> ports[2];
};

// And which have heard of each other.
class TwoPorts : public OpenPorts {
  protected:
    void SetUp() override { meet("eager"); }
    void meet(const char* protocol) {
        ShmOptions options;
        options.protocol = protocol;
        options.spins = true;
        ASSERT_NO_FATAL_FAILURE(open_ports(options));
        const auto to = channel(0, 99), from = channel(1, 99);
        char mine = 'x', theirs = ' ', its = ' ';
        ASSERT_EQ(to->post_recv(0, 1, greeting, &theirs, 1), Status::ok);
        ASSERT_EQ(from->post_recv(0, 0, greeting, &its, 1), Status::ok);
        ASSERT_EQ(to->post_send(1, 1, greeting, &mine, 1, SendMode::buffered), Status::ok);
        ASSERT_EQ(from->post_send(1, 0, greeting, &mine, 1, SendMode::buffered), Status::ok);
        EXPECT_EQ(take(*to, *from, 2), Status::ok);
        EXPECT_EQ(take(*from, *to, 2), Status::ok);
    }
    // Polls `channel`, and `peer`, until `count` slots of `channel` are done.
    static Status take(Transport& channel, Transport& peer, std::size_t count) {
        std::array<Slot, 64> done;
        std::size_t ignored = 0, found = 0;
        const std::uint64_t until_ns = now_ns() + longest_ns;
        while (count != 0) {
            if (now_ns() > until_ns) return Status::in_progress;
            if (const Status status =
                    channel.progress(std::span(done).first(std::min(count, done.size())), found);
                failed(status))
                return status;
            count -= found;
            if (count != 0) (void)peer.progress({}, ignored);
        }
        return Status::ok;
    }
    // Whether a slot of `channel` is done without anybody else's doing.
    static bool is_done(Transport& channel) {
        Slot done = 0;
        std::size_t found = 0;
        for (int polls = 0; polls < 20 && found == 0; ++polls)
            if (failed(channel.progress({&done, 1}, found))) return false;
        return found == 1;
    }
    static std::string bytes_of(std::size_t bytes, unsigned seed) {
        std::string made(bytes, ' ');
        for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<char>(i * 31 + i / 256 + seed * 97);
        return made;
    }
};

}  // namespace thalweg
