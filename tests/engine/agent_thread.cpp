// The agent's thread: where it runs, and when it is the one that ends the process.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/cpu_mask.h"
#include "engine/agent.h"
#include "engine/agent_group.h"
#include "engine/combined_message.h"

namespace thalweg {
namespace {

using test::agent_threads;
using test::AgentGroup;
using test::AgentGroupOptions;
using test::CombinedMessage;
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

// What runs at exit stops the agent, and an MPI library that the agent drives may call exit(): here rank 0's
// reduction stands for that.
TEST(agent, does_not_wait_for_itself_at_the_end_of_a_process) {
    static constexpr std::uint64_t longest_ns = 5'000'000'000;
    AgentGroup group({});
    struct End {
        Agent* agent = nullptr;
        std::atomic<bool> stopped{true};
        std::atomic<std::uint64_t> took_ns{0};
    } end;
    end.agent = &group.agent(0);
    CombinedMessage message(group);
    const auto end_there = [](const void*, const void*, void*, std::size_t, void* context) {
        End& end = *static_cast<End*>(context);
        const std::uint64_t begin_ns = now_ns();
        end.stopped = end.agent->stop_within(longest_ns);
        end.took_ns = now_ns() - begin_ns;
    };
    ASSERT_EQ(message.start(end_there, &end), Status::ok);
    ASSERT_TRUE(in_time([&] { return !message.received.pending() && !message.sent.pending(); }));
    EXPECT_FALSE(end.stopped.load());
    EXPECT_LT(end.took_ns.load(), longest_ns);
    EXPECT_TRUE(group.agent(0).running());
    EXPECT_TRUE(group.agent(0).stop_within(100'000'000'000));
}

}  // namespace
}  // namespace thalweg
