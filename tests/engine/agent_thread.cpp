// The agent's thread: where it runs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/cpu_mask.h"
#include "engine/agent.h"
#include "engine/agent_group.h"

namespace thalweg {
namespace {

using test::agent_threads;
using test::AgentGroup;
using test::AgentGroupOptions;
using test::in_time;

// A program may bind the thread that makes it, as OpenMP does with all that compute.
TEST(agent, runs_where_the_process_may_and_not_where_its_maker_is_bound) {
    const CpuMask all = mask_of_this_thread();
    const std::vector<int> cpus = numbers_in(all);
    if (cpus.size() < 2) GTEST_SKIP() << "this process may run on one core only";
    const auto allowed = [](const std::string& thread) {
        return test::status_of(thread, "Cpus_allowed_list");
    };
    const std::string everywhere = allowed(std::to_string(getpid()));
    constexpr std::size_t bits = 8 * sizeof(unsigned long);
    CpuMask one(all.size());
    one[static_cast<std::size_t>(cpus[0]) / bits] = 1ul << static_cast<std::size_t>(cpus[0]) % bits;
    AgentGroupOptions options;
    options.size = 1;
    options.agent.mask = all;
    AgentGroup group(options);
    std::thread([&] {
        EXPECT_TRUE(run_on(one));
        EXPECT_EQ(group.agent(0).start(), Status::ok);
    }).join();
    ASSERT_TRUE(in_time([] { return agent_threads().size() == 1; }));
    const std::string thread = agent_threads()[0];
    EXPECT_TRUE(in_time([&] { return allowed(thread) == everywhere; })) << allowed(thread);
}

}  // namespace
}  // namespace thalweg
