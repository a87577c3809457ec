// Greetings between endpoints of the ucx transport.
#if __has_include(<ucp/api/ucp.h>)
#include <gtest/gtest.h>
#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "ucx_two_ports.h"

namespace thalweg {
namespace {

class ucx_greetings : public OpenUcxPorts {};

// libucp refuses one, for lack of memory say: the peer will never greet back, and nothing is held for it
// until it does.
TEST_F(ucx_greetings, who_cannot_be_greeted_is_out_of_reach) {
    introduce(*ports[0]);
    std::unique_ptr<Transport> first, second;
    UcxGroup group;
    group.size = 2;
    ASSERT_EQ(ports[0]->make_channel(group, first), Status::ok);
    group.name.counter = 1;
    ASSERT_EQ(ports[0]->make_channel(group, second), Status::ok);

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
    UcxGroup group;
    group.size = 2;
    ASSERT_EQ(ports[0]->make_channel(group, channel), Status::ok);
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
    EXPECT_EQ(channel->arm(), Status::in_progress);
    ASSERT_EQ(channel->post_recv(1, 0, {}, &received, 1), Status::ok);
    for (; all < 2 && now_ns() < until_ns; all += count)
        ASSERT_EQ(channel->progress(done, count), Status::ok);
    EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace thalweg
#endif
