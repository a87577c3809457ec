// Threads that sleep on the descriptor of one port of the ucx transport.
#if __has_include(<ucp/api/ucp.h>)
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "ucx_two_ports.h"

namespace thalweg {
namespace {

class ucx_sleepers : public OpenUcxPorts {};

// What libucp has been asked, how often it still is busy, and what it said last.
int asked = 0, busy = 0;
ucs_status_t said = UCS_OK;

// Then its descriptor tells of nothing new until it is armed again, and whoever asked may not come back: the
// operation that it asked for ended with its next poll.
TEST_F(ucx_sleepers, go_on_hearing_where_another_one_asks_while_libucp_is_busy) {
    introduce(*ports[0]);
    std::unique_ptr<Transport> first, second;
    UcxGroup group;
    group.size = 2;
    ASSERT_EQ(ports[0]->make_channel(group, first), Status::ok);
    group.name.counter = 1;
    ASSERT_EQ(ports[0]->make_channel(group, second), Status::ok);

    auto& library = const_cast<ucx::Library&>(*ucx::library(why));
    const auto arm = std::exchange(library.worker_arm, [](ucp_worker_h) {
        ++asked;
        said = busy-- > 0 ? UCS_ERR_BUSY : UCS_OK;
        return said;
    });
    busy = 1;
    EXPECT_EQ(second->arm(), Status::in_progress);
    EXPECT_EQ(asked, 1) << "nobody else sleeps";
    Status slept = Status::in_progress;
    std::thread([&] { slept = first->arm(); }).join();
    EXPECT_EQ(slept, Status::ok);
    busy = 1;
    EXPECT_EQ(second->arm(), Status::in_progress) << "it has not asked for its news";
    EXPECT_EQ(said, UCS_OK) << "who sleeps for the first channel hears nothing any more";
    busy = 1000;
    asked = 0;
    EXPECT_EQ(second->arm(), Status::in_progress);
    EXPECT_LT(asked, 10) << "whoever asks is not held up for long";
    library.worker_arm = arm;
}

}  // namespace
}  // namespace thalweg
#endif
