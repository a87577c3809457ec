// Where the agent lives, on machines written down here. Those that hwloc makes up are in machine/.
#include "topology/placement.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cpu_time.h"

namespace thalweg {
namespace {

// `cores` cores of `per_core` threads, numbered as Linux does: first threads of all cores, then second ones.
std::vector<HardwareThread> machine(int cores, int per_core, const std::vector<int>& mask) {
    std::vector<HardwareThread> threads;
    for (int i = 0; i < cores * per_core; ++i) threads.push_back({i, i % cores, -1, -1, false});
    for (int cpu : mask) threads[static_cast<std::size_t>(cpu)].usable = true;
    return threads;
}

AgentPlacement place(AgentSetting wanted, const std::vector<HardwareThread>& threads, int home,
                     int computing = 1, bool shared = false) {
    return place_agent(wanted, {threads, home, computing, shared});
}

TEST(placement, the_sibling_of_the_ranks_own_core) {
    const auto threads = machine(4, 2, {1, 5});
    const AgentPlacement made = place(AgentSetting::automatic, threads, 1);
    EXPECT_EQ(made.place, AgentPlace::sibling);
    EXPECT_EQ(made.hardware_thread, 5);
    EXPECT_EQ(place(AgentSetting::sibling, threads, 5).hardware_thread, 1);
    // Of a mask of several cores, that of the core it computes on.
    EXPECT_EQ(place(AgentSetting::automatic, machine(4, 2, {0, 1, 4, 5}), 1).hardware_thread, 5);
    // Not known where: some core of its own.
    EXPECT_EQ(place(AgentSetting::automatic, machine(4, 2, {0, 1, 4, 5}), -1).hardware_thread, 4);
    EXPECT_EQ(place(AgentSetting::automatic, machine(2, 4, {0, 2, 4, 6}), 4).hardware_thread, 0);
}

TEST(placement, never_a_hardware_thread_outside_the_mask) {
    const AgentPlacement made = place(AgentSetting::automatic, machine(4, 2, {1}), 1);
    EXPECT_EQ(made.place, AgentPlace::anywhere);
    EXPECT_EQ(made.hardware_thread, -1);
    EXPECT_STREQ(made.why, "the other hardware thread of its core is not in the rank's mask");
    EXPECT_EQ(place(AgentSetting::sibling, machine(4, 2, {1, 2}), -1).place, AgentPlace::anywhere);
    for (int home = 0; home < 8; ++home) {
        for (AgentSetting wanted : {AgentSetting::automatic, AgentSetting::sibling, AgentSetting::core}) {
            for (unsigned bits = 1; bits < 256; ++bits) {
                std::vector<int> mask;
                for (int cpu = 0; cpu < 8; ++cpu)
                    if (bits >> cpu & 1) mask.push_back(cpu);
                const auto threads = machine(4, 2, mask);
                for (int computing = 1; computing <= 5; ++computing) {
                    const AgentPlacement one = place(wanted, threads, home, computing);
                    if (one.hardware_thread < 0) continue;
                    EXPECT_TRUE(threads[static_cast<std::size_t>(one.hardware_thread)].usable);
                    EXPECT_NE(one.hardware_thread, home);
                }
            }
        }
    }
}

TEST(placement, not_where_the_program_computes) {
    const auto threads = machine(4, 2, {0, 1, 4, 5});
    EXPECT_EQ(place(AgentSetting::automatic, threads, 0, 2).place, AgentPlace::sibling);
    EXPECT_EQ(place(AgentSetting::automatic, threads, 0, 3).place, AgentPlace::anywhere);
    EXPECT_EQ(place(AgentSetting::core, threads, 0, 2).place, AgentPlace::anywhere);
    const AgentPlacement spare = place(AgentSetting::core, threads, 0, 1);
    EXPECT_EQ(spare.place, AgentPlace::core);
    EXPECT_EQ(spare.hardware_thread, 1);
    EXPECT_EQ(place(AgentSetting::core, threads, 1, 1).hardware_thread, 0);
}

TEST(placement, not_where_other_ranks_may_run) {
    const auto threads = machine(4, 2, {0, 1, 2, 3, 4, 5, 6, 7});
    for (AgentSetting wanted : {AgentSetting::automatic, AgentSetting::sibling, AgentSetting::core})
        EXPECT_EQ(place(wanted, threads, 0, 1, true).place, AgentPlace::anywhere);
}

TEST(placement, what_is_asked_for) {
    const auto threads = machine(4, 2, {1, 5});
    EXPECT_EQ(place(AgentSetting::off, threads, 1).place, AgentPlace::none);
    EXPECT_EQ(place(AgentSetting::sleep, threads, 1).place, AgentPlace::anywhere);
    EXPECT_EQ(place(AgentSetting::automatic, {}, 1).place, AgentPlace::anywhere);
    // Without SMT.
    EXPECT_EQ(place(AgentSetting::automatic, machine(4, 1, {0, 1, 2, 3}), 0).place, AgentPlace::anywhere);
    EXPECT_EQ(place(AgentSetting::core, machine(4, 1, {0, 1, 2, 3}), 0).hardware_thread, 3);
    EXPECT_STREQ(name_of(AgentPlace::sibling), "sibling");
}

TEST(placement, lists_of_cpus) {
    std::vector<int> cpus;
    EXPECT_TRUE(parse_cpu_list("0-2,6", cpus));
    EXPECT_EQ(cpus, (std::vector<int>{0, 1, 2, 6}));
    EXPECT_TRUE(parse_cpu_list("7", cpus));
    EXPECT_EQ(cpus, std::vector<int>{7});
    for (const char* bad : {"", "a", "1-", "3-1", "1,,2", "-1", "1;2", "0-99999999999"}) {
        EXPECT_FALSE(parse_cpu_list(bad, cpus)) << bad;
        EXPECT_EQ(cpus, std::vector<int>{7});
    }
}

// A made-up description: every thread of the real mask shares a core with thread 1000 + itself.
TEST(placement, siblings_are_read_from_the_kernels_description) {
    char folder[] = "/tmp/thalweg-placement-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    std::vector<HardwareThread> real, threads;
    EXPECT_EQ(own_hardware_threads(threads, folder), Status::unsupported);
    ASSERT_EQ(own_hardware_threads(real), Status::ok);
    int usable = 0;
    for (const HardwareThread& thread : real) {
        if (!thread.usable) continue;
        ++usable;
        const auto topology =
            std::filesystem::path(folder) / ("cpu" + std::to_string(thread.os_index)) / "topology";
        std::filesystem::create_directories(topology);
        std::ofstream(topology / "thread_siblings_list")
            << thread.os_index << "," << 1000 + thread.os_index << "\n";
    }
    ASSERT_EQ(own_hardware_threads(threads, folder), Status::ok);
    ASSERT_EQ(threads.size(), 2u * static_cast<unsigned>(usable));
    for (int i = 0; i < usable; ++i) {
        EXPECT_TRUE(threads[static_cast<std::size_t>(i)].usable);
        EXPECT_FALSE(threads[static_cast<std::size_t>(i + usable)].usable);
        EXPECT_EQ(threads[static_cast<std::size_t>(i)].core,
                  threads[static_cast<std::size_t>(i + usable)].core);
    }
    std::filesystem::remove_all(folder);
}

// Of a mask that is not the caller's: that of the process, whose calling thread is bound by then.
TEST(placement, hardware_threads_are_those_of_the_mask) {
    char folder[] = "/tmp/thalweg-placement-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    for (int cpu = 0; cpu < 4; ++cpu) {
        const auto topology = std::filesystem::path(folder) / ("cpu" + std::to_string(cpu)) / "topology";
        std::filesystem::create_directories(topology);
        std::ofstream(topology / "thread_siblings_list") << cpu % 2 << "," << cpu % 2 + 2 << "\n";
    }
    std::vector<HardwareThread> threads;
    EXPECT_EQ(own_hardware_threads(threads, folder, CpuMask{}), Status::unsupported);
    ASSERT_EQ(own_hardware_threads(threads, folder, CpuMask{0b0111}), Status::ok);
    ASSERT_EQ(threads.size(), 4u);
    for (int cpu = 0; cpu < 4; ++cpu) {
        const HardwareThread& thread = threads[static_cast<std::size_t>(cpu)];
        EXPECT_EQ(thread.os_index, cpu);
        EXPECT_EQ(thread.core, cpu % 2);
        EXPECT_EQ(thread.usable, cpu != 3);
    }
    std::filesystem::remove_all(folder);
}

TEST(placement, threads_that_compute_are_counted) {
    const char* const two[] = {"A=b", "OMP_NUM_THREADS=2", nullptr};
    EXPECT_EQ(computing_threads(nullptr), 1);
    EXPECT_GE(computing_threads(two), 2);
    while (test::thread_cpu_seconds() < 0.1) {
    }
    // As much as this thread, however long the machine takes for it.
    const double much_seconds = test::thread_cpu_seconds();
    std::atomic<bool> ends{false}, computed{false};
    const auto wait_for = [](const std::atomic<bool>& event) {
        while (!event) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    };
    std::thread sleeps([&] { wait_for(ends); });
    std::thread computes([&] {
        while (test::thread_cpu_seconds() < much_seconds) {
        }
        computed = true;
        wait_for(ends);
    });
    wait_for(computed);
    const int counted = computing_threads(nullptr);
    ends = true;
    computes.join();
    sleeps.join();
    EXPECT_EQ(counted, 2);
}

}  // namespace
}  // namespace thalweg
