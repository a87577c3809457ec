// Ports of the ucx transport that need no second process: what they refuse, count and give back.
#if __has_include(<ucp/api/ucp.h>)
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "transport/ucx/port.h"
#include "transport/ucx/ucx.h"
#include "ucx_two_ports.h"

namespace thalweg {
namespace {

// A directory of one process, in memory of its own.
Status meet(UcxPort& port, std::uint32_t process, std::span<const std::byte> address, std::string& why) {
    struct Own {
        std::vector<std::byte> bytes;
        std::uint64_t offsets[2];
        std::uint32_t process;
    };
    const auto own =
        std::make_shared<const Own>(Own{{address.begin(), address.end()}, {0, address.size()}, process});
    return port.learn({own->bytes, own->offsets, {&own->process, 1}, own}, why);
}

TEST(ucx_port, says_why_it_cannot_start) {
    std::unique_ptr<UcxPort> port;
    std::string why;
    UcxOptions options;
    options.devices = {"no-such-device"};
    options.transports = "tcp";
    EXPECT_EQ(UcxPort::open(options, port, why), Status::unsupported);
    EXPECT_NE(why.find("no-such-device"), std::string::npos) << why;
    EXPECT_EQ(port, nullptr);
    options = {};
    options.transports = "no-such-transport";
    EXPECT_EQ(UcxPort::open(options, port, why), Status::unsupported);
    EXPECT_NE(why.find("ucp_"), std::string::npos) << why;
    options = {};
    options.processes = (1u << 23) + 1;
    EXPECT_EQ(UcxPort::open(options, port, why), Status::unsupported);
    options.process = options.processes;
    EXPECT_EQ(UcxPort::open(options, port, why), Status::invalid_argument);
}

TEST(ucx_port, names_are_given_once_until_they_come_back) {
    std::unique_ptr<UcxPort> port;
    std::string why;
    UcxOptions options;
    options.process = 5;
    options.processes = 1u << 20;
    ASSERT_EQ(UcxPort::open(options, port, why), Status::ok) << why;
    std::set<std::uint32_t> counters;
    UcxChannelName name;
    while (port->name_channel(name) == Status::ok) {
        EXPECT_EQ(name.root, 5u);
        EXPECT_TRUE(counters.insert(name.counter).second);
    }
    EXPECT_EQ(counters.size(), 64u);
    port->give_back({5, 17});
    port->give_back({4, 18});  // another process's
    ASSERT_EQ(port->name_channel(name), Status::ok);
    EXPECT_EQ(name, (UcxChannelName{5, 17}));
    EXPECT_EQ(port->name_channel(name), Status::unsupported);
}

// What is kept of names that came back is bounded, however many there are.
TEST(ucx_port, names_come_back_before_all_are_used) {
    std::unique_ptr<UcxPort> port;
    std::string why;
    UcxOptions options;
    options.processes = 2;  // 2^32 names
    ASSERT_EQ(UcxPort::open(options, port, why), Status::ok) << why;
    constexpr std::uint32_t most_returned = 1 << 16;
    UcxChannelName kept, name;
    ASSERT_EQ(port->name_channel(kept), Status::ok);
    for (std::uint32_t i = 0; i < 3 * most_returned; ++i) {
        ASSERT_EQ(port->name_channel(name), Status::ok);
        ASSERT_EQ(name, (UcxChannelName{0, kept.counter + 1 + i % most_returned})) << i;
        port->give_back(name);
    }
}

// A name is opened again after a channel that left nothing on its way, and not after one that did.
TEST(ucx_port, a_name_comes_back_where_nothing_was_left) {
    std::unique_ptr<UcxPort> port;
    std::string why;
    UcxOptions options;
    options.processes = 2;
    ASSERT_EQ(UcxPort::open(options, port, why), Status::ok) << why;
    ASSERT_EQ(meet(*port, 0, port->address(), why), Status::ok) << why;
    const std::uint32_t processes[] = {0, 1};
    UcxGroup group;
    group.size = 2;
    group.processes = processes;
    std::unique_ptr<Transport> channel;
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(port->make_channel(group, channel), Status::ok);
        channel.reset();
    }
    ASSERT_EQ(port->make_channel(group, channel), Status::ok);
    char byte = 0;
    ASSERT_EQ(channel->post_recv(0, 0, {}, &byte, 1), Status::ok);  // nobody sends it
    channel.reset();
    EXPECT_EQ(port->make_channel(group, channel), Status::invalid_argument);
    group.space = OperationSpace::plans;
    EXPECT_EQ(port->make_channel(group, channel), Status::ok);
    // A failure: nobody has met process 1.
    EXPECT_EQ(channel->post_send(0, 1, {}, &byte, 1, SendMode::buffered), Status::transport_failed);
    channel.reset();
    EXPECT_EQ(port->make_channel(group, channel), Status::invalid_argument);
    group.name.counter = 1;
    EXPECT_EQ(port->make_channel(group, channel), Status::ok);
}

TEST(ucx_port, meets_processes_by_and_by) {
    std::unique_ptr<UcxPort> port, other;
    std::string why;
    UcxOptions options;
    options.processes = 3;
    ASSERT_EQ(UcxPort::open(options, port, why), Status::ok) << why;
    options.process = 2;
    ASSERT_EQ(UcxPort::open(options, other, why), Status::ok) << why;
    EXPECT_FALSE(port->knows(2));
    std::vector<std::byte> bytes(other->address().begin(), other->address().end());
    EXPECT_EQ(meet(*port, 3, bytes, why), Status::mismatch);  // there are three
    EXPECT_EQ(meet(*port, 2, std::span(bytes).first(bytes.size() - 8), why), Status::mismatch);
    EXPECT_FALSE(port->knows(2));
    ASSERT_EQ(meet(*port, 2, bytes, why), Status::ok) << why;
    std::fill(bytes.begin(), bytes.end(), std::byte{0xff});  // it was copied
    EXPECT_TRUE(port->knows(2));
    EXPECT_FALSE(port->knows(1));
    ASSERT_EQ(meet(*other, 0, port->address(), why), Status::ok) << why;
    ASSERT_EQ(meet(*port, 0, port->address(), why), Status::ok) << why;

    const std::uint32_t processes[] = {0, 2};
    UcxGroup group;
    group.size = 2;
    group.processes = processes;
    std::unique_ptr<Transport> here, there;
    ASSERT_EQ(port->make_channel(group, here), Status::ok);
    group.rank = 1;
    ASSERT_EQ(other->make_channel(group, there), Status::ok);
    std::string sent(100000, 'x'), received(sent.size(), ' ');
    ASSERT_EQ(there->post_recv(0, 0, {}, received.data(), received.size()), Status::ok);
    ASSERT_EQ(here->post_send(0, 1, {}, sent.data(), sent.size(), SendMode::buffered), Status::ok);
    const std::uint64_t mark = here->sent();
    EXPECT_GT(mark, 0u);
    std::size_t arrived = 0, left = 0, count = 0;
    Slot done[2];
    const std::uint64_t until_ns = now_ns() + 100'000'000'000;
    while ((arrived == 0 || left == 0 || !here->has_left(mark)) && now_ns() < until_ns) {
        ASSERT_EQ(there->progress(done, count), Status::ok);
        arrived += count;
        ASSERT_EQ(here->progress(done, count), Status::ok);
        left += count;
    }
    EXPECT_TRUE(here->has_left(mark));
    EXPECT_EQ(received, sent);
    here.reset();
    there.reset();
    close_together(port, other);
}

// A job's environment may leave libucp with nothing that leads anywhere; it starts all the same.
TEST(ucx_port, says_where_it_finds_no_way) {
    for (const bool tcp : {false, true}) {
        std::unique_ptr<UcxPort> ports[2];
        std::string why;
        for (std::uint32_t process = 0; process < 2; ++process) {
            UcxOptions options;
            options.process = process;
            options.processes = 2;
            options.transports = tcp ? "self,tcp" : "self";
            ASSERT_EQ(UcxPort::open(options, ports[process], why), Status::ok) << why;
        }
        ASSERT_EQ(meet(*ports[0], 1, ports[1]->address(), why), Status::ok) << why;
        EXPECT_EQ(ports[0]->reaches(1, why), tcp) << why;
        if (!tcp) {
            EXPECT_NE(why.find("no way to process 1"), std::string::npos) << why;
        }
    }
}

TEST(ucx_port, refuses_directories_and_groups_that_do_not_fit) {
    std::unique_ptr<UcxPort> port;
    std::string why;
    ASSERT_EQ(UcxPort::open({}, port, why), Status::ok) << why;
    const auto mine = port->address();
    std::vector<std::byte> bytes(mine.begin(), mine.end());
    std::vector<std::uint64_t> offsets{0, bytes.size()};
    const auto learn = [&] { return port->learn({bytes, offsets}, why); };
    offsets = {0};
    EXPECT_EQ(learn(), Status::mismatch);
    offsets = {0, bytes.size() + 1};
    EXPECT_EQ(learn(), Status::mismatch);
    offsets = {0, bytes.size() - 1};
    EXPECT_EQ(learn(), Status::mismatch);
    offsets = {0, bytes.size()};
    EXPECT_EQ(learn(), Status::ok) << why;
    std::unique_ptr<Transport> channel;
    UcxGroup group;
    group.size = 2;
    EXPECT_EQ(port->make_channel(group, channel), Status::invalid_argument);
    const std::uint32_t processes[] = {1};
    group.size = 1;
    group.processes = processes;
    EXPECT_EQ(port->make_channel(group, channel), Status::invalid_argument);
    group.processes = nullptr;
    group.rank = 1;
    EXPECT_EQ(port->make_channel(group, channel), Status::invalid_argument);
    group.rank = 0;
    group.name.root = 1;
    EXPECT_EQ(port->make_channel(group, channel), Status::invalid_argument);
    group.name.root = 0;
    ASSERT_EQ(port->make_channel(group, channel), Status::ok);
    // Both spaces of one name, each once; free again when destroyed.
    std::unique_ptr<Transport> plans, again;
    EXPECT_EQ(port->make_channel(group, again), Status::invalid_argument);
    group.space = OperationSpace::plans;
    EXPECT_EQ(port->make_channel(group, plans), Status::ok);
    EXPECT_EQ(port->make_channel(group, again), Status::invalid_argument);
    plans.reset();
    EXPECT_EQ(port->make_channel(group, again), Status::ok);
}

// A later directory takes the place of those that it covers, whose memory is let go.
TEST(ucx_port, learns_directories_one_by_one) {
    constexpr std::uint32_t processes = 10;
    UcxOptions options;
    options.processes = processes;
    std::unique_ptr<UcxPort> port;
    std::string why;
    ASSERT_EQ(UcxPort::open(options, port, why), Status::ok) << why;
    const auto mine = port->address();
    struct Memory {
        std::vector<std::byte> bytes;
        std::vector<std::uint64_t> offsets{0};
        std::vector<std::uint32_t> processes;
    };
    const auto learn = [&](std::vector<std::uint32_t> named, std::weak_ptr<const Memory>& memory) {
        const auto own = std::make_shared<Memory>();
        own->processes = std::move(named);
        const std::size_t count = own->processes.empty() ? processes : own->processes.size();
        for (std::size_t i = 0; i < count; ++i) {
            own->bytes.insert(own->bytes.end(), mine.begin(), mine.end());
            own->offsets.push_back(own->bytes.size());
        }
        memory = own;
        return port->learn({own->bytes, own->offsets, own->processes, own}, why);
    };
    std::weak_ptr<const Memory> few, others, unordered, more, all;
    ASSERT_EQ(learn({1, 3, 7}, few), Status::ok) << why;
    ASSERT_EQ(learn({3, 4}, others), Status::ok) << why;
    EXPECT_FALSE(few.expired() || others.expired());
    for (std::uint32_t process = 0; process < processes; ++process)
        EXPECT_EQ(port->knows(process), process == 1 || process == 3 || process == 4 || process == 7)
            << process;
    EXPECT_EQ(learn({2, 2}, unordered), Status::mismatch);
    EXPECT_EQ(learn({5, 2}, unordered), Status::mismatch);
    EXPECT_EQ(learn({5, processes}, unordered), Status::mismatch);
    EXPECT_FALSE(port->knows(2) || port->knows(5));
    EXPECT_TRUE(unordered.expired());
    ASSERT_EQ(learn({1, 2, 3, 7}, more), Status::ok) << why;
    EXPECT_TRUE(few.expired());
    EXPECT_FALSE(others.expired());
    EXPECT_TRUE(port->knows(1) && port->knows(2) && port->knows(4));
    ASSERT_EQ(learn({1, 7}, few), Status::ok) << why;  // nothing new
    EXPECT_TRUE(few.expired());
    ASSERT_EQ(learn({}, all), Status::ok) << why;
    EXPECT_TRUE(others.expired() && more.expired());
    for (std::uint32_t process = 0; process < processes; ++process) EXPECT_TRUE(port->knows(process));
    port.reset();
    EXPECT_TRUE(all.expired());
}

// libucp looks through it once in a process: in one of its own.
TEST(ucx_port, starts_in_a_process_that_cleared_its_environment) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto start = [] {
        clearenv();
        if (environ != nullptr) _exit(2);
        UcxOptions options;
        options.processes = 3;
        options.transports = "self,tcp";
        std::unique_ptr<UcxPort> port;
        std::string why;
        const Status status = UcxPort::open(options, port, why);
        _exit(status != Status::ok ? 3 : environ != nullptr ? 4 : 0);
    };
    EXPECT_EXIT(start(), testing::ExitedWithCode(0), "");
}

