// The transports' own account of memory that somebody else may get at.
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "job.h"

namespace thalweg::test {

namespace {

bool holds(Node& node, const void* memory, std::size_t bytes) {
    return (node.port && node.port->holds(memory, bytes)) || (node.shm && node.shm->holds(memory, bytes));
}

}  // namespace

// Of each message that is complete nothing is held any more, though others of the same exchange are under
// way, the peer is late with its next, and the channel lives on. Memory that is exposed is held until it is
// not.
UCX_CASE(held) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    connect(*channel);
    REQUIRE(channel->grow(4 * static_cast<Slot>(job.size())) == Status::ok);
    std::uint32_t operation = 0;
    for (const std::size_t bytes : {100u, 16384u, 20480u, 409600u, 3145728u}) {
        for (const SendMode mode : {SendMode::buffered, SendMode::synchronous}) {
            std::vector<Bytes> memory;  // by slot: what is received, and sent, in turns
            memory.reserve(2 * static_cast<std::size_t>(job.size()));
            for (int peer = 0; peer < job.size(); ++peer) {
                if (peer == job.rank()) continue;
                const auto slot = static_cast<Slot>(memory.size());
                memory.emplace_back(bytes);
                memory.push_back(pattern(bytes, operation));
                REQUIRE(channel->post_recv(slot, peer, {operation, 0}, memory[slot].data(), bytes) ==
                        Status::ok);
            }
            for (std::size_t slot = 0; slot < memory.size(); slot += 2)
                REQUIRE(holds(node, memory[slot].data() + bytes / 2, 1));
            job.barrier();
            Slot slot = 1;
            for (int peer = 0; peer < job.size(); ++peer) {
                if (peer == job.rank()) continue;
                REQUIRE(channel->post_send(slot, peer, {operation, 0}, memory[slot].data(), bytes, mode) ==
                        Status::ok);
                slot += 2;
            }
            for (std::size_t left = memory.size(); left != 0;) {
                Slot done = 0;
                std::size_t count = 0;
                REQUIRE(channel->progress({&done, 1}, count) == Status::ok);
                left -= count;
                REQUIRE(count == 0 || !holds(node, memory[done].data(), bytes));
            }
            for (std::size_t i = 0; i < memory.size(); i += 2) REQUIRE(is_pattern(memory[i], operation));
            ++operation;
        }
    }
    if (channel->capabilities().one_sided) {
        Bytes window(4096);
        Bytes key;
        Region region = 0;
        REQUIRE(channel->expose(window.data(), window.size(), region, key) == Status::ok);
        REQUIRE(holds(node, window.data() + 4095, 1) && !holds(node, &region, 1));
        channel->conceal(region);
        REQUIRE(!holds(node, window.data(), window.size()));
    }
    job.barrier();
}

// Rank 2 dies in the midst of an exchange. When the others have given their channels up, nobody holds what
// they have under way with each other either, though these channels live on.
UCX_CASE(held_no_more) {
    // Behind a handshake: what goes at once has gone.
    if (job_between.empty()) job_between = "put";
    Node node(job);
    const auto channel = node.channel({0, 0});
    connect(*channel);
    REQUIRE(channel->grow(8) == Status::ok);
    constexpr std::size_t large = std::size_t{3} << 20;
    const int peer = 1 - job.rank();
    Bytes sent(large), received(large), awaited(large);
    if (job.rank() == 2) {
        job.barrier();
        kill(getpid(), SIGKILL);
    }
    // What rank 0 sends is awaited by nobody yet; rank 1 has met no message for its receive.
    if (job.rank() == 0)
        REQUIRE(channel->post_send(0, peer, {0, 0}, sent.data(), large, SendMode::buffered) == Status::ok);
    else
        REQUIRE(channel->post_recv(1, peer, {1, 0}, received.data(), large) == Status::ok);
    job.barrier();
    REQUIRE(channel->post_recv(2, 2, {0, 0}, awaited.data(), large) != Status::ok ||
            failed(finish_or_fail(*channel, 1, 10, false)));
    const void* const given = job.rank() == 0 ? sent.data() : received.data();
    REQUIRE(holds(node, given, large));
    channel->give_up();
    // Rank 0 asks for its message back; whoever polls answers.
    std::function<void()> answer;
    if (job.rank() == 1 && node.shm) answer = [&] { node.shm->poll(); };
    job.barrier(answer);
    // Of libucp's only receives are withdrawn; a send is waited for, which nobody takes here.
    REQUIRE((job.rank() == 0 && job_carrier == "ucx") || !holds(node, given, large));
    REQUIRE(!holds(node, awaited.data(), large));
    job.barrier();
}

// Rank 0 gives up while its peer, who has not, receives from it: libucp does not give the message back, and
// so it has gone before its memory is somebody else's.
UCX_CASE(given_up) {
    // Behind a handshake: what goes at once has gone.
    if (job_between.empty()) job_between = "put";
    Node node(job, {.devices = {}, .transports = arguments.contains("tls") ? arguments.at("tls") : ""});
    const auto channel = node.channel({0, 0});
    connect(*channel);
    constexpr std::size_t large = std::size_t{8} << 20;
    constexpr std::uint32_t seed = 7;
    const int peer = 1 - job.rank();
    if (job.rank() == 0) {
        Bytes sent = pattern(large, seed);
        job.barrier();
        REQUIRE(channel->post_send(0, peer, {0, 0}, sent.data(), large, SendMode::buffered) == Status::ok);
        REQUIRE(holds(node, sent.data(), large));
        channel->give_up();
        REQUIRE(!holds(node, sent.data(), large));
        std::fill(sent.begin(), sent.end(), std::byte{0});
        // The last words of it go out while somebody polls.
        job.barrier([&] {
            Slot done[1];
            std::size_t count = 0;
            REQUIRE(channel->progress(done, count) == Status::transport_failed);
        });
    } else {
        Bytes received(large);
        REQUIRE(channel->post_recv(0, peer, {0, 0}, received.data(), large) == Status::ok);
        job.barrier();
        finish(*channel, 1);
        REQUIRE(is_pattern(received, seed));
        job.barrier();
    }
}

}  // namespace thalweg::test
