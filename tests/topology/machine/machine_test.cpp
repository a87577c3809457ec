// This machine against what the kernel says, and made-up machines against their description.
#include "topology/machine/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "topology/placement.h"

using namespace thalweg;

namespace {

LocalMachine here() {
    LocalMachine machine;
    std::string why;
    EXPECT_EQ(describe_machine(machine, why), Status::ok) << why;
    return machine;
}

LocalMachine synthetic(const std::string& description, std::span<const int> usable = {}) {
    LocalMachine machine;
    std::string why;
    EXPECT_EQ(describe_synthetic(description, usable, machine, why), Status::ok) << why;
    return machine;
}

TEST(machine, mask_is_the_kernels) {
    const LocalMachine machine = here();
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    EXPECT_EQ(machine.usable_threads(), CPU_COUNT(&mask));
    for (const HardwareThread& thread : machine.threads)
        EXPECT_EQ(thread.usable, CPU_ISSET(thread.os_index, &mask) != 0) << thread.os_index;
    EXPECT_GE(static_cast<long>(machine.threads.size()), sysconf(_SC_NPROCESSORS_ONLN));
    EXPECT_GE(machine.usable_cores(), 1);
    EXPECT_GT(machine.memory_bytes, 0u);
}

TEST(machine, mask_of_one_thread) {
    cpu_set_t before, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    int chosen = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &before)) chosen = cpu;
    CPU_ZERO(&one);
    CPU_SET(chosen, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const LocalMachine machine = here();
    ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    EXPECT_EQ(machine.usable_threads(), 1);
    EXPECT_EQ(machine.usable_cores(), 1);
    EXPECT_EQ(machine.usable_sibling(chosen), -1);
    EXPECT_NE(machine.to_text().find("may use thread " + std::to_string(chosen) + " (1 core)"),
              std::string::npos)
        << machine.to_text();
}

TEST(machine, siblings_are_the_kernels) {
    const LocalMachine machine = here();
    for (const HardwareThread& thread : machine.threads) {
        std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(thread.os_index) +
                           "/topology/thread_siblings_list");
        std::string text;
        if (!std::getline(file, text)) GTEST_SKIP() << "the kernel shows no siblings";
        if (text.find_first_of(",-") == text.npos)
            EXPECT_TRUE(machine.siblings(thread.os_index).empty());
        else
            EXPECT_FALSE(machine.siblings(thread.os_index).empty());
    }
}

TEST(machine, made_up_machines) {
    const LocalMachine machine = synthetic("pack:2 numa:1 core:4 pu:2");
    EXPECT_EQ(machine.packages, 2);
    EXPECT_EQ(machine.numa_domains, 2);
    EXPECT_EQ(machine.cores, 8);
    ASSERT_EQ(machine.threads.size(), 16u);
    EXPECT_EQ(machine.threads[9], (HardwareThread{9, 4, 1, 1, true}));
    EXPECT_EQ(machine.siblings(8), std::vector<int>{9});
    EXPECT_EQ(machine.siblings(99), std::vector<int>{});
    EXPECT_EQ(machine.to_text(),
              "2 packages, 8 cores, 16 threads, 2 NUMA domains; this process may use threads 0-15 (8 cores)");
    EXPECT_EQ(synthetic("core:2 pu:1").siblings(0), std::vector<int>{});
}

TEST(machine, an_agent_lives_only_where_the_mask_allows) {
    const LocalMachine machine = synthetic("pack:1 core:4 pu:2", std::array{0, 1, 2, 6});
    EXPECT_EQ(machine.usable_threads(), 4);
    EXPECT_EQ(machine.usable_cores(), 3);
    EXPECT_EQ(machine.usable_sibling(0), 1);
    EXPECT_EQ(machine.usable_sibling(2), -1) << "3 belongs to somebody else";
    EXPECT_EQ(machine.siblings(2), std::vector<int>{3});
    EXPECT_NE(machine.to_text().find("threads 0-2,6 (3 cores)"), std::string::npos) << machine.to_text();
}

// What the agent's placement reads inside a program is what hwloc sees.
TEST(machine, the_kernels_own_description_agrees) {
    std::vector<HardwareThread> read;
    if (own_hardware_threads(read) != Status::ok) GTEST_SKIP() << "the kernel shows no siblings";
    const LocalMachine machine = here();
    for (const HardwareThread& thread : machine.threads) {
        const auto same =
            std::find_if(read.begin(), read.end(), [&](auto& it) { return it.os_index == thread.os_index; });
        ASSERT_TRUE(!thread.usable || same != read.end()) << thread.os_index;
        if (same == read.end()) continue;
        EXPECT_EQ(same->usable, thread.usable) << thread.os_index;
        for (int sibling : machine.siblings(thread.os_index)) {
            const auto other =
                std::find_if(read.begin(), read.end(), [&](auto& it) { return it.os_index == sibling; });
            ASSERT_NE(other, read.end()) << sibling;
            EXPECT_EQ(other->core, same->core);
        }
    }
}

TEST(machine, where_an_agent_lives_on_made_up_machines) {
    struct Case {
        const char* machine;
        std::vector<int> mask;
        int home;
        AgentPlace place;
        int hardware_thread;
    };
    const Case cases[] = {
        // A rank per core: beside it. A rank per hardware thread, or no SMT: nowhere but with it.
        {"pack:2 numa:1 core:4 pu:2", {2, 3}, 2, AgentPlace::sibling, 3},
        {"pack:2 numa:1 core:4 pu:2", {3}, 3, AgentPlace::anywhere, -1},
        {"pack:1 core:8 pu:1", {0, 1, 2, 3, 4, 5, 6, 7}, 3, AgentPlace::anywhere, -1},
        // A rank per NUMA domain, on its second core.
        {"pack:2 numa:2 core:2 pu:2", {4, 5, 6, 7}, 6, AgentPlace::sibling, 7},
        // Four threads a core; a cgroup that took the first ones.
        {"pack:1 core:2 pu:4", {2, 3, 6, 7}, 3, AgentPlace::sibling, 2},
        // Halves of two cores: no core of it has two threads.
        {"pack:1 core:4 pu:2", {0, 2, 4, 6}, 4, AgentPlace::anywhere, -1},
    };
    for (const Case& one : cases) {
        const LocalMachine machine = synthetic(one.machine, one.mask);
        const AgentPlacement placement =
            place_agent(AgentSetting::automatic, {machine.threads, one.home, 1, false});
        EXPECT_EQ(placement.place, one.place) << one.machine << ", home " << one.home;
        EXPECT_EQ(placement.hardware_thread, one.hardware_thread) << one.machine << ", home " << one.home;
        if (one.place == AgentPlace::sibling) {
            EXPECT_EQ(machine.usable_sibling(one.home), placement.hardware_thread);
        }
    }
}

TEST(machine, a_bad_description_is_one_sentence) {
    LocalMachine machine;
    machine.cores = 77;
    std::string why;
    EXPECT_EQ(describe_synthetic("pack:two", {}, machine, why), Status::invalid_argument);
    EXPECT_EQ(machine.cores, 77);
    EXPECT_NE(why.find("\"pack:two\""), std::string::npos) << why;
}

}  // namespace
