// Peers that die, peers that have finished, children, and processes that just end.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "job.h"

namespace thalweg::test {

namespace {

// What rank 0 has under way when rank 1 is killed.
enum class Pending { receive, small_send, large_send, large_receive, put, stranger, count };

using Names = std::set<std::string>;

// What shared memory of libucp or of ours has a name on this host.
Names segments() {
    Names names;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
        const std::string name = entry.path().filename().string();
        if (name.find("ucx") != std::string::npos || name.find("thalweg") != std::string::npos)
            names.insert(name);
    }
    return names;
}

// Those that are here now and were not before; others on this machine make theirs, which have a name while
// they are set up.
Names new_segments(const Names& before) {
    Names now = segments();
    std::erase_if(now, [&](const auto& name) { return before.contains(name); });
    return now;
}

// What is left of a killed process until its parent asks: state Z, or nothing.
bool is_dead(pid_t process) {
    std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    if (!std::getline(stat, text)) return true;
    return text.compare(text.rfind(')') + 2, 1, "Z") == 0;
}

// What each rank is to the system.
std::vector<pid_t> processes_of(Job& job) {
    const pid_t own = getpid();
    Bytes bytes(sizeof own);
    std::memcpy(bytes.data(), &own, sizeof own);
    std::vector<pid_t> all;
    for (const Bytes& each : job.exchange(bytes)) {
        all.push_back(0);
        std::memcpy(&all.back(), each.data(), sizeof all.back());
    }
    return all;
}

void die_while(Job& job, const Arguments& arguments, bool sleeping) {
    const auto pending = static_cast<Pending>(number(arguments, "pending", 0));
    REQUIRE(pending < Pending::count);
    const Names before = segments();  // what killed programs of others left here long ago stays
    const std::vector<pid_t> processes = processes_of(job);
    Node node(job, {.devices = {}, .transports = arguments.contains("tls") ? arguments.at("tls") : ""});
    const auto channel = node.channel({0, 0});
    constexpr std::size_t large = std::size_t{32} << 20;
    Bytes data(large), key, exposed(large);
    Region region = 0;
    REQUIRE(channel->expose(exposed.data(), exposed.size(), region, key) == Status::ok);
    const std::vector<Bytes> keys = job.exchange(key);
    // They have talked before (but for strangers, of whom one dies before the other's first message); the
    // channel with the third rank must not notice.
    std::uint32_t value = 0;
    if (job.rank() < 2 && pending != Pending::stranger) {
        REQUIRE(channel->post_send(0, 1 - job.rank(), {0, 0}, &value, 4, SendMode::buffered) == Status::ok);
        REQUIRE(channel->post_recv(1, 1 - job.rank(), {0, 0}, data.data(), 4) == Status::ok);
        finish(*channel, 2);
    }
    const std::vector<std::uint32_t> survivors{0, 2};
    job.barrier();
    if (job.rank() == 1) {
        if (pending == Pending::large_receive) {
            // In the middle of it, mostly: 32 MiB take ten milliseconds or more.
            std::thread([] {
                usleep(2000);
                kill(getpid(), SIGKILL);
            }).detach();
            REQUIRE(channel->post_send(0, 0, {1, 0}, data.data(), large, SendMode::buffered) == Status::ok);
            finish_or_fail(*channel, 1, 10, false);
        }
        usleep(100'000);
        kill(getpid(), SIGKILL);
    }
    auto others = node.channel({0, 1}, OperationSpace::calls, &survivors);
    if (job.rank() == 0) {
        Status status = Status::ok;
        Target target = 0;
        const auto await_death = [&] {
            while (!is_dead(processes[1])) usleep(1000);
        };
        switch (pending) {
            case Pending::receive:
                status = channel->post_recv(0, 1, {1, 0}, data.data(), 4);
                break;
            case Pending::small_send:
                status = channel->post_send(0, 1, {1, 0}, data.data(), 4, SendMode::synchronous);
                break;
            case Pending::large_send:
                status = channel->post_send(0, 1, {1, 0}, data.data(), large, SendMode::buffered);
                break;
            case Pending::large_receive:
                status = channel->post_recv(0, 1, {1, 0}, data.data(), large);
                break;
            case Pending::stranger:
                await_death();
                status = channel->post_recv(0, 1, {1, 0}, data.data(), 4);
                break;
            default:
                REQUIRE(channel->attach(1, keys[1], target) == Status::ok);
                await_death();  // what it had is gone, and nobody answers
                status = channel->post_put(0, target, 0, data.data(), large, {1, 0});
        }
        const auto end = [&] {
            if (!failed(status)) status = finish_or_fail(*channel, 1, 60, sleeping);
        };
        end();
        // It may have sent all before it died; the next one it has not.
        if (status == Status::ok && pending == Pending::large_receive) {
            status = channel->post_recv(0, 1, {3, 0}, data.data(), 4);
            end();
        }
        REQUIRE(status == Status::transport_failed);
        // The channel stays unusable, other channels work.
        REQUIRE(channel->post_send(1, 2, {2, 0}, data.data(), 4, SendMode::buffered) ==
                Status::transport_failed);
        std::size_t count = 0;
        Slot done[1];
        REQUIRE(channel->progress(done, count) == Status::transport_failed);
    }
    const int peer = 1 - others->rank();
    std::uint32_t got = 0;
    value = 40 + static_cast<std::uint32_t>(others->rank());
    REQUIRE(others->post_recv(0, peer, {0, 0}, &got, 4) == Status::ok);
    REQUIRE(others->post_send(1, peer, {0, 0}, &value, 4, SendMode::buffered) == Status::ok);
    finish(*others, 2);
    REQUIRE(got == 40u + static_cast<std::uint32_t>(peer));
    job.barrier();
    // Its memory is gone with it.
    const Names left = new_segments(before);
    const auto gone = [&] {
        const Names now = segments();
        return std::none_of(left.begin(), left.end(), [&](const auto& name) { return now.contains(name); });
    };
    for (int tries = 0; !gone(); ++tries, usleep(10'000)) REQUIRE(tries < 6000);
}

}  // namespace

UCX_CASE(killed) { die_while(job, arguments, false); }
UCX_CASE(killed_asleep) { die_while(job, arguments, true); }

// Rank 1 has finished and closed; ranks 0 and 2 go on using the channel that it was in.
UCX_CASE(left) {
    auto node = std::make_unique<Node>(job);
    auto channel = node->channel({0, 0});
    std::uint32_t value = 5;
    REQUIRE(channel->grow(8) == Status::ok);
    connect(*channel);
    // Rank 1 gives everybody something, and is gone before it is received.
    if (job.rank() == 1) {
        REQUIRE(channel->post_send(0, 0, {0, 0}, &value, 4, SendMode::buffered) == Status::ok);
        REQUIRE(channel->post_send(1, 2, {0, 0}, &value, 4, SendMode::buffered) == Status::ok);
        finish(*channel, 2);
        channel.reset();
        node.reset();
        job.barrier();
        job.barrier();
        return;
    }
    const int other = 2 - job.rank();
    std::uint32_t got[2] = {};
    if (job.rank() == 0) REQUIRE(channel->post_recv(0, 2, {1, 0}, &got[0], 4) == Status::ok);
    job.barrier();
    // What a dead endpoint says arrives while rank 0 waits for rank 2.
    if (job.rank() == 0) REQUIRE(finish_or_fail(*channel, 1, 0.2, false) == Status::in_progress);
    REQUIRE(channel->post_recv(1, 1, {0, 0}, &got[1], 4) == Status::ok);
    finish(*channel, 1);
    REQUIRE(got[1] == 5);
    job.barrier();
    if (job.rank() == 2) {
        REQUIRE(channel->post_send(0, other, {1, 0}, &value, 4, SendMode::buffered) == Status::ok);
    }
    finish(*channel, 1);
    if (job.rank() == 0) REQUIRE(got[0] == 5);
    // Whoever still wants something of rank 1 is told.
    REQUIRE(channel->post_recv(3, 1, {9, 0}, &got[1], 4) == Status::transport_failed ||
            finish_or_fail(*channel, 1, 10, false) == Status::transport_failed);
    node->job.exchange({});
}

// A child after fork() has no port; what it does and its end harm nobody.
UCX_CASE(forked) {
    auto node = std::make_unique<Node>(job);
    auto channel = node->channel({0, 0});
    const int peer = 1 - job.rank();
    std::uint32_t value = 9, got = 0;
    const auto swap = [&](std::uint32_t operation) {
        REQUIRE(channel->post_recv(0, peer, {operation, 0}, &got, 4) == Status::ok);
        REQUIRE(channel->post_send(1, peer, {operation, 0}, &value, 4, SendMode::buffered) == Status::ok);
        finish(*channel, 2);
    };
    swap(0);
    REQUIRE(channel->post_recv(2, peer, {1, 0}, &got, 4) == Status::ok);  // in flight while forking
    const pid_t child = fork();
    if (child == 0) {
        Slot done[1];
        std::size_t count = 0;
        REQUIRE(channel->post_send(1, peer, {2, 0}, &value, 4, SendMode::buffered) ==
                Status::transport_failed);
        REQUIRE(channel->progress(done, count) == Status::transport_failed);
        REQUIRE(channel->arm() == Status::transport_failed);
        channel.reset();
        node.reset();
        std::exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    REQUIRE(channel->post_send(1, peer, {1, 0}, &value, 4, SendMode::buffered) == Status::ok);
    finish(*channel, 2);
    swap(2);
    REQUIRE(got == 9);
}

// A process may end without closing anything, with requests in flight.
UCX_CASE(exits) {
    auto* node = new Node(job);
    auto* channel = node->channel({0, 0}).release();
    static Bytes data(std::size_t{1} << 20);
    if (job.rank() == 0) {
        REQUIRE(channel->post_recv(0, 1, {0, 0}, data.data(), data.size()) == Status::ok);
        REQUIRE(channel->post_send(1, 1, {0, 0}, data.data(), data.size(), SendMode::synchronous) ==
                Status::ok);
    }
    finish_or_fail(*channel, 1, 0.1, false);
    job.barrier();
    std::exit(0);
}

}  // namespace thalweg::test
