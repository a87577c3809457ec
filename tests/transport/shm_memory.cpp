// Where the system gives out no more memory than it has, that of a host's processes is taken while they meet:
// what cannot be had is said then, and no touch ends a process by a signal later.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/shared_memory.h"
#include "transport/shm/segment.h"
#include "transport/shm/shm.h"

namespace thalweg {
namespace {

// Of this thread's calls, from now on.
bool refuse_memory() {
    sock_filter lines[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{std::size(lines), lines};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

ShmOptions options_of(std::uint32_t process, bool takes_memory) {
    ShmOptions options;
    options.process = process;
    options.peers = 4;
    options.arena_bytes = 64 * 1024;
    options.takes_memory = takes_memory;
    return options;
}

// That its segment has, in bytes.
std::size_t memory_of(const ShmPort& port) {
    shm::Address address;
    std::memcpy(&address, port.address().data(), sizeof address);
    struct stat status = {};
    EXPECT_EQ(fstat(address.memory, &status), 0);
    return static_cast<std::size_t>(status.st_blocks) * 512;
}

TEST(shm_memory, is_there_when_processes_have_met) {
    for (const bool takes : {false, true}) {
        std::unique_ptr<ShmPort> port, other;
        std::string why;
        ASSERT_EQ(ShmPort::open(options_of(0, takes), port, why), Status::ok) << why;
        ASSERT_EQ(ShmPort::open(options_of(1, takes), other, why), Status::ok) << why;
        const std::size_t alone = memory_of(*port);
        if (takes) {
            EXPECT_GE(alone, 64u * 1024) << "the arena";
        }
        EXPECT_LT(alone, 4 * shm::ring_bytes) << "rings that nobody has claimed";
        ASSERT_EQ(other->meet(0, port->address(), why), Status::ok) << why;
        if (takes) {
            // What it shares a page with may have that already.
            EXPECT_GE(memory_of(*port) + 2 * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)),
                      alone + shm::ring_bytes);
        } else {
            EXPECT_LT(memory_of(*port), shm::ring_bytes);
        }
    }
}

// Where cores are short each end of a full or empty ring waits for one: rings are longer there, but those of
// a full host together no larger than elsewhere.
TEST(shm_memory, of_rings_is_more_where_cores_are_short_and_peers_few) {
    const auto of_one = [](bool crowded, std::uint32_t peers) {
        ShmOptions options = options_of(0, true);
        options.crowded = crowded;
        options.peers = peers;
        std::unique_ptr<ShmPort> port, other;
        std::string why;
        EXPECT_EQ(ShmPort::open(options, port, why), Status::ok) << why;
        options.process = 1;
        EXPECT_EQ(ShmPort::open(options, other, why), Status::ok) << why;
        const std::size_t alone = memory_of(*port);
        EXPECT_EQ(other->meet(0, port->address(), why), Status::ok) << why;
        // What it shares a page with may have that already.
        const std::size_t pages = 2 * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        return (memory_of(*port) - alone + pages) / shm::ring_bytes * shm::ring_bytes;
    };
    for (const std::uint32_t peers : {1, 16, 64, 512}) EXPECT_EQ(of_one(false, peers), shm::ring_bytes);
    EXPECT_EQ(of_one(true, 2), shm::most_ring_bytes);
    EXPECT_EQ(of_one(true, 8), shm::most_ring_bytes);
    EXPECT_EQ(of_one(true, 9), shm::most_ring_bytes / 2);
    EXPECT_EQ(of_one(true, 17), shm::ring_bytes);
    EXPECT_EQ(of_one(true, 512), shm::ring_bytes);
    // No host's memory is given up for longer ones.
    rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    rlimit few = before;
    few.rlim_cur = (1 << 20) + (128 << 10);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &few), 0);
    EXPECT_EQ(of_one(true, 2), shm::most_ring_bytes / 2);
    EXPECT_EQ(of_one(true, 4), shm::ring_bytes);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
}

// Of each process that has met all of a host, tables for the pages of others' rings would be what costs most.
// Processes `first` and so many others, each `apart` from the one before.
void expect_no_look_at_rings_of_others(std::uint32_t first, std::uint32_t apart) {
    constexpr std::uint32_t rings = 64;
    shm::OwnSegment owner;
    std::string why;
    ASSERT_EQ(owner.create(first, rings, shm::ring_bytes, 0, why), Status::ok) << why;
    std::array<shm::PeerSegment, rings> met;
    const auto attach = [&](shm::PeerSegment& segment, std::uint32_t number) {
        shm::Address own = owner.address();
        own.process = first + number * apart;
        rusage before = {}, after = {};
        getrusage(RUSAGE_THREAD, &before);
        const Status status = segment.attach(owner.address(), own, false, why);
        getrusage(RUSAGE_THREAD, &after);
        return std::pair(status, after.ru_minflt - before.ru_minflt);
    };
    std::set<std::uint32_t> taken;
    long faults_of_first = 0;
    for (std::uint32_t i = 0; i < rings; ++i) {
        const auto [status, faults] = attach(met[i], i);
        ASSERT_EQ(status, Status::ok) << why;
        taken.insert(met[i].ring_number());
        if (i == 0) faults_of_first = faults;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which touch pages of their own
        EXPECT_LT(faults, faults_of_first + rings / 2) << "of the process that has met it as number " << i;
#endif
    }
    EXPECT_EQ(taken.size(), rings);
    // Wherever one is free it is found.
    shm::PeerSegment another;
    EXPECT_EQ(attach(another, 0).first, Status::out_of_memory);
    met[7].give_ring_back();
    ASSERT_EQ(attach(another, 8).first, Status::ok) << why;
    EXPECT_EQ(another.ring_number(), met[7].ring_number());
}

