#include "base/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

namespace thalweg {
namespace {

// What a process of its own makes of it: true, and it ends well.
bool in_child(const std::function<bool()>& run) {
    const pid_t child = fork();
    if (child == 0) _exit(run() ? 0 : 1);
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// What of the mapping at `address` is this process's alone, and all of it that is in memory, in bytes.
struct Own {
    std::size_t alone = 0, in_memory = 0;
};
Own own_bytes_at(const void* address) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    std::ifstream file("/proc/self/smaps");
    Own own;
    bool here = false;
    for (std::string line; std::getline(file, line);) {
        unsigned long begin = 0, end = 0, kb = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) here = begin <= wanted && wanted < end;
        if (!here) continue;
        if (std::sscanf(line.c_str(), "Private_Dirty: %lu", &kb) == 1 ||
            std::sscanf(line.c_str(), "Private_Clean: %lu", &kb) == 1)
            own.alone += kb * 1024;
        if (std::sscanf(line.c_str(), "Rss: %lu", &kb) == 1) own.in_memory += kb * 1024;
    }
    return own;
}

TEST(address_space, what_a_limit_leaves_is_told) {
    EXPECT_TRUE(in_child([] {
        constexpr std::uint64_t room = 1u << 30, mapped = room / 2;
        rlimit limit = {};
        if (getrlimit(RLIMIT_AS, &limit) != 0) return false;
        if (limit.rlim_cur == RLIM_INFINITY && address_space_left() != UINT64_MAX) return false;
        unsigned long pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        limit.rlim_cur = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + room;
        if (setrlimit(RLIMIT_AS, &limit) != 0) return false;
        const std::uint64_t before = address_space_left();
        const Mapping more = anonymous_memory(mapped);
        const std::uint64_t after = address_space_left();
        return more.base() != nullptr && before < 2 * room && before > mapped && after < before - mapped / 2;
    }));
}

TEST(host_page, others_read_what_one_wrote_and_have_no_memory_of_their_own) {
    constexpr std::size_t bytes = 20u << 20;  // the addresses of 65,536 processes
    HostPage page;
    std::string why;
    ASSERT_EQ(page.create(why), Status::ok) << why;
    EXPECT_TRUE(page.bytes().empty());
    ASSERT_EQ(page.resize(bytes, why), Status::ok) << why;
    ASSERT_EQ(page.bytes().size(), bytes);
    for (std::size_t i = 0; i < bytes; ++i) page.bytes()[i] = static_cast<std::byte>(i * 7 % 251);
    const HostPage::Location location = page.location();
    EXPECT_TRUE(in_child([&] {
        HostPage read;
        std::string reason;
        if (failed(read.open(location, bytes, reason)) || read.bytes().size() != bytes) return false;
        for (std::size_t i = 0; i < bytes; ++i)
            if (read.bytes()[i] != static_cast<std::byte>(i * 7 % 251)) return false;
        const Own own = own_bytes_at(read.bytes().data());
        std::fprintf(stderr, "%zu bytes in memory, %zu its own\n", own.in_memory, own.alone);
        return own.in_memory >= bytes && own.alone == 0;
    }));
    // Readers cannot write it: the system refuses to put a byte there.
    HostPage read;
    ASSERT_EQ(read.open(location, bytes, why), Status::ok) << why;
    const Descriptor zeros(open("/dev/zero", O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(::read(zeros.get(), read.bytes().data(), 1), -1);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(::read(zeros.get(), page.bytes().data(), 1), 1);
    EXPECT_EQ(read.bytes()[0], std::byte{0});
    // Nor does the writer once it has ended that; its descriptor is closed, and nobody else comes.
    page.end_writing();
    EXPECT_EQ(fcntl(location.descriptor, F_GETFD), -1);
    EXPECT_EQ(::read(zeros.get(), page.bytes().data() + 1, 1), -1);
    EXPECT_EQ(page.bytes()[1], read.bytes()[1]);
    HostPage late;
    EXPECT_NE(late.open(location, bytes, why), Status::ok);
}

TEST(host_page, another_page_is_none) {
    HostPage page, read;
    std::string why;
    ASSERT_EQ(page.create(why), Status::ok) << why;
    HostPage::Location location = page.location();
    EXPECT_EQ(read.open(location, 100, why), Status::mismatch);  // it has no bytes yet
    ASSERT_EQ(page.resize(100, why), Status::ok) << why;
    EXPECT_EQ(read.open(location, 99, why), Status::mismatch);
    location.nonce ^= 1;
    EXPECT_EQ(read.open(location, 100, why), Status::mismatch);
    location = page.location();
    location.machine ^= 2;
    EXPECT_EQ(read.open(location, 100, why), Status::unsupported);
    EXPECT_NE(why.find("another host"), std::string::npos) << why;
    EXPECT_TRUE(read.bytes().empty());
    location = page.location();
    EXPECT_EQ(read.open(location, 100, why), Status::ok) << why;
    page = {};
    HostPage late;
    EXPECT_NE(late.open(location, 100, why), Status::ok);  // its writer is gone
    EXPECT_EQ(read.bytes().size(), 100u);                  // for those who have it it stays
    EXPECT_EQ(read.bytes()[99], std::byte{0});
}

// Beyond that limit ftruncate would end the process.
TEST(host_page, a_limit_on_files_is_an_answer) {
    rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    rlimit few = before;
    few.rlim_cur = 1 << 20;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &few), 0);
    HostPage page;
    std::string why;
    EXPECT_EQ(page.create(why), Status::ok) << why;
    EXPECT_EQ(page.resize(2 << 20, why), Status::unsupported);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_NE(why.find("limit"), std::string::npos) << why;
    EXPECT_TRUE(page.bytes().empty());
}

}  // namespace
}  // namespace thalweg
