#include "job.h"

#include <dirent.h>
#include <poll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "transport/packing/packing.h"

namespace thalweg::test {

int job_rank = -1;
std::string job_carrier = "ucx";
std::string job_between;
bool job_packs = false;
ShmOptions Node::standard_shm;

namespace {

void write_all(int descriptor, const void* data, std::size_t bytes) {
    const char* next = static_cast<const char*>(data);
    while (bytes != 0) {
        const ssize_t done = write(descriptor, next, bytes);
        REQUIRE(done > 0);
        next += done;
        bytes -= static_cast<std::size_t>(done);
    }
}

void read_all(int descriptor, void* data, std::size_t bytes) {
    char* next = static_cast<char*>(data);
    while (bytes != 0) {
        const ssize_t done = read(descriptor, next, bytes);
        REQUIRE(done > 0);
        next += done;
        bytes -= static_cast<std::size_t>(done);
    }
}

Bytes read_file(const std::string& name) {
    for (;; usleep(2000)) {
        std::ifstream file(name, std::ios::binary);
        if (!file) continue;
        const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
        Bytes bytes(text.size());
        if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
        return bytes;
    }
}

}  // namespace

std::vector<Bytes> Job::exchange(const Bytes& mine, const std::function<void()>& meanwhile) {
    std::vector<Bytes> all(size_);
    if (socket_ < 0) {
        const std::string stem = folder_ + "/" + std::to_string(round_++) + ".";
        const std::string own = stem + std::to_string(rank_);
        std::ofstream(own + "~", std::ios::binary)
            .write(reinterpret_cast<const char*>(mine.data()), static_cast<std::streamsize>(mine.size()));
        REQUIRE(std::rename((own + "~").c_str(), own.c_str()) == 0);
        for (int rank = 0; rank < size_; ++rank) {
            const std::string theirs = stem + std::to_string(rank);
            while (meanwhile && access(theirs.c_str(), F_OK) != 0) meanwhile();
            all[rank] = read_file(theirs);
        }
        return all;
    }
    const std::uint64_t length = mine.size();
    write_all(socket_, &length, sizeof length);
    write_all(socket_, mine.data(), mine.size());
    pollfd answer{socket_, POLLIN, 0};
    while (meanwhile && ::poll(&answer, 1, 0) == 0) meanwhile();
    for (Bytes& bytes : all) {
        std::uint64_t incoming = 0;
        read_all(socket_, &incoming, sizeof incoming);
        bytes.resize(incoming);
        read_all(socket_, bytes.data(), incoming);
    }
    return all;
}

Node::Node(Job& the_job, UcxOptions options, ShmOptions shm_options) : job(the_job) {
    options.process = shm_options.process = static_cast<std::uint32_t>(job.rank());
    options.processes = static_cast<std::uint32_t>(job.size());
    options.protocol = job_between;
    const bool by_ucx = job_carrier != "shm", by_shm = job_carrier != "ucx";
    std::string why;
    if (by_ucx) {
        const Status status = UcxPort::open(options, port, why);
        if (failed(status)) std::fprintf(stderr, "rank %d: %s\n", job.rank(), why.c_str());
        REQUIRE(status == Status::ok);
        const auto mine = port->address();
        offsets.push_back(0);
        for (const Bytes& bytes : job.exchange(Bytes(mine.begin(), mine.end()))) {
            table.insert(table.end(), bytes.begin(), bytes.end());
            offsets.push_back(table.size());
        }
        REQUIRE(port->learn({table, offsets}, why) == Status::ok);
    }
    if (!by_shm) return;
    const Status status = ShmPort::open(shm_options, shm, why);
    if (failed(status)) std::fprintf(stderr, "rank %d: %s\n", job.rank(), why.c_str());
    REQUIRE(status == Status::ok);
    const auto mine = shm->address();
    shm_addresses = job.exchange(Bytes(mine.begin(), mine.end()));
    for (int process = 0; process < job.size(); ++process) {
        if (by_ucx && !is_near(process)) continue;
        REQUIRE(shm->meet(static_cast<std::uint32_t>(process), shm_addresses[process], why) == Status::ok);
    }
}

bool Node::is_near(int process) const { return process / 2 == job.rank() / 2; }

Status Node::make_channel(const UcxGroup& group, std::unique_ptr<Transport>& made) {
    if (!shm) {
        const Status status = port->make_channel(group, made);
        if (job_packs) made = with_packing(std::move(made));
        return status;
    }
    const ShmGroup inside{group.name,      group.space, group.rank,       group.size,
                          group.processes, group.slots, group.drive_host, group.host};
    if (!port) return shm->make_channel(inside, made);
    CompositeParts parts;
    Status status = port->make_channel(group, parts.between);
    if (!failed(status)) status = shm->make_channel(inside, parts.inside);
    if (failed(status)) return status;
    std::vector<bool> near;
    for (int rank = 0; rank < group.size; ++rank)
        near.push_back(is_near(group.processes ? static_cast<int>(group.processes[rank]) : rank));
    parts.is_near = std::make_shared<const std::vector<bool>>(std::move(near));
    parts.port = shm.get();
    parts.junction = &junction;
    return make_composite(std::move(parts), made);
}

Status Node::name_channel(UcxChannelName& name) {
    if (port) return port->name_channel(name);
    name = shm->name_channel();
    return Status::ok;
}

void Node::give_back(UcxChannelName name) {
    if (port) port->give_back(name);
}

std::unique_ptr<Transport> Node::channel(UcxChannelName name, OperationSpace space,
                                         const std::vector<std::uint32_t>* members) {
    UcxGroup group;
    group.name = name;
    group.space = space;
    group.rank = job.rank();
    group.size = job.size();
    group.slots = 4;
    if (members) {
        group.processes = members->data();
        group.size = static_cast<int>(members->size());
        group.rank = -1;
        for (int rank = 0; rank < group.size; ++rank) {
            if ((*members)[rank] == static_cast<std::uint32_t>(job.rank())) group.rank = rank;
        }
    }
    std::unique_ptr<Transport> made;
    REQUIRE(make_channel(group, made) == Status::ok);
    return made;
}

std::uint64_t messages_by(const ShmAccount& account, const std::string& protocol) {
    for (int i = 0; i < ShmAccount::protocols; ++i)
        if (ShmAccount::name_of(i) == protocol) return account.messages[i];
    return 0;
}

ShmAccount account_of(Node& node, int process) {
    for (const ShmAccount& account : node.shm->accounts())
        if (account.process == static_cast<std::uint32_t>(process)) return account;
    return {};
}

void connect(Transport& channel) {
    const auto peers = static_cast<Slot>(channel.size() - 1);
    REQUIRE(channel.grow(2 * peers) == Status::ok);
    Slot slot = 0;
    for (int peer = 0; peer < channel.size(); ++peer) {
        if (peer == channel.rank()) continue;
        const MessageId id{~std::uint32_t{0}, 0};
        REQUIRE(channel.post_recv(slot++, peer, id, nullptr, 0) == Status::ok);
        REQUIRE(channel.post_send(slot++, peer, id, nullptr, 0, SendMode::buffered) == Status::ok);
    }
    finish(channel, slot);
}

Status finish_or_fail(Transport& channel, std::size_t count, double seconds, bool sleeping) {
    const double begin = seconds_now();
    std::size_t total = 0;
    while (total < count) {
        Slot done[16];
        std::size_t got = 0;
        const Status status = channel.progress(done, got);
        if (failed(status)) return status;
        total += got;
        if (got != 0) continue;
        if (seconds_now() - begin > seconds) return Status::in_progress;
        if (!sleeping) {
            if (seconds_now() - begin > 0.001) usleep(50);
            continue;
        }
        const Status armed = channel.arm();
        if (failed(armed)) return armed;
        if (armed != Status::ok) continue;
        pollfd waited{channel.wait_descriptor(), POLLIN, 0};
        ::poll(&waited, 1, static_cast<int>(seconds * 1000));
    }
    return Status::ok;
}

namespace {

std::vector<Slot> collect(Transport& channel, std::size_t count, bool sleeping, int* sleeps) {
    std::vector<Slot> all;
    double idle_since = 0;
    while (all.size() < count) {
        Slot done[16];
        std::size_t got = 0;
        REQUIRE(channel.progress(done, got) == Status::ok);
        all.insert(all.end(), done, done + got);
        if (got != 0) {
            idle_since = 0;
            continue;
        }
        if (idle_since == 0) idle_since = seconds_now();
        REQUIRE(seconds_now() - idle_since < 60);
        if (!sleeping) {
            sched_yield();
            continue;
        }
        const Status armed = channel.arm();
        REQUIRE(!failed(armed));
        if (armed != Status::ok) continue;
        pollfd waited{channel.wait_descriptor(), POLLIN, 0};
        REQUIRE(::poll(&waited, 1, 30'000) == 1);
        if (sleeps) ++*sleeps;
    }
    REQUIRE(all.size() == count);
    return all;
}

}  // namespace

std::vector<Slot> finish(Transport& channel, std::size_t count) {
    return collect(channel, count, false, nullptr);
}
std::vector<Slot> finish_sleeping(Transport& channel, std::size_t count, int* sleeps) {
    return collect(channel, count, true, sleeps);
}

namespace {

std::uint64_t word(std::size_t i, std::uint32_t seed) {
    return (i + 1) * 0x9e3779b97f4a7c15u ^ seed * 0xc2b2ae3d27d4eb4fu;
}

}  // namespace

Bytes pattern(std::size_t bytes, std::uint32_t seed) {
    Bytes made((bytes + 7) / 8 * 8);
    for (std::size_t i = 0; i * 8 < made.size(); ++i) {
        const std::uint64_t value = word(i, seed);
        std::memcpy(made.data() + 8 * i, &value, 8);
    }
    made.resize(bytes);
    return made;
}

bool is_pattern(const Bytes& bytes, std::uint32_t seed) {
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
        const std::uint64_t value = word(at / 8, seed);
        if (std::memcmp(bytes.data() + at, &value, std::min<std::size_t>(8, bytes.size() - at)) != 0) {
            return false;
        }
    }
    return true;
}

double seconds_now() {
    timespec time = {};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double cpu_seconds() {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

std::uint64_t number(const Arguments& arguments, const std::string& name, std::uint64_t standard) {
    const auto found = arguments.find(name);
    return found == arguments.end() ? standard : std::stoull(found->second);
}

}  // namespace thalweg::test
