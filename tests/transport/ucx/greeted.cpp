// Who was there first, and who comes while the other's data is on its way.
#include <unistd.h>

#include "job.h"

namespace thalweg::test {

// Rank 0 has an endpoint and sends; rank 1 polls for something else meanwhile, and makes its own one when it
// receives. More than sockets hold, so that some of it is on its way then. What asks for an answer is among
// it, and messages the other way.
UCX_CASE(greeted) {
    UcxOptions options;
    options.host_key = static_cast<std::uint64_t>(job.rank());
    if (arguments.contains("tls")) options.transports = arguments.at("tls");
    Node node(job, options);
    const auto channel = node.channel({0, 0});
    constexpr std::size_t bytes = 24u << 20;
    constexpr Slot messages = 4;
    REQUIRE(channel->grow(2 * messages) == Status::ok);
    Bytes there[messages], back[messages];
    std::string why;
    const int peer = 1 - job.rank();
    const auto id = [](Slot slot) { return MessageId{0, slot}; };
    for (Slot slot = 0; slot < messages; ++slot)
        there[slot] = job.rank() == 0 ? pattern(bytes, slot) : Bytes(bytes);
    for (Slot slot = 0; slot < messages; ++slot)
        back[slot] = job.rank() == 1 ? pattern(bytes, 10 + slot) : Bytes(bytes);
    const auto mode = [](Slot slot) { return slot == 1 ? SendMode::synchronous : SendMode::buffered; };
    job.barrier();
    if (job.rank() == 0) {
        REQUIRE(node.port->reaches(1, why));
        for (Slot slot = 0; slot < messages; ++slot)
            REQUIRE(channel->post_send(slot, peer, id(slot), there[slot].data(), bytes, mode(slot)) ==
                    Status::ok);
        REQUIRE(node.port->holds(there[messages - 1].data() + bytes / 2, 1));
    } else {
        const double begin = seconds_now();
        while (seconds_now() - begin < 0.05) {
            node.port->poll();
            usleep(500);
        }
        for (Slot slot = 0; slot < messages; ++slot)
            REQUIRE(channel->post_recv(slot, peer, id(slot), there[slot].data(), bytes) == Status::ok);
    }
    for (Slot slot = 0; slot < messages; ++slot) {
        void* const data = back[slot].data();
        REQUIRE((job.rank() == 0 ? channel->post_recv(messages + slot, peer, id(messages + slot), data, bytes)
                                 : channel->post_send(messages + slot, peer, id(messages + slot), data, bytes,
                                                      mode(slot))) == Status::ok);
    }
    REQUIRE(finish_or_fail(*channel, 2 * messages, 60, false) == Status::ok);
    for (Slot slot = 0; slot < messages; ++slot)
        REQUIRE(is_pattern(there[slot], slot) && is_pattern(back[slot], 10 + slot));
    job.barrier([&] { node.port->poll(); });
}

}  // namespace thalweg::test
