// Messages: sizes, modes, order, many of them, many channels.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "job.h"

namespace thalweg::test {

// Every size in both modes, the receive posted before and after the message arrives; then by rendezvous and
// by eager protocol all bytes are there, and a synchronous send is not complete before its receive exists.
UCX_CASE(messages) {
    Node node(job, {.devices = {}, .transports = arguments.contains("tls") ? arguments.at("tls") : ""});
    const auto channel = node.channel({0, 0});
    const int peer = 1 - job.rank();
    std::uint32_t operation = 0;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{8} << 10,
                                    std::size_t{1} << 20, std::size_t{64} << 20}) {
        for (const SendMode mode : {SendMode::buffered, SendMode::synchronous}) {
            for (const bool late : {false, true}) {
                const std::uint32_t seed = operation * 2 + static_cast<std::uint32_t>(job.rank());
                const Bytes sent = pattern(bytes, seed);
                Bytes received(bytes, std::byte{0xa5});
                const MessageId id{operation, operation % 3};
                const auto receive = [&] {
                    REQUIRE(channel->post_recv(1, peer, id, received.data(), bytes) == Status::ok);
                };
                if (!late) receive();
                job.barrier();
                REQUIRE(channel->post_send(0, peer, id, sent.data(), bytes, mode) == Status::ok);
                if (late) {
                    // The peer's receive does not exist: it posts only after the barrier below.
                    if (mode == SendMode::synchronous) {
                        REQUIRE(finish_or_fail(*channel, 1, 0.02, false) == Status::in_progress);
                    }
                    job.barrier();
                    receive();
                    finish(*channel, 2 - (mode == SendMode::buffered ? 0 : 0));
                } else {
                    finish(*channel, 2);
                }
                REQUIRE(is_pattern(received, seed ^ 1));
                ++operation;
            }
        }
    }
}

// Over TCP a message of 128 KiB leaves before its receive exists, under every release of libucp: what
// announces one would wait behind the data of others. (Larger ones 1.13 announces; 1.20 does not.)
UCX_CASE(at_once) {
    Node node(job, {.devices = {}, .transports = "tcp,self"});
    const auto channel = node.channel({0, 0});
    connect(*channel);
    constexpr std::size_t bytes = 128 << 10;
    const MessageId id{0, 0}, go{1, 0};
    if (job.rank() == 0) {
        const Bytes sent = pattern(bytes, 1);
        REQUIRE(channel->post_send(0, 1, id, sent.data(), bytes, SendMode::buffered) == Status::ok);
        REQUIRE(finish_or_fail(*channel, 1, 30, false) == Status::ok);
        REQUIRE(channel->post_send(1, 1, go, nullptr, 0, SendMode::buffered) == Status::ok);
        finish(*channel, 1);
    } else {
        Bytes received(bytes);
        REQUIRE(channel->post_recv(1, 0, go, nullptr, 0) == Status::ok);
        finish(*channel, 1);  // takes what comes meanwhile
        REQUIRE(channel->post_recv(0, 0, id, received.data(), bytes) == Status::ok);
        finish(*channel, 1);
        REQUIRE(is_pattern(received, 1));
    }
    job.barrier();
}

// Messages of equal identity meet receives in the order of posting; other identities in any.
UCX_CASE(order) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    const std::uint32_t live = channel->capabilities().live_operations;
    REQUIRE(live >= 2);
    REQUIRE(channel->grow(64) == Status::ok);
    std::uint32_t sent[60], received[60] = {};
    std::iota(sent, sent + 60, 1000u);
    // Operation i mod 3, and live operations further on for the second half: the same tags again. Sizes from
    // eager to rendezvous would break the order if anything did.
    const auto id = [&](std::uint32_t i) { return MessageId{i % 3 + (i < 30 ? 0 : live), i % 2}; };
    if (job.rank() == 0) {
        for (std::uint32_t i = 0; i < 60; ++i) {
            const SendMode mode = i % 7 == 0 ? SendMode::synchronous : SendMode::buffered;
            REQUIRE(channel->post_send(i, 1, id(i), &sent[i], 4, mode) == Status::ok);
        }
    } else {
        job.barrier();
        // All of identity (0, 0) last; within an identity in order.
        std::vector<std::uint32_t> turn(60);
        std::iota(turn.begin(), turn.end(), 0u);
        std::stable_partition(turn.begin(), turn.end(), [](std::uint32_t i) { return i % 6 != 0; });
        for (const std::uint32_t i : turn) {
            REQUIRE(channel->post_recv(i, 0, id(i), &received[i], 4) == Status::ok);
        }
    }
    if (job.rank() == 0) job.barrier();
    finish(*channel, 60);
    if (job.rank() == 1) REQUIRE(std::equal(sent, sent + 60, received));
    job.barrier();
}

