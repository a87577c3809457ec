// What only the transport of one host has: protocols that are asked for, systems that refuse, peers that
// write nonsense.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "job.h"
#include "transport/shm/segment.h"

namespace thalweg::test {

namespace {

constexpr std::size_t large = std::size_t{3} << 20;

// Both ranks send each other `count` messages of `bytes` bytes, one after the other.
void swap(Job& job, Transport& channel, std::size_t bytes, std::uint32_t first, std::uint32_t count) {
    const int peer = 1 - job.rank();
    for (std::uint32_t i = first; i < first + count; ++i) {
        const Bytes sent = pattern(bytes, 2 * i + static_cast<std::uint32_t>(job.rank()));
        Bytes received(bytes);
        REQUIRE(channel.post_recv(0, peer, {i, 0}, received.data(), bytes) == Status::ok);
        REQUIRE(channel.post_send(1, peer, {i, 0}, sent.data(), bytes, SendMode::buffered) == Status::ok);
        finish_sleeping(channel, 2);
        REQUIRE(is_pattern(received, 2 * i + static_cast<std::uint32_t>(peer)));
    }
}

// From here on the system refuses this process the two calls.
void refuse_cma() {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{sizeof program / sizeof program[0], program};
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

}  // namespace

// The protocol that was asked for is the one that runs, in both directions.
UCX_CASE(protocol) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    swap(job, *channel, large, 0, 3);
    REQUIRE(messages_by(account_of(node, 1 - job.rank()), arguments.at("protocol")) == 3);
}

// The system refuses it to both ranks, or to one: the probe finds out, the bytes arrive all the same, and
// where rank 1 may copy, it does so in both directions.
UCX_CASE(refused) {
    if (job.rank() == 0 || number(arguments, "both", 1) != 0) refuse_cma();
    Node node(job);
    const auto channel = node.channel({0, 0});
    swap(job, *channel, large, 0, 3);
    const ShmAccount account = account_of(node, 1 - job.rank());
    if (number(arguments, "both", 1) != 0) {
        REQUIRE(std::strstr(node.shm->description(), "rings only") != nullptr);
        REQUIRE(messages_by(account, "eager") == 3 && !channel->capabilities().one_sided);
    } else {
        REQUIRE(messages_by(account, job.rank() == 0 ? "cma_put" : "cma_get") == 3);
    }
}

// Memory that the system copies from and to for nobody, as little as a device's: what is sent from there, or
// received into it, comes through the ring, whichever protocol was chosen. What lies elsewhere does not.
UCX_CASE(secret) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    const int secret = static_cast<int>(syscall(SYS_memfd_secret, 0));
    // Both ranks have it or neither.
    void* const memory = secret < 0 || ftruncate(secret, 2 * large) != 0
                             ? MAP_FAILED
                             : mmap(nullptr, 2 * large, PROT_READ | PROT_WRITE, MAP_SHARED, secret, 0);
    if (memory == MAP_FAILED) {
        swap(job, *channel, large, 0, 1);
        if (job.rank() == 0) std::puts("no secret memory here");
        return;
    }
    const int peer = 1 - job.rank();
    auto* const mine = static_cast<std::byte*>(memory);
    for (std::uint32_t i = 0; i < 16; ++i) {
        // By two bits of the round: whether rank 0's, and rank 1's, buffers are secret.
        const bool hidden = (i >> job.rank() & 1) != 0;
        Bytes open_sent(large), open_received(large);
        std::byte* const sent = hidden ? mine : open_sent.data();
        std::byte* const received = hidden ? mine + large : open_received.data();
        const Bytes data = pattern(large, 2 * i + static_cast<std::uint32_t>(job.rank()));
        std::memcpy(sent, data.data(), large);
        std::memset(received, 0, large);
        REQUIRE(channel->post_recv(0, peer, {i, 0}, received, large) == Status::ok);
        REQUIRE(channel->post_send(1, peer, {i, 0}, sent, large, SendMode::buffered) == Status::ok);
        finish_sleeping(*channel, 2);
        const Bytes got(received, received + large);
        REQUIRE(is_pattern(got, 2 * i + static_cast<std::uint32_t>(peer)));
    }
    munmap(memory, 2 * large);
    close(secret);
}

