// Greetings between endpoints of the ucx transport.
#if __has_include(<ucp/api/ucp.h>)
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cpu_time.h"
#include "transport/ucx/channel.h"
#include "ucx_two_ports.h"

extern thread_local bool memory_lacks;  // shm_port.cpp

namespace thalweg {
namespace {

class ucx_greetings : public OpenUcxPorts {};

// libucp refuses one, for lack of memory say: the peer will never greet back, and nothing is held for it
// until it does.
TEST_F(ucx_greetings, who_cannot_be_greeted_is_out_of_reach) {
    introduce(*ports[0]);
    std::unique_ptr<Transport> first, second;
    open_channel(0, first);
    open_channel(0, second, 1);

    auto& library = const_cast<ucx::Library&>(*ucx::library(why));
    const auto greet = std::exchange(
        library.am_send_nbx,
        [](ucp_ep_h, unsigned, const void*, std::size_t, const void*, std::size_t,
           const ucp_request_param_t*) -> ucs_status_ptr_t { return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY); });
    const char byte = 0;
    EXPECT_EQ(first->post_send(0, 1, {}, &byte, 1, SendMode::buffered), Status::transport_failed);
    library.am_send_nbx = greet;
    EXPECT_EQ(second->post_send(0, 1, {}, &byte, 1, SendMode::buffered), Status::transport_failed)
        << "the endpoint is there, and says nothing";
    ports[0]->poll();
    EXPECT_FALSE(ports[0]->reaches(1, why));
    EXPECT_NE(why.find("no way to process 1"), std::string::npos) << why;
}

// libucp hands a process what it says to itself at once, outside of any poll: what waits for that greeting
// leaves at the next poll, which no descriptor would ask for.
TEST_F(ucx_greetings, to_oneself_let_nobody_sleep) {
    introduce(*ports[0]);
    std::unique_ptr<Transport> channel;
    open_channel(0, channel);
    const std::uint64_t until_ns = now_ns() + 100'000'000'000;
    Slot done[2];
    std::size_t count = 0, all = 0;
    pollfd waits{channel->wait_descriptor(), POLLIN, 0};
    // Nothing else is to be heard: the endpoint is there.
    ASSERT_TRUE(ports[0]->reaches(0, why)) << why;
    do {
        ASSERT_EQ(channel->progress(done, count), Status::ok);
    } while ((channel->arm() != Status::ok || ::poll(&waits, 1, 100) != 0) && now_ns() < until_ns);
    const char sent = 7;
    char received = 0;
    ASSERT_EQ(channel->post_send(0, 0, {}, &sent, 1, SendMode::buffered), Status::ok);
    EXPECT_EQ(::poll(&waits, 1, 1000), 1) << "who sleeps would not hear of it";
    // Where it is not there within the call, the descriptor tells of it.
    EXPECT_TRUE(channel->arm() == Status::in_progress || ::poll(&waits, 1, 1000) == 1);
    ASSERT_EQ(channel->post_recv(1, 0, {}, &received, 1), Status::ok);
    for (; all < 2 && now_ns() < until_ns; all += count)
        ASSERT_EQ(channel->progress(done, count), Status::ok);
    EXPECT_EQ(received, sent);
}

// The request of a greeting, and whom libucp is to tell when it has left; messages that it was given.
char under_way = 0;
ucp_request_param_t greeting = {};
int messages = 0;
decltype(ucx::Library::tag_send_nbx) send = nullptr;

// The peer has greeted, but who sends is not connected to it: what libucp were given would wait in there, and
// a put for ever, if the peer died.
TEST_F(ucx_greetings, leave_before_anything_else_does) {
    for (const auto& port : ports) introduce(*port);
    std::unique_ptr<Transport> from, to;
    open_channel(0, from);
    open_channel(1, to);

    auto& library = const_cast<ucx::Library&>(*ucx::library(why));
    const auto greet =
        std::exchange(library.am_send_nbx,
                      [](ucp_ep_h, unsigned, const void*, std::size_t, const void*, std::size_t,
                         const ucp_request_param_t* parameters) -> ucs_status_ptr_t {
                          greeting = *parameters;
                          return &under_way;
                      });
    const char sent = 7;
    char received = 0;
    EXPECT_EQ(from->post_send(0, 1, {}, &sent, 1, SendMode::buffered), Status::ok);
    library.am_send_nbx = greet;
    send = std::exchange(library.tag_send_nbx, [](ucp_ep_h endpoint, const void* data, std::size_t bytes,
                                                  ucp_tag_t tag, const ucp_request_param_t* parameters) {
        ++messages;
        return send(endpoint, data, bytes, tag, parameters);
    });
    EXPECT_EQ(to->post_recv(0, 0, {}, &received, 1), Status::ok);
    std::uint64_t until_ns = now_ns() + 1'000'000'000;
    while (messages == 0 && now_ns() < until_ns)
        for (const auto& port : ports) port->poll();
    EXPECT_EQ(messages, 0);

    const auto free_request = std::exchange(library.request_free, [](void*) {});
    greeting.cb.send(&under_way, UCS_OK, greeting.user_data);
    library.request_free = free_request;
    until_ns = now_ns() + 100'000'000'000;
    while (received != sent && now_ns() < until_ns)
        for (const auto& port : ports) port->poll();
    EXPECT_EQ(received, sent);
    EXPECT_EQ(messages, 1);
    library.tag_send_nbx = send;
}

// Who hears of the other first greets, and sends: that leaves when the other one has heard, too, and polls.
TEST_F(ucx_greetings, of_strangers_are_answered_when_they_are_known) {
    introduce(*ports[1]);
    std::unique_ptr<Transport> from, to;
    open_channel(0, to);
    open_channel(1, from);
    const char sent = 7;
    char received = 0;
    ASSERT_EQ(from->post_send(0, 0, {}, &sent, 1, SendMode::buffered), Status::ok);
    std::uint64_t until_ns = now_ns() + 500'000'000;
    while (now_ns() < until_ns)
        for (const auto& port : ports) port->poll();
    introduce(*ports[0]);
    Slot done[1];
    std::size_t count = 0;
    until_ns = now_ns() + 100'000'000'000;
    while (count == 0 && now_ns() < until_ns) {
        ports[0]->poll();
        ASSERT_EQ(from->progress(done, count), Status::ok);
    }
    EXPECT_EQ(count, 1u) << "though nobody has asked for it";
    ASSERT_EQ(to->post_recv(0, 1, {}, &received, 1), Status::ok);
    while (received != sent && now_ns() < until_ns)
        for (const auto& port : ports) port->poll();
    EXPECT_EQ(received, sent);
}

// Of a peer that nobody has heard of there is nothing to be kept, for want of memory: who receives from it is
// told, and who is greeted by it answers later.
TEST_F(ucx_greetings, wait_where_memory_lacks) {
    for (const auto& port : ports) introduce(*port);
    std::unique_ptr<Transport> from, to;
    open_channel(0, to);
    open_channel(1, from);
    const char sent = 7;
    char received = 0;
    memory_lacks = true;
    const Status without = to->post_recv(0, 1, {}, &received, 1);
    memory_lacks = false;
    EXPECT_EQ(without, Status::out_of_memory);

    ASSERT_EQ(from->post_send(0, 0, {}, &sent, 1, SendMode::buffered), Status::ok);
    std::uint64_t until_ns = now_ns() + 500'000'000;
    memory_lacks = true;
    while (now_ns() < until_ns)
        for (const auto& port : ports) port->poll();
    memory_lacks = false;
    ASSERT_EQ(to->post_recv(0, 1, {}, &received, 1), Status::ok);
    until_ns = now_ns() + 100'000'000'000;
    while (received != sent && now_ns() < until_ns)
        for (const auto& port : ports) port->poll();
    EXPECT_EQ(received, sent);
}

ucp_am_handler_param_t hearer = {};
decltype(ucx::Library::worker_set_am_recv_handler) hear = nullptr;

// More than there is room for, and no memory for more room: nothing is thrown through libucp, and those that
// had none are answered when there is memory again.
TEST(ucx_many_greetings, wait_where_memory_lacks) {
    constexpr std::uint32_t all = 400;
    std::string why;
    auto& library = const_cast<ucx::Library&>(*ucx::library(why));
    UcxOptions options;
    options.processes = all;
    options.transports = "self,tcp";
    ucx::TagLayout layout;
    ASSERT_TRUE(ucx::TagLayout::make(options.processes, layout));
    UcxPort::Impl port(library, options, layout);
    hear = std::exchange(library.worker_set_am_recv_handler,
                         [](ucp_worker_h worker, const ucp_am_handler_param_t* parameters) {
                             hearer = *parameters;
                             return hear(worker, parameters);
                         });
    const Status started = port.start(why);
    library.worker_set_am_recv_handler = hear;
    ASSERT_EQ(started, Status::ok) << why;
    // The last one alone is known, under the address of this one.
    const std::vector<std::byte> address(port.address().begin(), port.address().end());
    const std::vector<std::uint64_t> offsets{0, address.size()};
    const std::vector<std::uint32_t> processes{all - 1};
    ASSERT_EQ(port.learn({address, offsets, processes}, why), Status::ok) << why;

    const UcxPort::Impl::Poster lock(port);
    bool thrown = false;
    memory_lacks = true;
    try {
        for (std::uint32_t process = 0; process < all; ++process) {
            const ucx::Greeting greeting{process, 0};
            hearer.cb(hearer.arg, &greeting, sizeof greeting, nullptr, 0, nullptr);
        }
        port.poll();
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    memory_lacks = false;
    ASSERT_FALSE(thrown);
    const ucx::Peer* const last = port.find(all - 1);
    ASSERT_NE(last, nullptr);
    const std::uint64_t until_ns = now_ns() + 100'000'000'000;
    while (!last->greets && now_ns() < until_ns) port.poll();
    EXPECT_TRUE(last->greets);
    EXPECT_EQ(last->greeted, 1u);
}

ucp_err_handler_t mourner = {};
decltype(ucx::Library::ep_create) make_endpoint = nullptr;

// libucp tells of a peer that is gone, from within: nothing is thrown through it.
TEST_F(ucx_greetings, of_the_dead_end_where_memory_lacks) {
    introduce(*ports[0]);
    auto& library = const_cast<ucx::Library&>(*ucx::library(why));
    make_endpoint = std::exchange(
        library.ep_create, [](ucp_worker_h worker, const ucp_ep_params_t* parameters, ucp_ep_h* endpoint) {
            mourner = parameters->err_handler;
            return make_endpoint(worker, parameters, endpoint);
        });
    const bool reached = ports[0]->reaches(1, why);
    library.ep_create = make_endpoint;
    ASSERT_TRUE(reached) << why;
    bool thrown = false;
    memory_lacks = true;
    try {
        mourner.cb(mourner.arg, nullptr, UCS_ERR_CONNECTION_RESET);
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    memory_lacks = false;
    EXPECT_FALSE(thrown);
    ports[0]->poll();
    EXPECT_FALSE(ports[0]->reaches(1, why));
}

// Nobody has greeted: all of it waits.
TEST_F(ucx_greetings, what_waits_for_one_goes_with_its_channel) {
    introduce(*ports[0]);
    std::unique_ptr<Transport> channels[2];
    const std::string sent[2][2] = {{"a", "b"}, {"c", "d"}};
    for (std::uint32_t i = 0; i < 2; ++i) {
        open_channel(0, channels[i], i);
        for (Slot slot = 0; slot < 2; ++slot)
            ASSERT_EQ(channels[i]->post_send(slot, 1, {}, sent[i][slot].data(), 1, SendMode::buffered),
                      Status::ok);
    }
    const auto holds = [&](const std::string& data) { return ports[0]->holds(data.data(), 1); };
    EXPECT_TRUE(holds(sent[0][0]) && holds(sent[0][1]) && holds(sent[1][0]) && holds(sent[1][1]));
    channels[0].reset();
    EXPECT_FALSE(holds(sent[0][0]) || holds(sent[0][1]));
    EXPECT_TRUE(holds(sent[1][0]) && holds(sent[1][1]));
    channels[1]->give_up();
    EXPECT_FALSE(holds(sent[1][0]) || holds(sent[1][1]));
}

// Communicators made and freed in a job of many processes: what one costs is its own.
TEST(ucx_channels, end_for_as_little_whomever_their_port_knows) {
    std::string why;
    const ucx::Library* const library = ucx::library(why);
    ASSERT_NE(library, nullptr) << why;
    const auto seconds_among = [&](std::uint32_t known) {
        UcxOptions options;
        options.processes = 1u << 18;
        options.transports = "self,tcp";
        ucx::TagLayout layout;
        EXPECT_TRUE(ucx::TagLayout::make(options.processes, layout));
        UcxPort::Impl port(*library, options, layout);
        EXPECT_EQ(port.start(why), Status::ok) << why;
        // All have the address of this one, and none of them is reached.
        const std::vector<std::byte> address(port.address().begin(), port.address().end());
        std::vector<std::byte> addresses;
        std::vector<std::uint64_t> offsets{0};
        std::vector<std::uint32_t> processes;
        for (std::uint32_t process = 0; process < known; ++process) {
            addresses.insert(addresses.end(), address.begin(), address.end());
            offsets.push_back(addresses.size());
            processes.push_back(process);
        }
        EXPECT_EQ(port.learn({addresses, offsets, processes}, why), Status::ok) << why;
        {
            const UcxPort::Impl::Poster lock(port);
            for (std::uint32_t process = 0; process < known; ++process)
                EXPECT_NE(port.find(process), nullptr);
        }
        const double begin = test::thread_cpu_seconds();
        for (int i = 0; i < 3000; ++i) {
            ucx::Channel channel(port, UcxGroup{});
            EXPECT_EQ(channel.open(), Status::ok);
        }
        return test::thread_cpu_seconds() - begin;
    };
    const double few = seconds_among(2), many = seconds_among(50'000);
    EXPECT_LT(many, 0.5 + 2 * few) << "it was " << few << " s among 2 processes";
}

// Asked after every operation: not behind a poll of another thread's.
TEST(ucx_channels, tell_what_has_left_without_the_lock) {
    std::string why;
    const ucx::Library* const library = ucx::library(why);
    ASSERT_NE(library, nullptr) << why;
    UcxOptions options;
    options.transports = "self,tcp";
    ucx::TagLayout layout;
    ASSERT_TRUE(ucx::TagLayout::make(options.processes, layout));
    UcxPort::Impl port(*library, options, layout);
    ASSERT_EQ(port.start(why), Status::ok) << why;
    ucx::Channel channel(port, UcxGroup{});
    ASSERT_EQ(channel.open(), Status::ok);
    std::atomic<bool> is_told{false};
    bool has_left = false;
    std::thread asks;
    {
        const UcxPort::Impl::Poster lock(port);
        asks = std::thread([&] {
            has_left = channel.has_left(channel.sent());
            is_told = true;
        });
        const std::uint64_t until_ns = now_ns() + 5'000'000'000;
        while (!is_told && now_ns() < until_ns) std::this_thread::yield();
        EXPECT_TRUE(is_told);
    }
    asks.join();
    EXPECT_TRUE(has_left);
}

// Whoever has a table of its processes has looked at it once.
TEST(ucx_channels, begin_for_as_little_among_however_many) {
    std::unique_ptr<UcxPort> port;
    std::string why;
    UcxOptions options;
    options.processes = 1u << 22;
    options.transports = "self,tcp";
    ASSERT_EQ(UcxPort::open(options, port, why), Status::ok) << why;
    const std::vector<std::uint32_t> processes(options.processes, 1);
    const auto seconds_among = [&](int size) {
        UcxGroup group;
        group.size = size;
        group.processes = processes.data();
        group.processes_end = 2;
        const double begin = test::thread_cpu_seconds();
        for (int i = 0; i < 1000; ++i) {
            std::unique_ptr<Transport> made;
            EXPECT_EQ(port->make_channel(group, made), Status::ok);
        }
        return test::thread_cpu_seconds() - begin;
    };
    const double few = seconds_among(2), many = seconds_among(1 << 22);
    EXPECT_LT(many, 0.5 + 2 * few) << "it was " << few << " s among 2 processes";
}

}  // namespace
}  // namespace thalweg
#endif
