#include "base/cpu_mask.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace {

// What the kernel was asked for last.
thalweg::CpuMask asked;

}  // namespace

// In the place of the C library's: passes on.
extern "C" int sched_setaffinity(pid_t process, std::size_t bytes, const cpu_set_t* set) noexcept {
    const auto* const words = reinterpret_cast<const unsigned long*>(set);
    asked.assign(words, words + bytes / sizeof(unsigned long));
    return static_cast<int>(syscall(SYS_sched_setaffinity, process, bytes, set));
}

namespace thalweg {
namespace {

TEST(cpu_mask, is_the_kernels) {
    cpu_set_t kernels;
    if (sched_getaffinity(0, sizeof kernels, &kernels) != 0) GTEST_SKIP() << "more than it has bits";
    std::vector<int> expected;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &kernels)) expected.push_back(cpu);
    EXPECT_EQ(numbers_in(mask_of_this_thread()), expected);
}

TEST(cpu_mask, numbers_of_any_word) {
    EXPECT_EQ(numbers_in({}), std::vector<int>{});
    EXPECT_EQ(numbers_in({5, 0, 1}),
              (std::vector<int>{0, 2, static_cast<int>(2 * 8 * sizeof(unsigned long))}));
}

TEST(cpu_mask, a_thread_runs_where_it_says) {
    const CpuMask all = mask_of_this_thread();
    const int first = numbers_in(all).at(0);
    CpuMask one(all.size());
    one[static_cast<std::size_t>(first) / (8 * sizeof(unsigned long))] =
        1ul << static_cast<std::size_t>(first) % (8 * sizeof(unsigned long));
    std::thread([&] {
        EXPECT_TRUE(run_on(one));
        EXPECT_EQ(numbers_in(mask_of_this_thread()), std::vector<int>{first});
        EXPECT_TRUE(run_on(all));
        EXPECT_EQ(mask_of_this_thread(), all);
    }).join();
    EXPECT_FALSE(run_on(CpuMask(all.size()))) << "nowhere";
}

TEST(cpu_mask, a_thread_runs_on_one_of_any_number) {
    const int first = numbers_in(mask_of_this_thread()).at(0);
    std::thread([&] {
        EXPECT_TRUE(run_on(first));
        EXPECT_EQ(numbers_in(mask_of_this_thread()), std::vector<int>{first});
        const int beyond = 3 * CPU_SETSIZE + 5;
        run_on(beyond);  // the kernel refuses where the host has not so many
        EXPECT_EQ(numbers_in(asked), std::vector<int>{beyond});
    }).join();
    EXPECT_FALSE(run_on(-1));
}

}  // namespace
}  // namespace thalweg