TEST(shm_memory, of_a_peer_is_looked_at_in_no_ring_of_others) {
    expect_no_look_at_rings_of_others(128, 1);
    expect_no_look_at_rings_of_others(40, 1);
    // One host after another has a process in turn: of as many hosts as each has processes, and twice as
    // many.
    expect_no_look_at_rings_of_others(40, 64);
    expect_no_look_at_rings_of_others(40, 128);
}

// Else the kernel reads all of it for that, and gives memory to rings that nobody has touched.
TEST(shm_memory, is_in_no_core_file) {
    std::unique_ptr<ShmPort> port, other;
    std::string why;
    ASSERT_EQ(ShmPort::open(options_of(0, false), port, why), Status::ok) << why;
    ASSERT_EQ(ShmPort::open(options_of(1, false), other, why), Status::ok) << why;
    ASSERT_EQ(other->meet(0, port->address(), why), Status::ok) << why;
    int mappings = 0, dumped = 0;
    bool of_ours = false;
    std::ifstream maps("/proc/self/smaps");
    for (std::string line; std::getline(maps, line);) {  // that of flags is a mapping's last
        of_ours |= line.find("/memfd:thalweg") != std::string::npos;
        if (!of_ours || !line.starts_with("VmFlags:")) continue;
        of_ours = false;
        ++mappings;
        dumped += (line + ' ').find(" dd ") == std::string::npos;
    }
    if (mappings == 0) GTEST_SKIP() << "this kernel does not tell the flags of mappings";
    EXPECT_EQ(mappings, 3) << "two segments, and one of them as the other process has it";
    EXPECT_EQ(dumped, 0);
}

TEST(shm_memory, a_process_without_it_says_so) {
    bool filtered = false;
    std::thread without([&] {
        std::unique_ptr<ShmPort> port, other;
        std::string why;
        ASSERT_EQ(ShmPort::open(options_of(0, true), port, why), Status::ok) << why;
        filtered = refuse_memory();
        if (!filtered) return;
        EXPECT_EQ(ShmPort::open(options_of(1, true), other, why), Status::out_of_memory);
        EXPECT_NE(why.find("fallocate"), std::string::npos) << why;
        ASSERT_EQ(ShmPort::open(options_of(1, false), other, why), Status::ok) << why;
        // Its rings have none: who would write there gives the ring back, again and again.
        for (int tries = 0; tries < 10; ++tries) {
            EXPECT_EQ(port->meet(1, other->address(), why), Status::out_of_memory);
            EXPECT_NE(why.find("fallocate"), std::string::npos) << why;
            EXPECT_FALSE(port->knows(1));
        }
    });
    without.join();
    if (!filtered) GTEST_SKIP() << "no filter of system calls can be set here";
}

// As where vm.memfd_noexec is 2: of this thread's calls, from now on.
bool refuse_files_that_may_be_executed() {
    constexpr unsigned not_executed = 0x0008;  // MFD_NOEXEC_SEAL
    sock_filter lines[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 3),
                           BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
                           BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, not_executed, 1, 0),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{std::size(lines), lines};
    const Descriptor known(memfd_create("test", MFD_CLOEXEC | not_executed));
    return known.get() >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(shm_memory, is_had_where_files_must_not_be_executed) {
    bool filtered = false;
    std::thread without([&] {
        filtered = refuse_files_that_may_be_executed();
        if (!filtered) return;
        std::unique_ptr<ShmPort> port, other;
        std::string why;
        EXPECT_LT(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING), 0);
        ASSERT_EQ(ShmPort::open(options_of(0, true), port, why), Status::ok) << why;
        ASSERT_EQ(ShmPort::open(options_of(1, false), other, why), Status::ok) << why;
        EXPECT_EQ(other->meet(0, port->address(), why), Status::ok) << why;
        HostPage page, seen;
        ASSERT_EQ(page.create(why), Status::ok) << why;
        ASSERT_EQ(page.resize(100, why), Status::ok) << why;
        EXPECT_EQ(seen.open(page.location(), 100, why), Status::ok) << why;
    });
    without.join();
    if (!filtered) GTEST_SKIP() << "no such file, or no filter of system calls, can be had here";
}

}  // namespace
}  // namespace thalweg
