// The parts of the ucx transport that need no second process: tags, the borrowed environment, names,
// refusals.
#if __has_include(<ucp/api/ucp.h>)
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "transport/ucx/environment.h"
#include "transport/ucx/port.h"
#include "transport/ucx/tag.h"
#include "transport/ucx/ucx.h"

namespace thalweg {
namespace {

using ucx::TagLayout;

TagLayout layout_for(std::uint32_t processes) {
    TagLayout layout;
    EXPECT_TRUE(TagLayout::make(processes, layout)) << processes;
    return layout;
}

TEST(ucx_tags, every_bit_has_one_owner) {
    TagLayout layout;
    for (int bits = 0; bits <= 23; ++bits) {
        for (const std::int64_t around : {0, 1}) {
            const auto processes = static_cast<std::uint32_t>((std::int64_t{1} << bits) + around);
            if (!TagLayout::make(processes, layout)) continue;
            EXPECT_GE(std::uint64_t{1} << layout.process_bits, processes);
            EXPECT_GE(layout.operation_bits, 2) << processes;
            EXPECT_GE(layout.counter_bits, 1) << processes;
            EXPECT_LE(1 + 2 * layout.process_bits + layout.counter_bits + layout.operation_bits +
                          TagLayout::message_bits,
                      64);
            // All ones in one field at a time: no two fields overlap.
            const auto last = static_cast<std::uint32_t>((std::uint64_t{1} << layout.process_bits) - 1);
            const auto counter = static_cast<std::uint32_t>(layout.counters() - 1);
            const std::uint64_t fields[] = {layout.channel({0, 0}, OperationSpace::plans),
                                            layout.channel({last, 0}, OperationSpace::calls),
                                            layout.channel({0, counter}, OperationSpace::calls),
                                            layout.tag(0, last, {0, 0}),
                                            layout.tag(0, 0, {layout.live_operations() - 1, 0}),
                                            layout.tag(0, 0, {0, (1u << TagLayout::message_bits) - 1})};
            std::uint64_t used = 0;
            int bits_used = 0;
            for (const std::uint64_t field : fields) {
                EXPECT_EQ(used & field, 0u) << processes;
                used |= field;
                bits_used += std::popcount(field);
            }
            EXPECT_EQ(std::popcount(used), bits_used);
        }
    }
    EXPECT_FALSE(TagLayout::make((1u << 23) + 1, layout));
}

TEST(ucx_tags, distinct_within_the_live_operations_and_equal_beyond) {
    std::mt19937_64 random(1);
    for (const std::uint32_t processes : {2u, 7u, 1000u, 65536u}) {
        const TagLayout layout = layout_for(processes);
        using Identity =
            std::tuple<std::uint32_t, std::uint32_t, int, std::uint32_t, std::uint32_t, std::uint32_t>;
        std::map<std::uint64_t, Identity> seen;
        for (int i = 0; i < 20'000; ++i) {
            const auto pick = [&](std::uint64_t below) {
                return static_cast<std::uint32_t>(random() % std::min<std::uint64_t>(below, 5));
            };
            const UcxChannelName name{pick(processes), pick(layout.counters())};
            const auto space = static_cast<OperationSpace>(pick(2));
            const std::uint32_t sender = pick(processes);
            const MessageId id{pick(layout.live_operations()), pick(1u << 14)};
            const std::uint64_t tag = layout.tag(layout.channel(name, space), sender, id);
            const Identity identity{name.root, name.counter, static_cast<int>(space),
                                    sender,    id.operation, id.message};
            const auto [entry, fresh] = seen.emplace(tag, identity);
            ASSERT_TRUE(fresh || entry->second == identity);
            // Numbers wrap at 2^32, and at the live operations.
            const MessageId later{id.operation + 3 * layout.live_operations(), id.message};
            EXPECT_EQ(layout.tag(layout.channel(name, space), sender, later), tag);
        }
    }
}

// The figures that the decision record states.
TEST(ucx_tags, the_limits_that_are_documented) {
    const struct {
        std::uint32_t processes, live;
        int counter_bits;
    } rows[] = {{2, 32768, 32},  {64, 4096, 25},   {1024, 512, 20},
                {65536, 32, 12}, {1u << 20, 8, 6}, {1u << 23, 4, 1}};
    for (const auto& row : rows) {
        const TagLayout layout = layout_for(row.processes);
        EXPECT_EQ(layout.live_operations(), row.live) << row.processes;
        EXPECT_EQ(layout.counter_bits, row.counter_bits) << row.processes;
    }
}

TEST(ucx_environment, is_borrowed_and_given_back) {
    setenv("THALWEG_TEST_KEPT", "mine", 1);
    setenv("THALWEG_TEST_REPLACED", "before", 1);
    unsetenv("THALWEG_TEST_NEW");
    char** const at = environ;
    {
        const BorrowedEnvironment borrowed({{"THALWEG_TEST_KEPT", "other", true},
                                            {"THALWEG_TEST_REPLACED", "now"},
                                            {"THALWEG_TEST_NEW", "1"}});
        EXPECT_NE(environ, at);
        EXPECT_STREQ(getenv("THALWEG_TEST_KEPT"), "mine");
        EXPECT_STREQ(getenv("THALWEG_TEST_REPLACED"), "now");
        EXPECT_STREQ(getenv("THALWEG_TEST_NEW"), "1");
    }
    EXPECT_EQ(environ, at);
    EXPECT_STREQ(getenv("THALWEG_TEST_REPLACED"), "before");
    EXPECT_EQ(getenv("THALWEG_TEST_NEW"), nullptr);
    // Somebody else's setenv() in between is not lost, and ours do not stay.
    {
        const BorrowedEnvironment borrowed({{"THALWEG_TEST_REPLACED", "now"}, {"THALWEG_TEST_NEW", "1"}});
        setenv("THALWEG_TEST_OTHER", "theirs", 1);
    }
    EXPECT_STREQ(getenv("THALWEG_TEST_OTHER"), "theirs");
    EXPECT_STREQ(getenv("THALWEG_TEST_REPLACED"), "before");
    EXPECT_EQ(getenv("THALWEG_TEST_NEW"), nullptr);
}

TEST(ucx_address, damaged_ones_are_refused) {
    std::vector<std::vector<std::byte>> rails(2);
    rails[0].resize(13, std::byte{1});
    rails[1].resize(200, std::byte{2});
    const std::vector<std::byte> good = ucx::format_address(77, rails);
    ucx::AddressView view;
    ASSERT_TRUE(ucx::parse_address(good, view));
    EXPECT_EQ(view.host_key, 77u);
    ASSERT_EQ(view.rails.size(), 2u);
    EXPECT_EQ(std::vector<std::byte>(view.rails[0].begin(), view.rails[0].end()), rails[0]);
    EXPECT_EQ(std::vector<std::byte>(view.rails[1].begin(), view.rails[1].end()), rails[1]);
    for (std::size_t length = 0; length < good.size(); ++length) {
        EXPECT_FALSE(ucx::parse_address(std::span(good).first(length), view)) << length;
    }
    std::mt19937 random(3);
    for (int i = 0; i < 10'000; ++i) {
        std::vector<std::byte> damaged = good;
        damaged[random() % 40] = static_cast<std::byte>(random());
        if (!ucx::parse_address(damaged, view)) continue;
        for (const auto rail : view.rails) {
            ASSERT_GE(rail.data(), damaged.data());
            ASSERT_LE(rail.data() + rail.size(), damaged.data() + damaged.size());
        }
    }
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
    EXPECT_EQ(port->meet(3, bytes, why), Status::mismatch);  // there are three
    EXPECT_EQ(port->meet(2, std::span(bytes).first(bytes.size() - 8), why), Status::mismatch);
    EXPECT_FALSE(port->knows(2));
    ASSERT_EQ(port->meet(2, bytes, why), Status::ok) << why;
    std::fill(bytes.begin(), bytes.end(), std::byte{0xff});  // it was copied
    EXPECT_TRUE(port->knows(2));
    EXPECT_FALSE(port->knows(1));
    ASSERT_EQ(other->meet(0, port->address(), why), Status::ok) << why;
    ASSERT_EQ(port->meet(0, port->address(), why), Status::ok) << why;

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
    const std::uint64_t until_ns = now_ns() + 10'000'000'000;
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
    other.reset();
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
        ASSERT_EQ(ports[0]->meet(1, ports[1]->address(), why), Status::ok) << why;
        EXPECT_EQ(ports[0]->reaches(1, why), tcp) << why;
        if (!tcp) EXPECT_NE(why.find("no way to process 1"), std::string::npos) << why;
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
        const std::uint64_t until_ns = now_ns() + 2'000'000'000;
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