// Before libucp complains of it, and before an operation fails for want of a socket.
TEST(ucx_port, a_process_that_may_open_few_descriptors_has_none) {
    rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const auto open = [](std::string& why) {
        UcxOptions options;
        options.processes = 3;
        options.transports = "self,tcp";
        std::unique_ptr<UcxPort> port;
        return UcxPort::open(options, port, why);
    };
    std::string why;
    ASSERT_EQ(open(why), Status::ok) << why;
    rlimit few = before;
    const int next = dup(0);
    close(next);
    few.rlim_cur = static_cast<rlim_t>(next) + 20;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_EQ(open(why), Status::unsupported);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_NE(why.find("more descriptors"), std::string::npos) << why;
    EXPECT_EQ(open(why), Status::ok) << why;
}

// More peers than descriptors: found out when a communicator is set up, not when a message is sent.
TEST(ucx_port, counts_what_connections_to_peers_may_take) {
    std::vector<std::uint32_t> processes(150);
    std::iota(processes.begin(), processes.end(), 0u);
    UcxOptions options;
    options.processes = static_cast<std::uint32_t>(processes.size());
    std::unique_ptr<UcxPort> port;
    std::string why;
    ASSERT_EQ(UcxPort::open(options, port, why), Status::ok) << why;
    rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit few = before;
    const int next = dup(0);
    close(next);
    few.rlim_cur = static_cast<rlim_t>(next) + 100;
    if (before.rlim_max != RLIM_INFINITY) few.rlim_cur = std::min(few.rlim_cur, before.rlim_max);
    EXPECT_TRUE(port->has_room_for(processes, why)) << why;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    const bool all = port->has_room_for(processes, why);
    std::string ignored;
    const bool some = port->has_room_for(std::span(processes).first(20), ignored);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (std::filesystem::exists("/sys/class/infiniband")) GTEST_SKIP() << "peers take no descriptors here";
    EXPECT_FALSE(all);
    EXPECT_NE(why.find("149 connections"), std::string::npos) << why;
    EXPECT_TRUE(some);
}

