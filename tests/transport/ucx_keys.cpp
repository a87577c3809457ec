// Keys of memory that peers put into, over the ucx transport.
#if __has_include(<ucp/api/ucp.h>)
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "ucx_two_ports.h"

extern thread_local bool memory_lacks;  // shm_port.cpp

namespace thalweg {
namespace {

int keys_gone = 0;
decltype(ucx::Library::rkey_destroy) destroy_key = nullptr;

class ucx_keys : public OpenUcxPorts {};

// A channel that has failed may end with puts under way, which cannot be taken back: libucp looks at the key
// for each piece of one. Nor does the channel's end need memory.
TEST_F(ucx_keys, live_as_long_as_what_is_put_by_them) {
    constexpr std::size_t bytes = std::size_t{64} << 20;
    for (const auto& port : ports) introduce(*port);

    auto& library = const_cast<ucx::Library&>(*ucx::library(why));
    destroy_key = std::exchange(library.rkey_destroy, [](ucp_rkey_h key) {
        ++keys_gone;
        destroy_key(key);
    });
    std::string memory(bytes, ' ');
    const std::string sent(bytes, 'x');
    std::unique_ptr<Transport> to, from;
    open_channel(0, to);
    open_channel(1, from);
    std::vector<std::byte> key;
    Region region = 0;
    Target target = 0;
    ASSERT_EQ(to->expose(memory.data(), bytes, region, key), Status::ok);
    ASSERT_EQ(from->attach(0, key, target), Status::ok);
    // Nothing is put before both have greeted.
    ASSERT_EQ(to->post_recv(0, 1, {}, nullptr, 0), Status::ok);
    ASSERT_EQ(from->post_send(0, 0, {}, nullptr, 0, SendMode::buffered), Status::ok);
    for (std::size_t met = 0; met < 2;)
        for (const auto& channel : {to.get(), from.get()}) {
            Slot done = 0;
            std::size_t count = 0;
            ASSERT_EQ(channel->progress({&done, 1}, count), Status::ok);
            met += count;
        }
    ASSERT_EQ(from->post_put(0, target, 0, sent.data(), bytes, {1, 0}), Status::ok);
    memory_lacks = true;
    from.reset();
    memory_lacks = false;
    EXPECT_EQ(keys_gone, 0) << "nobody has answered yet";
    const std::uint64_t until_ns = now_ns() + 100'000'000'000;
    while (keys_gone == 0 && now_ns() < until_ns)
        for (const auto& port : ports) port->poll();
    EXPECT_EQ(keys_gone, 1);
    EXPECT_TRUE(memory == sent);
    to.reset();
    library.rkey_destroy = destroy_key;
}

// The request of a flush, and whom libucp is to tell when it is over.
char under_way = 0;
std::vector<ucp_request_param_t> flushes;

// libucp tells of each from within: nothing is thrown through it, and the signals of all leave, however many
// puts are over at once.
TEST_F(ucx_keys, puts_end_where_memory_lacks) {
    constexpr Slot puts = 1000;
    for (const auto& port : ports) introduce(*port);
    std::unique_ptr<Transport> to, from;
    UcxGroup group;
    group.size = 2;
    group.slots = puts;
    ASSERT_EQ(ports[0]->make_channel(group, to), Status::ok);
    group.rank = 1;
    ASSERT_EQ(ports[1]->make_channel(group, from), Status::ok);
    std::string memory(4096, ' ');
    std::vector<std::byte> key;
    Region region = 0;
    Target target = 0;
    ASSERT_EQ(to->expose(memory.data(), memory.size(), region, key), Status::ok);
    ASSERT_EQ(from->attach(0, key, target), Status::ok);
    const auto finish = [&](std::size_t left) {
        const std::uint64_t until_ns = now_ns() + 100'000'000'000;
        while (left != 0 && now_ns() < until_ns)
            for (const auto& channel : {to.get(), from.get()}) {
                Slot done[64];
                std::size_t count = 0;
                ASSERT_EQ(channel->progress(done, count), Status::ok);
                left -= count;
            }
        ASSERT_EQ(left, 0u);
    };
    // Nothing is put before both have greeted.
    ASSERT_EQ(to->post_recv(0, 1, {}, nullptr, 0), Status::ok);
    ASSERT_EQ(from->post_send(0, 0, {}, nullptr, 0, SendMode::buffered), Status::ok);
    ASSERT_NO_FATAL_FAILURE(finish(2));

    auto& library = const_cast<ucx::Library&>(*ucx::library(why));
    const auto put =
        std::exchange(library.put_nbx,
                      [](ucp_ep_h, const void*, std::size_t, std::uint64_t, ucp_rkey_h,
                         const ucp_request_param_t*) -> ucs_status_ptr_t { return UCS_STATUS_PTR(UCS_OK); });
    const auto flush = std::exchange(library.ep_flush_nbx,
                                     [](ucp_ep_h, const ucp_request_param_t* parameters) -> ucs_status_ptr_t {
                                         flushes.push_back(*parameters);
                                         return &under_way;
                                     });
    for (Slot slot = 0; slot < puts; ++slot) {
        EXPECT_EQ(to->post_recv(slot, 1, {1, slot}, nullptr, 0), Status::ok);
        EXPECT_EQ(from->post_put(slot, target, 0, memory.data(), 1, {1, slot}), Status::ok);
    }
    library.put_nbx = put;
    library.ep_flush_nbx = flush;
    ASSERT_EQ(flushes.size(), std::size_t{puts});

    const auto free_request = std::exchange(library.request_free, [](void*) {});
    bool thrown = false;
    memory_lacks = true;
    try {
        for (const ucp_request_param_t& each : flushes) each.cb.send(&under_way, UCS_OK, each.user_data);
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    memory_lacks = false;
    library.request_free = free_request;
    ASSERT_FALSE(thrown);
    ASSERT_NO_FATAL_FAILURE(finish(2 * puts));
}

int mapped = 0, keys_packed = 0;
decltype(ucx::Library::mem_map) map_memory = nullptr;
decltype(ucx::Library::mem_unmap) unmap_memory = nullptr;
decltype(ucx::Library::rkey_pack) pack_key = nullptr;
decltype(ucx::Library::rkey_buffer_release) release_key = nullptr;

// What libucp has registered, and gave for a key, it gets back.
TEST_F(ucx_keys, without_memory_for_one_nothing_stays_registered) {
    introduce(*ports[0]);
    std::unique_ptr<Transport> channel;
    open_channel(0, channel);
    auto& library = const_cast<ucx::Library&>(*ucx::library(why));
    map_memory =
        std::exchange(library.mem_map,
                      [](ucp_context_h context, const ucp_mem_map_params_t* parameters, ucp_mem_h* handle) {
                          ++mapped;
                          return map_memory(context, parameters, handle);
                      });
    unmap_memory = std::exchange(library.mem_unmap, [](ucp_context_h context, ucp_mem_h handle) {
        --mapped;
        return unmap_memory(context, handle);
    });
    pack_key = std::exchange(library.rkey_pack,
                             [](ucp_context_h context, ucp_mem_h handle, void** buffer, std::size_t* bytes) {
                                 ++keys_packed;
                                 const ucs_status_t status = pack_key(context, handle, buffer, bytes);
                                 memory_lacks = true;
                                 return status;
                             });
    release_key = std::exchange(library.rkey_buffer_release, [](void* buffer) {
        --keys_packed;
        release_key(buffer);
    });
    std::string memory(4096, ' ');
    std::vector<std::byte> key;
    Region region = 0;
    const Status status = channel->expose(memory.data(), memory.size(), region, key);
    memory_lacks = false;
    EXPECT_EQ(status, Status::out_of_memory);
    EXPECT_EQ(mapped, 0);
    EXPECT_EQ(keys_packed, 0);
    library.rkey_pack = pack_key;
    EXPECT_EQ(channel->expose(memory.data(), memory.size(), region, key), Status::ok);
    EXPECT_EQ(mapped, 1);
    channel.reset();
    EXPECT_EQ(mapped, 0);
    library.mem_map = map_memory;
    library.mem_unmap = unmap_memory;
    library.rkey_buffer_release = release_key;
}

}  // namespace
}  // namespace thalweg
#endif
