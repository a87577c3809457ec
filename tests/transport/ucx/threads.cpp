// Who polls, who sleeps, and who wakes whom.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "job.h"

namespace thalweg::test {

namespace {

// Ping-pong of growing messages over one channel; both ends check.
void talk(Job& job, Transport& channel, std::uint32_t rounds, bool sleeping) {
    const int peer = 1 - job.rank();
    for (std::uint32_t round = 0; round < rounds; ++round) {
        const std::size_t bytes = (round * 397) % 100'000;
        const std::uint32_t seed = round * 2 + static_cast<std::uint32_t>(job.rank());
        const Bytes sent = pattern(bytes, seed);
        Bytes received(bytes);
        REQUIRE(channel.post_recv(1, peer, {round, 0}, received.data(), bytes) == Status::ok);
        REQUIRE(channel.post_send(0, peer, {round, 0}, sent.data(), bytes, SendMode::buffered) == Status::ok);
        if (sleeping) {
            finish_sleeping(channel, 2);
        } else {
            finish(channel, 2);
        }
        REQUIRE(is_pattern(received, seed ^ 1));
    }
}

}  // namespace

// Two threads, each with its channel, over one port: both polling, both sleeping, one of each.
UCX_CASE(threads) {
    Node node(job);
    const auto rounds = static_cast<std::uint32_t>(number(arguments, "rounds", 1000));
    std::uint32_t counter = 0;
    for (const bool first_sleeps : {false, true}) {
        for (const bool second_sleeps : {false, true}) {
            const auto a = node.channel({0, counter++});
            const auto b = node.channel({0, counter++});
            std::thread other([&] { talk(job, *a, rounds, first_sleeps); });
            talk(job, *b, rounds, second_sleeps);
            other.join();
            job.barrier();
        }
    }
}

// What an agent does: one thread drives the channel whose messages another thread posts, and sleeps between.
// The owner never polls. (A channel is used by one of them at a time: the owner hands over, the agent hands
// back.)
UCX_CASE(driver) {
    Node node(job);
    const auto channel = node.channel({0, 0});
    const int peer = 1 - job.rank();
    std::atomic<int> turn{0};  // 0: the owner's, 1: the agent's, 2: over
    std::thread agent([&] {
        for (;;) {
            turn.wait(0);
            if (turn == 2) return;
            finish_sleeping(*channel, 2);
            turn = 0;
            turn.notify_all();
        }
    });
    for (std::uint32_t round = 0; round < 300; ++round) {
        const std::size_t bytes = std::size_t{1} << (round % 20);
        const std::uint32_t seed = round * 2 + static_cast<std::uint32_t>(job.rank());
        const Bytes sent = pattern(bytes, seed);
        Bytes received(bytes);
        REQUIRE(channel->post_send(0, peer, {round, 0}, sent.data(), bytes, SendMode::buffered) ==
                Status::ok);
        REQUIRE(channel->post_recv(1, peer, {round, 0}, received.data(), bytes) == Status::ok);
        turn = 1;
        turn.notify_all();
        turn.wait(1);
        REQUIRE(is_pattern(received, seed ^ 1));
    }
    turn = 2;
    turn.notify_all();
    agent.join();
}

// A wait of a second costs next to no CPU time and few wake-ups. Again where it was none: on a busy machine
// the sender may have slept before the receiver began.
UCX_CASE(sleeping) {
    Node node(job, {.devices = {}, .transports = arguments.contains("tls") ? arguments.at("tls") : ""});
    const auto channel = node.channel({0, 0});
    std::uint32_t value = 7, received = 0;
    bool seen = false;
    // Once for the connection. Rank 0 says whether it has seen enough.
    for (std::uint32_t round = 0; round < 10 && job.exchange(Bytes(seen))[0].empty(); ++round) {
        if (job.rank() == 1) {
            if (round != 0) usleep(round * 1'000'000);
            REQUIRE(channel->post_send(0, 0, {round, 0}, &value, 4, SendMode::synchronous) == Status::ok);
            finish_sleeping(*channel, 1);
            continue;
        }
        REQUIRE(channel->post_recv(0, 1, {round, 0}, &received, 4) == Status::ok);
        const double cpu = cpu_seconds(), begin = seconds_now();
        int sleeps = 0;
        finish_sleeping(*channel, 1, &sleeps);
        const double waited = seconds_now() - begin, used = cpu_seconds() - cpu;
        REQUIRE(received == 7);
        if (round == 0 || waited < 0.9) continue;
        std::printf("waited %.3f s: %.2f ms of CPU, %d sleeps\n", waited, 1e3 * used, sleeps);
        REQUIRE(used < 0.022 * waited && sleeps >= 1 && sleeps < 22 * waited);
        seen = true;
    }
    REQUIRE(job.rank() == 1 || seen);
}

// A thread sleeps for its channel while another thread's polls take its message from the network: the bell
// must wake it although the network has nothing more to say. And a post wakes a driver that sleeps.
UCX_CASE(bell) {
    Node node(job);
    const auto watched = node.channel({0, 0});
    const auto busy = node.channel({0, 1});
    const int rounds = 200;
    std::uint32_t value = 0, received = 0, other = 0;
    if (job.rank() == 1) {
        for (int round = 0; round < rounds; ++round) {
            job.barrier();
            usleep(1000);
            value = static_cast<std::uint32_t>(round);
            REQUIRE(watched->post_send(0, 0, {value, 0}, &value, 4, SendMode::buffered) == Status::ok);
            finish(*watched, 1);
            usleep(2000);
            // Ends the other thread's polling.
            REQUIRE(busy->post_send(0, 0, {value, 0}, &value, 4, SendMode::buffered) == Status::ok);
            finish(*busy, 1);
        }
        return;
    }
    double slowest = 0;
    for (int round = 0; round < rounds; ++round) {
        const auto operation = static_cast<std::uint32_t>(round);
        REQUIRE(watched->post_recv(0, 1, {operation, 0}, &received, 4) == Status::ok);
        REQUIRE(busy->post_recv(0, 1, {operation, 0}, &other, 4) == Status::ok);
        std::atomic<double> woken{0};
        std::thread sleeper([&] {
            finish_sleeping(*watched, 1);
            woken = seconds_now();
        });
        usleep(500);
        job.barrier();
        // Keeps polling (and arming, which drains what the network signalled) until both messages are here.
        finish_sleeping(*busy, 1);
        const double polled = seconds_now();
        sleeper.join();
        slowest = std::max(slowest, woken - polled);
        REQUIRE(received == operation && other == operation);
    }
    std::printf("the sleeper ended at most %.1f ms after the poller\n", 1e3 * slowest);
    REQUIRE(slowest < 20);  // a sleeper that is not woken sleeps for longer
}

// A thread sleeps for its channel, and another looks at that channel once, in vain, as a test of a request
// does. The sleeper is still to be woken: by the message itself, or by the bell when somebody's poll took it.
UCX_CASE(glance) {
    Node node(job);
    const auto watched = node.channel({0, 0});
    const auto busy = node.channel({0, 1});
    connect(*watched);
    connect(*busy);
    const std::uint32_t rounds = 10;
    std::uint32_t value = 0, received = 0, other = 0;
    if (job.rank() == 1) {
        for (; value < rounds; ++value) {
            job.barrier();
            usleep(2000);
            REQUIRE(watched->post_send(0, 0, {value, 0}, &value, 4, SendMode::buffered) == Status::ok);
            finish(*watched, 1);
            usleep(2000);
            REQUIRE(busy->post_send(0, 0, {value, 0}, &value, 4, SendMode::buffered) == Status::ok);
            finish(*busy, 1);
        }
        return;
    }
    constexpr int longest_sleep_ms = 60'000;
    double slowest = 0;
    for (std::uint32_t round = 0; round < rounds; ++round) {
        REQUIRE(watched->post_recv(0, 1, {round, 0}, &received, 4) == Status::ok);
        REQUIRE(busy->post_recv(0, 1, {round, 0}, &other, 4) == Status::ok);
        std::mutex turn;  // one thread at a time uses the channel
        std::atomic<bool> asleep{false};
        std::atomic<double> woken{0};
        std::thread sleeper([&] {
            Slot done[1];
            for (std::size_t count = 0;;) {
                std::unique_lock lock(turn);
                REQUIRE(watched->progress(done, count) == Status::ok);
                if (count != 0) break;
                if (watched->arm() != Status::ok) continue;
                lock.unlock();
                asleep = true;
                pollfd ready{watched->wait_descriptor(), POLLIN, 0};
                poll(&ready, 1, longest_sleep_ms);
            }
            woken = seconds_now();
        });
        while (!asleep) usleep(100);
        {
            const std::lock_guard lock(turn);
            Slot done[1];
            std::size_t count = 0;
            REQUIRE(watched->progress(done, count) == Status::ok && count == 0);
        }
        job.barrier();
        // Even rounds: nobody else polls until the message is long there.
        if (round % 2 == 0) usleep(20'000);
        finish(*busy, 1);
        const double polled = seconds_now();
        sleeper.join();
        slowest = std::max(slowest, woken - polled);
        REQUIRE(received == round && other == round);
    }
    std::printf("the sleeper ended at most %.1f ms after the others\n", 1e3 * slowest);
    REQUIRE(1e3 * slowest < longest_sleep_ms / 2);
}

}  // namespace thalweg::test