// A channel that has failed is polled no more, so nobody answers its bell: that must not keep those who sleep
// for other channels awake for ever.
TEST(ucx_port, a_failed_channel_does_not_ring_for_ever) {
    std::unique_ptr<UcxPort> port;
    std::string why;
    UcxOptions options;
    options.processes = 2;
    ASSERT_EQ(UcxPort::open(options, port, why), Status::ok) << why;
    const std::uint32_t processes[] = {0, 1};  // nobody has met process 1
    UcxGroup group;
    group.size = 2;
    group.processes = processes;
    std::unique_ptr<Transport> failing, other;
    ASSERT_EQ(port->make_channel(group, failing), Status::ok);
    group.name.counter = 1;
    ASSERT_EQ(port->make_channel(group, other), Status::ok);
    std::size_t count = 0;
    Slot done[2];
    const auto arm = [&](Transport& channel) {
        const std::uint64_t until_ns = now_ns() + 100'000'000'000;
        while (channel.arm() != Status::ok && now_ns() < until_ns) channel.progress(done, count);
        return channel.arm();
    };
    // One thread sleeps for it, another one makes it fail.
    std::thread sleeper([&] { EXPECT_EQ(arm(*failing), Status::ok); });
    sleeper.join();
    char byte = 0;
    EXPECT_EQ(failing->post_send(0, 1, {}, &byte, 1, SendMode::buffered), Status::transport_failed);
    EXPECT_EQ(other->arm(), Status::in_progress);  // so that the sleeper wakes
    EXPECT_EQ(arm(*other), Status::ok);
}

}  // namespace
}  // namespace thalweg
#endif
