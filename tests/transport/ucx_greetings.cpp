// Greetings between endpoints of the ucx transport.
#if __has_include(<ucp/api/ucp.h>)
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace
}  // namespace thalweg
#endif