// The system allows it when the two meet and refuses it later, to both or to rank 1 alone: what is under way
// then, and what follows, goes through the rings; so do puts into memory that was exposed before.
UCX_CASE(refused_later) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    const int peer = 1 - job.rank();
    REQUIRE(channel->capabilities().one_sided);
    swap(job, *channel, large, 0, 2);
    Region region = 0;
    Bytes exposed(large), key;
    REQUIRE(channel->expose(exposed.data(), exposed.size(), region, key) == Status::ok);
    const std::vector<Bytes> keys = job.exchange(key);
    Target target = 0;
    REQUIRE(channel->attach(peer, keys[static_cast<std::size_t>(peer)], target) == Status::ok);
    if (job.rank() == 1 || number(arguments, "both", 1) != 0) refuse_cma();
    swap(job, *channel, large, 2, 3);
    const Bytes data = pattern(large, static_cast<std::uint32_t>(job.rank()));
    REQUIRE(channel->post_recv(0, peer, {5, 0}, nullptr, 0) == Status::ok);
    REQUIRE(channel->post_put(1, target, 0, data.data(), large, {5, 0}) == Status::ok);
    finish_sleeping(*channel, 2);
    REQUIRE(is_pattern(exposed, static_cast<std::uint32_t>(peer)));
    // What came is told by how it came: rank 1 cannot read, and writes through the ring.
    if (job.rank() == 1) REQUIRE(messages_by(account_of(node, 0), "cma_get") <= 2);
    channel->conceal(region);
    job.barrier();
}

// Messages out of memory that both have mapped; and memory that is given back is found again, as a whole.
UCX_CASE(arena) {
    ShmOptions options;
    options.arena_bytes = 8 * large;
    options.protocol = "direct";
    Node node(job, {}, options);
    const auto channel = node.channel({0, 0});
    const int peer = 1 - job.rank();
    void* const mine = node.shm->allocate(large);
    REQUIRE(mine != nullptr);
    const Bytes data = pattern(large, static_cast<std::uint32_t>(job.rank()));
    std::memcpy(mine, data.data(), large);
    Bytes received(large);
    REQUIRE(channel->post_recv(0, peer, {0, 0}, received.data(), large) == Status::ok);
    REQUIRE(channel->post_send(1, peer, {0, 0}, mine, large, SendMode::buffered) == Status::ok);
    finish(*channel, 2);
    REQUIRE(is_pattern(received, static_cast<std::uint32_t>(peer)));
    REQUIRE(messages_by(account_of(node, peer), "direct") == 1);
    node.shm->release(mine);
    void* parts[3];
    for (void*& part : parts) REQUIRE((part = node.shm->allocate(large)) != nullptr);
    for (const int i : {1, 0, 2}) node.shm->release(parts[i]);
    REQUIRE(node.shm->allocate(8 * large) != nullptr && node.shm->allocate(1) == nullptr);
}

// Many messages under way, small and large, sends and receives in opposite orders: whatever comes early, late
// or in pieces is where it belongs.
UCX_CASE(shuffle) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    const int peer = 1 - job.rank();
    constexpr std::uint32_t window = 32;
    REQUIRE(channel->grow(2 * window) == Status::ok);
    const auto rounds = static_cast<std::uint32_t>(number(arguments, "rounds", 60));
    const auto seed_of = [](std::uint32_t operation, int sender) {
        return operation * 2 + static_cast<std::uint32_t>(sender);
    };
    const auto bytes_of = [&](std::uint32_t operation, int sender) {
        return std::size_t{seed_of(operation, sender) * 2654435761u >> 8} %
               (operation % 4 == 0 ? 400'000 : 12'000);
    };
    std::vector<Bytes> sent(window), received(window);
    for (std::uint32_t round = 0; round < rounds; ++round) {
        for (std::uint32_t i = 0; i < window; ++i) {
            const MessageId id{round * window + i, 0};
            sent[i] = pattern(bytes_of(id.operation, job.rank()), seed_of(id.operation, job.rank()));
            const SendMode mode = i % 5 == 0 ? SendMode::synchronous : SendMode::buffered;
            REQUIRE(channel->post_send(i, peer, id, sent[i].data(), sent[i].size(), mode) == Status::ok);
        }
        for (std::uint32_t i = window; i-- > 0;) {
            const MessageId id{round * window + i, 0};
            received[i].assign(bytes_of(id.operation, peer), std::byte{0});
            REQUIRE(channel->post_recv(window + i, peer, id, received[i].data(), received[i].size()) ==
                    Status::ok);
        }
        finish(*channel, 2 * window);
        for (std::uint32_t i = 0; i < window; ++i)
            REQUIRE(is_pattern(received[i], seed_of(round * window + i, peer)));
    }
    job.barrier();
}

