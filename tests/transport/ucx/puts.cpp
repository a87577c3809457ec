// Memory that peers write into, and several rails.
#include "job.h"

namespace thalweg::test {

namespace {

// Both ranks expose, put into each other's memory, and look only after the signal.
void put_both_ways(Job& job, Transport& channel, std::size_t bytes, std::uint32_t operation) {
    constexpr std::size_t offset = 24;
    const int peer = 1 - job.rank();
    Bytes memory(bytes + 2 * offset, std::byte{0x5a});
    Region region = 0;
    Target target = 0;
    Bytes key;
    REQUIRE(channel.expose(memory.data(), memory.size(), region, key) == Status::ok);
    const std::vector<Bytes> keys = job.exchange(key);
    REQUIRE(channel.attach(peer, Bytes(keys[peer].begin(), keys[peer].end() - 1), target) ==
            Status::invalid_argument);
    REQUIRE(channel.attach(peer, keys[peer], target) == Status::ok);
    for (std::uint32_t round = 0; round < 2; ++round) {
        const auto seed = operation * 4 + round * 2;
        const Bytes data = pattern(bytes, seed + static_cast<std::uint32_t>(job.rank()));
        const MessageId signal{operation, round};
        REQUIRE(channel.post_recv(0, peer, signal, nullptr, 0) == Status::ok);
        REQUIRE(channel.post_put(1, target, memory.size(), data.data(), 1, signal) ==
                Status::invalid_argument);
        REQUIRE(channel.post_put(1, target, offset, data.data(), bytes, signal) == Status::ok);
        if (round == 0) {
            finish(channel, 2);
        } else {
            finish_sleeping(channel, 2);
        }
        const auto begin = memory.begin() + offset;
        REQUIRE(is_pattern(Bytes(begin, begin + static_cast<std::ptrdiff_t>(bytes)),
                           seed + static_cast<std::uint32_t>(peer)));
        REQUIRE(memory[offset - 1] == std::byte{0x5a} && memory[offset + bytes] == std::byte{0x5a});
        job.barrier();
    }
    channel.detach(target);
    job.barrier();
    channel.conceal(region);
}

}  // namespace

UCX_CASE(puts) {
    Node node(job, {.devices = {}, .transports = arguments.contains("tls") ? arguments.at("tls") : ""});
    const auto channel = node.channel({0, 0});
    std::uint32_t operation = 0;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{8} << 10,
                                    std::size_t{1} << 20, std::size_t{64} << 20}) {
        put_both_ways(job, *channel, bytes, operation++);
    }
    Region region = 0;
    Bytes key;
    REQUIRE(channel->expose(nullptr, 0, region, key) == Status::invalid_argument);
}

// Two rails over one device (there need not be two), and ranks that take themselves for different hosts:
// whole messages, cut ones, sizes around the cut, puts, and a wrong size.
UCX_CASE(rails) {
    const std::vector<std::string> found = ucx_devices();
    const std::string device = found.empty() ? "lo" : found[0];
    UcxOptions options;
    options.devices = {device, device};
    options.transports = "tcp";
    options.host_key = static_cast<std::uint64_t>(job.rank());
    Node node(job, options);
    REQUIRE(node.port->rails() == 2);
    const auto channel = node.channel({0, 0});
    REQUIRE(channel->capabilities().rails == 2);
    const int peer = 1 - job.rank();
    std::uint32_t operation = 0;
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{100}, (std::size_t{128} << 10) - 1, std::size_t{128} << 10,
          (std::size_t{1} << 20) + 4097, std::size_t{9} << 20}) {
        for (const SendMode mode : {SendMode::buffered, SendMode::synchronous}) {
            const std::uint32_t seed = operation * 2 + static_cast<std::uint32_t>(job.rank());
            const Bytes sent = pattern(bytes, seed);
            Bytes received(bytes);
            REQUIRE(channel->post_send(0, peer, {operation, 0}, sent.data(), bytes, mode) == Status::ok);
            REQUIRE(channel->post_recv(1, peer, {operation, 0}, received.data(), bytes) == Status::ok);
            finish_sleeping(*channel, 2);
            REQUIRE(is_pattern(received, seed ^ 1));
            ++operation;
        }
    }
    put_both_ways(job, *channel, std::size_t{3} << 20, operation++);
    // One end cuts, the other does not.
    for (const std::size_t expected : {std::size_t{100} << 10, std::size_t{300} << 10}) {
        const auto wrong = node.channel({0, operation++});
        Bytes data(std::size_t{400} << 10);
        const std::size_t bytes = (std::size_t{400} << 10) - expected;
        if (job.rank() == 0) {
            REQUIRE(wrong->post_send(0, 1, {0, 0}, data.data(), bytes, SendMode::buffered) == Status::ok);
            finish_or_fail(*wrong, 1, 0.05, false);
            job.barrier();
            finish_or_fail(*wrong, 2, 0.2, false);
        } else {
            REQUIRE(wrong->post_recv(0, 0, {0, 0}, data.data(), expected) == Status::ok);
            REQUIRE(finish_or_fail(*wrong, 1, 20, false) == Status::mismatch);
            job.barrier();
        }
    }
    job.barrier();
}

}  // namespace thalweg::test