// Far more operations than tags can tell apart, several under way at a time, both directions.
UCX_CASE(operations) {
    Node node(job);
    const auto channel = node.channel({1, 0});
    const std::uint64_t operations = number(arguments, "operations", 1u << 17);
    constexpr std::uint32_t window = 16;
    REQUIRE(channel->grow(2 * window) == Status::ok);
    std::uint64_t sent[window], received[window];
    const int peer = 1 - job.rank();
    for (std::uint64_t first = 0; first < operations; first += window) {
        for (std::uint32_t i = 0; i < window; ++i) {
            const MessageId id{static_cast<std::uint32_t>(first + i), 0};
            sent[i] = first + i + (std::uint64_t{1} << 32) * static_cast<std::uint64_t>(job.rank());
            REQUIRE(channel->post_send(2 * i, peer, id, &sent[i], 8, SendMode::buffered) == Status::ok);
            REQUIRE(channel->post_recv(2 * i + 1, peer, id, &received[i], 8) == Status::ok);
        }
        finish(*channel, 2 * window);
        for (std::uint32_t i = 0; i < window; ++i) {
            REQUIRE(received[i] == first + i + (std::uint64_t{1} << 32) * static_cast<std::uint64_t>(peer));
        }
    }
}

namespace {

// One channel of the case below.
struct Member {
    UcxChannelName name;
    std::vector<std::uint32_t> processes;
    std::unique_ptr<Transport> channel;
    std::uint32_t sent[2] = {}, received = 0;
};

}  // namespace

// 1,000 channels over overlapping groups, on each of which every member sends to the next; made, used and
// freed in orders that differ between the ranks, with the slots of all in flight at the same time.
UCX_CASE(channels) {
    Node node(job);
    const std::uint64_t count = number(arguments, "channels", 1000);
    std::mt19937 shared(7), own(100 + static_cast<unsigned>(job.rank()));
    std::vector<Member> members(count);
    Bytes names;
    for (Member& member : members) {
        do {
            member.processes.clear();
            for (std::uint32_t process = 0; process < static_cast<std::uint32_t>(job.size()); ++process) {
                if (shared() % 3 != 0) member.processes.push_back(process);
            }
            std::shuffle(member.processes.begin(), member.processes.end(), shared);
        } while (member.processes.size() < 2);
        if (member.processes[0] != static_cast<std::uint32_t>(job.rank())) continue;
        REQUIRE(node.name_channel(member.name) == Status::ok);
        const auto* first = reinterpret_cast<const std::byte*>(&member.name);
        names.insert(names.end(), first, first + sizeof member.name);
    }
    const std::vector<Bytes> all = job.exchange(names);
    std::vector<std::size_t> taken(job.size());
    std::vector<std::size_t> mine;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t root = members[i].processes[0];
        std::memcpy(&members[i].name, all[root].data() + taken[root], sizeof(UcxChannelName));
        taken[root] += sizeof(UcxChannelName);
        const auto& processes = members[i].processes;
        if (std::find(processes.begin(), processes.end(), job.rank()) != processes.end()) mine.push_back(i);
    }
    for (std::uint32_t round = 0; round < 2; ++round) {
        std::shuffle(mine.begin(), mine.end(), own);
        for (const std::size_t i : mine) {
            Member& member = members[i];
            if (round == 0) {
                member.channel = node.channel(member.name, OperationSpace::calls, &member.processes);
                // A name is open once.
                UcxGroup again;
                again.name = member.name;
                std::unique_ptr<Transport> other;
                REQUIRE(node.make_channel(again, other) == Status::invalid_argument && !other);
            }
            Transport& channel = *member.channel;
            const int next = (channel.rank() + 1) % channel.size();
            const int previous = (channel.rank() + channel.size() - 1) % channel.size();
            member.sent[round] = static_cast<std::uint32_t>(i * 1000 + round * 10) +
                                 static_cast<std::uint32_t>(channel.rank());
            REQUIRE(channel.post_send(0, next, {round, 0}, &member.sent[round], 4, SendMode::buffered) ==
                    Status::ok);
            REQUIRE(channel.post_recv(1, previous, {round, 0}, &member.received, 4) == Status::ok);
            // The next round of a channel begins where this one has ended here, whatever the others do.
        }
        std::shuffle(mine.begin(), mine.end(), own);
        for (const std::size_t i : mine) {
            Member& member = members[i];
            finish(*member.channel, 2);
            const int size = member.channel->size();
            const int previous = (member.channel->rank() + size - 1) % size;
            REQUIRE(member.received == i * 1000 + round * 10 + static_cast<std::size_t>(previous));
            if (round == 1) member.channel.reset();
        }
    }
    // All ranks have freed them, so the names may serve again; in this small job there are enough anyway.
    job.barrier();
    for (const std::size_t i : mine) node.give_back(members[i].name);
    UcxChannelName fresh;
    REQUIRE(node.name_channel(fresh) == Status::ok);
    job.barrier();
}