// Rank 1 writes what makes no sense into rank 0's memory, again and again: rank 0 and rank 2 go on talking,
// and who wants something of rank 1 is told.
UCX_CASE(nonsense) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    const auto kind = number(arguments, "kind", 0);
    std::uint32_t got = 0;
    if (job.rank() == 0) REQUIRE(channel->post_recv(0, 1, {0, 0}, &got, 4) == Status::ok);
    job.barrier();
    if (job.rank() == 1) {
        // As this process, a second time: another ring of rank 0's, which says that it is rank 2's or 1's.
        shm::Address address, own;
        std::memcpy(&address, node.shm_addresses[0].data(), sizeof address);
        std::memcpy(&own, node.shm->address().data(), sizeof own);
        own.process = 1;
        shm::PeerSegment segment;
        std::string why;
        REQUIRE(segment.attach(address, own, true, why) == Status::ok);
        // The ring that rank 0 reads is the first that was claimed.
        const shm::Ring own_ring = segment.ring();
        const std::size_t whole = sizeof(shm::RingControl) + own_ring.bytes;
        std::byte* const rings =
            reinterpret_cast<std::byte*>(own_ring.control) - segment.ring_number() * whole;
        const auto control = [&](std::uint32_t number) {
            return reinterpret_cast<shm::RingControl*>(rings + number * whole);
        };
        std::uint32_t number = 0;
        while (control(number)->sender.load() != 2) ++number;
        std::byte* const data = rings + number * whole + sizeof(shm::RingControl);
        shm::Frame frame;
        frame.kind = kind == 1   ? static_cast<shm::FrameKind>(77)
                     : kind == 5 ? shm::FrameKind::ready  // with a payload
                                 : shm::FrameKind::eager;
        frame.payload = kind == 2 ? 1u << 30 : 4;
        frame.bytes = kind == 3 ? 1u << 20 : 4;
        std::memcpy(data, &frame, sizeof frame);
        control(number)->tail.store(kind == 0 ? ~0ull / 2 : kind == 4 ? 100 : 128);
        segment.header().written[number / 64].fetch_or(std::uint64_t{1} << number % 64);
        segment.ring_bell();
    }
    if (job.rank() == 0) {
        REQUIRE(finish_or_fail(*channel, 1, 10, true) == Status::transport_failed);
    }
    job.barrier();
    if (job.rank() == 1) {
        job.barrier();
        std::_Exit(0);
    }
    const std::vector<std::uint32_t> members{0, 2};
    const auto others = node.channel({0, 1}, OperationSpace::calls, &members);
    const int peer = 1 - others->rank();
    const std::uint32_t value = 40 + static_cast<std::uint32_t>(others->rank());
    REQUIRE(others->post_recv(0, peer, {0, 0}, &got, 4) == Status::ok);
    REQUIRE(others->post_send(1, peer, {0, 0}, &value, 4, SendMode::buffered) == Status::ok);
    finish(*others, 2);
    REQUIRE(got == 40u + static_cast<std::uint32_t>(peer));
    job.barrier();
}

