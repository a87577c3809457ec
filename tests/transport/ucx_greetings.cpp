// Greetings between endpoints of the ucx transport.
#if __has_include(<ucp/api/ucp.h>)
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/ucx/library.h"
#include "transport/ucx/ucx.h"

namespace thalweg {
namespace {

// libucp refuses one, for lack of memory say: the peer will never greet back, and nothing is held for it
// until it does.
TEST(ucx_greetings, who_cannot_be_greeted_is_out_of_reach) {
    std::vector<std::byte> addresses;
    std::vector<std::uint64_t> offsets{0};
    std::unique_ptr<UcxPort> ports[2];
    std::string why;
    UcxOptions options;
    options.processes = 2;
    options.transports = "self,tcp";
    for (; options.process < 2; ++options.process) {
        auto& port = ports[options.process];
        ASSERT_EQ(UcxPort::open(options, port, why), Status::ok) << why;
        addresses.insert(addresses.end(), port->address().begin(), port->address().end());
        offsets.push_back(addresses.size());
    }
    ASSERT_EQ(ports[0]->learn({addresses, offsets}, why), Status::ok) << why;
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
