// Which protocol carries what inside a host, while what it is chosen by changes in mid-run.
#include <unistd.h>

#include <string>

#include "job.h"

namespace thalweg::test {
namespace {

constexpr std::size_t large = std::size_t{3} << 20;

}  // namespace

// The mix changes in mid-run: copies alone are shared by both sides; while the wire has much to do only one
// side copies; then again. The bytes stay right, and the changes are counted.
UCX_CASE(mix) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    const int peer = 1 - job.rank();
    std::uint32_t operation = 0;
    std::uint64_t shared_before = 0;
    for (int phase = 0; phase < 3; ++phase) {
        node.shm->set_wire_ns(phase == 1 ? 3'000'000'000u : 0);
        job.barrier();
        // One way only, so that there is something to share.
        for (int i = 0; i < 40; ++i, ++operation) {
            Bytes received(large);
            const Bytes sent = pattern(large, operation);
            if (job.rank() == 0)
                REQUIRE(channel->post_send(0, peer, {operation, 0}, sent.data(), large, SendMode::buffered) ==
                        Status::ok);
            else
                REQUIRE(channel->post_recv(0, peer, {operation, 0}, received.data(), large) == Status::ok);
            finish(*channel, 1);
            if (job.rank() == 1) REQUIRE(is_pattern(received, operation));
        }
        if (job.rank() == 0) continue;
        const ShmAccount account = account_of(node, peer);
        const std::uint64_t shared = messages_by(account, "coop");
        std::printf("phase %d: %s because %s; %lu shared, %lu switches\n", phase, account.protocol,
                    account.because, shared, account.switches);
        if (phase == 1) {
            REQUIRE(shared - shared_before <= 4);
            REQUIRE(std::string(account.because) == "the wire takes longest");
        }
        shared_before = shared;
    }
    job.barrier();
}

// A sender comes late to each message from some time on, and then no more. That is no slowness of the copies:
// a message is timed from when both ends are there. The bytes stay right.
UCX_CASE(late) {
    constexpr double late_s = 0.1;
    constexpr int messages = 20;
    Node node(job);
    const auto channel = node.channel({0, 0});
    const int peer = 1 - job.rank();
    std::uint32_t operation = 0;
    for (int phase = 0; phase < 3; ++phase) {
        job.barrier();
        const ShmAccount before = account_of(node, peer);
        for (int i = 0; i < messages; ++i, ++operation) {
            Bytes received(large);
            const Bytes sent = pattern(large, operation);
            if (job.rank() == 0) {
                if (phase == 1) usleep(static_cast<useconds_t>(late_s * 1e6));
                REQUIRE(channel->post_send(0, peer, {operation, 0}, sent.data(), large, SendMode::buffered) ==
                        Status::ok);
            } else {
                REQUIRE(channel->post_recv(0, peer, {operation, 0}, received.data(), large) == Status::ok);
            }
            finish(*channel, 1);
            if (job.rank() == 1) REQUIRE(is_pattern(received, operation));
        }
        if (job.rank() == 0) continue;
        const ShmAccount account = account_of(node, peer);
        const double took = 1e-9 * static_cast<double>(account.transfer_ns - before.transfer_ns);
        std::printf("phase %d: %s because %s; %.4f s for %d messages\n", phase, account.protocol,
                    account.because, took, messages);
        REQUIRE(took > 0);
        if (phase == 1) REQUIRE(took < messages * late_s / 2);
    }
    job.barrier();
}

// Who gives as much as he gets has no copies to share: each copies what he gets, whoever comes first, though
// at the moment of the choice nobody has begun. Rank 0 comes late every other time, and finds the message
// there.
UCX_CASE(even) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    const int peer = 1 - job.rank();
    for (std::uint32_t operation = 0; operation < 40; ++operation) {
        Bytes received(large);
        const Bytes sent = pattern(large, operation * 2 + static_cast<std::uint32_t>(job.rank()));
        if (operation % 2 == 0) job.barrier();
        const auto post = [&] {
            REQUIRE(channel->post_recv(0, peer, {operation, 0}, received.data(), large) == Status::ok);
            REQUIRE(channel->post_send(1, peer, {operation, 0}, sent.data(), large, SendMode::buffered) ==
                    Status::ok);
        };
        if (job.rank() == 1 || operation % 2 != 0) post();
        if (operation % 2 == 0) job.barrier();
        if (job.rank() == 0 && operation % 2 == 0) {
            Slot none[2];
            std::size_t count = 0;
            REQUIRE(channel->progress(none, count) == Status::ok && count == 0);
            post();
        }
        finish(*channel, 2);
        REQUIRE(is_pattern(received, operation * 2 + static_cast<std::uint32_t>(peer)));
    }
    REQUIRE(messages_by(account_of(node, peer), "coop") == 0);
    job.barrier();
}

// Protocols are asked for one after the other in mid-run, and then none: each runs from the next message on,
// all bytes are right, and no change of what is asked for counts as one of what is chosen.
UCX_CASE(steered) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    const int peer = 1 - job.rank();
    constexpr std::uint64_t rounds = 4;
    std::uint32_t operation = 0;
    REQUIRE(node.shm->set_protocol("by_pigeon") == Status::invalid_argument);
    for (const char* const asked : {"eager", "cma_put", "", "coop", "cma_get", "eager", ""}) {
        job.barrier();  // the other end asks for something else from its next receive on, too
        REQUIRE(node.shm->set_protocol(asked) == Status::ok);
        const std::uint64_t before = messages_by(account_of(node, peer), asked);
        for (std::uint64_t i = 0; i < rounds; ++i, ++operation) {
            Bytes received(large);
            const Bytes sent = pattern(large, operation * 2 + static_cast<std::uint32_t>(job.rank()));
            REQUIRE(channel->post_recv(0, peer, {operation, 0}, received.data(), large) == Status::ok);
            REQUIRE(channel->post_send(1, peer, {operation, 0}, sent.data(), large, SendMode::buffered) ==
                    Status::ok);
            finish(*channel, 2);
            REQUIRE(is_pattern(received, operation * 2 + static_cast<std::uint32_t>(peer)));
        }
        const ShmAccount account = account_of(node, peer);
        if (asked[0] == '\0') {
            REQUIRE(std::string(account.because) != "it was asked for");
            continue;
        }
        REQUIRE(messages_by(account, asked) == before + rounds);
        REQUIRE(std::string(account.protocol) == asked);
        REQUIRE(std::string(account.because) == "it was asked for");
        REQUIRE(account.switches <= 1);  // four messages were chosen by now
    }
    job.barrier();
}

}  // namespace thalweg::test
