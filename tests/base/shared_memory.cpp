#include "base/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
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

// Of this process's memory what is its alone, in bytes.
std::size_t own_bytes() {
    std::ifstream file("/proc/self/smaps_rollup");
    std::string word;
    std::size_t bytes = 0, kb = 0;
    while (file >> word)
        if ((word == "Private_Dirty:" || word == "Private_Clean:") && file >> kb) bytes += kb * 1024;
    return bytes;
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
        const std::size_t before = own_bytes();
        HostPage read;
        std::string reason;
        if (failed(read.open(location, bytes, reason)) || read.bytes().size() != bytes) return false;
        for (std::size_t i = 0; i < bytes; ++i)
            if (read.bytes()[i] != static_cast<std::byte>(i * 7 % 251)) return false;
        const std::size_t after = own_bytes();
        if (after > before + (1u << 20)) std::fprintf(stderr, "%zu bytes of its own\n", after - before);
        return after <= before + (1u << 20);
    }));
    // It lies in the memory that the writer made, and cannot be written by readers.
    EXPECT_EXIT(
        {
            HostPage read;
            std::string reason;
            if (failed(read.open(location, bytes, reason))) _exit(1);
            read.bytes()[0] = std::byte{1};
            _exit(0);
        },
        testing::KilledBySignal(SIGSEGV), "");
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