// A persistent plan keeps one number in all its rounds. Rank 0 is a round ahead: what it sends for the second
// meets the second's receives though the first's are not all posted, and calls of the same number do not
// interfere.
UCX_CASE(rounds) {
    Node node(job);
    const auto plans = node.channel({0, 5}, OperationSpace::plans);
    const auto calls = node.channel({0, 5}, OperationSpace::calls);
    connect(*plans);
    REQUIRE(plans->grow(16) == Status::ok);
    constexpr MessageId first{3, 0}, second{3, 1};
    std::uint32_t values[5] = {11, 12, 21, 22, 99}, received[5] = {};
    if (job.rank() == 0) {
        for (Slot i = 0; i < 4; ++i) {
            REQUIRE(plans->post_send(i, 1, i % 2 ? second : first, &values[i], 4, SendMode::buffered) ==
                    Status::ok);
        }
        REQUIRE(calls->post_send(0, 1, first, &values[4], 4, SendMode::buffered) == Status::ok);
        finish(*plans, 4);
        finish(*calls, 1);
        job.barrier();
    } else {
        job.barrier();
        REQUIRE(plans->post_recv(0, 0, first, &received[0], 4) == Status::ok);
        REQUIRE(calls->post_recv(0, 0, first, &received[4], 4) == Status::ok);
        finish(*plans, 1);
        REQUIRE(plans->post_recv(1, 0, second, &received[1], 4) == Status::ok);
        REQUIRE(plans->post_recv(3, 0, second, &received[3], 4) == Status::ok);
        REQUIRE(plans->post_recv(2, 0, first, &received[2], 4) == Status::ok);
        finish(*plans, 3);
        finish(*calls, 1);
        REQUIRE(std::equal(values, values + 5, received));
    }
    job.barrier();
}

// Shorter and longer than its receive, posted before and after it.
UCX_CASE(wrong_size) {
    Node node(job);
    std::uint32_t counter = 0;
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{1} << 20}) {
        for (const std::size_t expected : {bytes - 1, bytes + 1}) {
            for (const bool late : {false, true}) {
                const auto channel = node.channel({0, counter++});
                Bytes data(bytes + 1);
                if (job.rank() == 1 && !late) {
                    REQUIRE(channel->post_recv(0, 0, {0, 0}, data.data(), expected) == Status::ok);
                }
                job.barrier();
                if (job.rank() == 0) {
                    REQUIRE(channel->post_send(0, 1, {0, 0}, data.data(), bytes, SendMode::buffered) ==
                            Status::ok);
                    finish_or_fail(*channel, 1, 0.05, false);
                    job.barrier();
                    // A rendezvous needs both ends.
                    finish_or_fail(*channel, 2, 0.2, false);
                } else {
                    job.barrier();
                    if (late) {
                        REQUIRE(channel->post_recv(0, 0, {0, 0}, data.data(), expected) == Status::ok);
                    }
                    REQUIRE(finish_or_fail(*channel, 1, 20, false) == Status::mismatch);
                }
                job.barrier();
            }
        }
    }
}

// Every rank with every other at the same time, sizes from eager to rendezvous: endpoints made from both
// sides at once.
UCX_CASE(many) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    const int size = job.size();
    REQUIRE(channel->grow(2 * static_cast<Slot>(size)) == Status::ok);
    for (std::uint32_t round = 0; round < 20; ++round) {
        const std::size_t bytes = std::size_t{1} << round;
        std::vector<Bytes> sent(size), received(size);
        Slot slot = 0;
        for (int peer = 0; peer < size; ++peer) {
            if (peer == job.rank()) continue;
            sent[peer] = pattern(bytes, round * 1000 + static_cast<std::uint32_t>(job.rank() * 30 + peer));
            received[peer].resize(bytes);
            REQUIRE(channel->post_recv(slot++, peer, {round, 0}, received[peer].data(), bytes) == Status::ok);
            REQUIRE(channel->post_send(slot++, peer, {round, 0}, sent[peer].data(), bytes,
                                       SendMode::buffered) == Status::ok);
        }
        finish(*channel, slot);
        for (int peer = 0; peer < size; ++peer) {
            const auto seed = round * 1000 + static_cast<std::uint32_t>(peer * 30 + job.rank());
            REQUIRE(peer == job.rank() || is_pattern(received[peer], seed));
        }
    }
}

}  // namespace thalweg::test