// A channel is given up while its sends are under way, and what they refer to goes: at once where the peer
// polls, nobody reads there any more, and who waits for the message, or asks for it later, hears that it is
// gone.
UCX_CASE(recalled) {
    Node node(job);
    const auto others = node.channel({0, 1});
    const int peer = 1 - job.rank();
    Bytes received(large);
    for (const bool asked_before : {true, false}) {
        const UcxChannelName name{0, asked_before ? 2u : 3u};
        auto channel = node.channel(name);
        if (job.rank() == 0) {
            void* const sent =
                mmap(nullptr, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            REQUIRE(channel->post_send(0, peer, {0, 0}, sent, large, SendMode::buffered) == Status::ok);
            job.barrier();
            channel.reset();
            REQUIRE(!node.shm->holds(sent, large));  // of what it waited for in vain it does
            munmap(sent, large);
            job.barrier();
        } else {
            // Of the message only its announcement is known here, and nothing copied, before the barrier.
            job.barrier();
            if (asked_before)
                REQUIRE(channel->post_recv(0, peer, {0, 0}, received.data(), large) == Status::ok);
            job.barrier([&] { node.shm->poll(); });
            if (!asked_before) (void)channel->post_recv(0, peer, {0, 0}, received.data(), large);
            const Status status = finish_or_fail(*channel, 1, 5, false);
            // Asked for in time, it may have come as a whole.
            REQUIRE(status == Status::transport_failed || (asked_before && status == Status::ok));
        }
    }
    const std::uint32_t value = 7;
    std::uint32_t got = 0;
    REQUIRE(others->post_recv(0, peer, {1, 0}, &got, 4) == Status::ok);
    REQUIRE(others->post_send(1, peer, {1, 0}, &value, 4, SendMode::buffered) == Status::ok);
    finish(*others, 2);
    REQUIRE(got == value);
    job.barrier();
}

// Inside and between hosts at the same time, large messages with everybody: all arrive, a sleeper hears of
// both kinds, and what crosses is metered and gone in the end.
UCX_CASE(both_ways) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    const int size = job.size();
    REQUIRE(channel->grow(2 * static_cast<Slot>(size)) == Status::ok);
    for (std::uint32_t round = 0; round < 8; ++round) {
        std::vector<Bytes> sent(size), received(size);
        Slot slot = 0;
        for (int peer = 0; peer < size; ++peer) {
            if (peer == job.rank()) continue;
            sent[peer] = pattern(large, round * 64 + static_cast<std::uint32_t>(job.rank() * 8 + peer));
            received[peer].resize(large);
            REQUIRE(channel->post_recv(slot++, peer, {round, 0}, received[peer].data(), large) == Status::ok);
            REQUIRE(channel->post_send(slot++, peer, {round, 0}, sent[peer].data(), large,
                                       SendMode::buffered) == Status::ok);
        }
        REQUIRE(round == 0 || node.junction.meter().left_ns() != 0);
        finish_sleeping(*channel, slot);
        for (int peer = 0; peer < size; ++peer) {
            const auto seed = round * 64 + static_cast<std::uint32_t>(peer * 8 + job.rank());
            REQUIRE(peer == job.rank() || is_pattern(received[peer], seed));
        }
        REQUIRE(node.junction.meter().left_ns() == 0 && node.junction.meter().bytes_per_s() > 0);
    }
    // Only the rank of the same host took the ways of shm.
    for (const ShmAccount& account : node.shm->accounts())
        REQUIRE(static_cast<int>(account.process) == (job.rank() ^ 1));
    REQUIRE(node.shm->accounts().size() == 1);
    job.barrier();
}

// For measuring: pairs of ranks swap messages, all at the same time; how long one swap takes.
UCX_CASE(speed) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    const std::size_t bytes = number(arguments, "bytes", 1u << 20);
    const auto count = static_cast<std::uint32_t>(number(arguments, "count", 200));
    const int peer = job.rank() ^ 1;
    const Bytes sent = pattern(bytes, 1);
    Bytes received(bytes);
    std::vector<double> times;
    for (std::uint32_t i = 0; i < count; ++i) {
        const double begin = seconds_now();
        REQUIRE(channel->post_recv(0, peer, {i, 0}, received.data(), bytes) == Status::ok);
        REQUIRE(channel->post_send(1, peer, {i, 0}, sent.data(), bytes, SendMode::buffered) == Status::ok);
        if (arguments.contains("sleep"))
            finish_sleeping(*channel, 2);
        else
            finish(*channel, 2);
        times.push_back(seconds_now() - begin);
    }
    REQUIRE(is_pattern(received, 1));
    std::sort(times.begin(), times.end());
    if (job.rank() == 0)
        std::printf("%zu bytes: median %.2f us, best %.2f us\n", bytes, 1e6 * times[count / 2],
                    1e6 * times[0]);
    job.barrier();
}

}  // namespace thalweg::test
