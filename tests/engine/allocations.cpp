// start(), advance() and wait() allocate nothing: counted below operator new, at malloc itself. And what
// there was no memory for may be had later.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "engine/agent.h"
#include "engine/agent_group.h"
#include "engine/execution.h"
#include "engine/random_schedules.h"
#include "transport/borrowed.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define CANNOT_COUNT 1
#else
#define CANNOT_COUNT 0
namespace {
thread_local std::uint64_t allocations = 0, refused = UINT64_MAX;  // the one that fails
bool fails() { return ++allocations == refused; }
}  // namespace
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* malloc(std::size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }
void* calloc(std::size_t count, std::size_t bytes) { return fails() ? nullptr : __libc_calloc(count, bytes); }
void* realloc(void* old, std::size_t bytes) { return fails() ? nullptr : __libc_realloc(old, bytes); }
}
#endif

namespace thalweg {
namespace {

using test::RandomGroup;

TEST(allocations, a_run_of_a_ready_execution_makes_none) {
#if CANNOT_COUNT
    GTEST_SKIP() << "a sanitizer owns malloc";
#else
    constexpr int size = 4;
    const RandomGroup random = RandomGroup::make(size, 200, 500, 3);
    const auto schedules = random.build();
    test::GroupOptions options;
    options.limits.credit_bytes = 2000;  // so that some sends are held
    options.network.max_message_bytes = 200;
    test::Group group(size, options);
    test::Memory memory = random.fill(1);
    std::vector<std::unique_ptr<Execution> > executions;
    for (int rank = 0; rank < size; ++rank) {
        executions.push_back(std::make_unique<Execution>(schedules[rank], group.channel(rank)));
    }
    const std::uint64_t before_all = allocations;
    std::unique_ptr<int> counted(new int(1));
    ASSERT_GT(allocations, before_all) << "the count sees nothing";

    const std::uint64_t before = allocations;
    for (std::uint32_t run = 0; run < 5; ++run) {
        for (int rank = 0; rank < size; ++rank) {
            const Bindings bindings{
                memory.in[rank].data(), memory.out[rank].data(), {&RandomGroup::combine, nullptr, 1}};
            if (executions[rank]->start(bindings, run) != Status::ok) abort();
        }
        for (int running = size; running != 0;) {
            for (auto& execution : executions)
                running -= execution->running() && execution->advance() == Status::ok;
        }
    }
    EXPECT_EQ(allocations, before);
    WaitStatistics statistics;
    for (WaitPolicy policy : {WaitPolicy::spin, WaitPolicy::sleep}) {
        // Alone: a group of one, so that wait() returns without the others.
        Builder builder(0, 1);
        builder.copy({Buffer::out, 0, 10}, {Buffer::in, 0, 10});
        test::Group alone(1, {});
        Execution execution(std::make_shared<const Schedule>(std::move(builder).finish()), alone.channel(0));
        const std::uint64_t before_wait = allocations;
        if (execution.start({memory.in[0].data(), memory.out[0].data(), {}}, 0) != Status::ok) abort();
        if (wait(execution, policy, statistics) != Status::ok) abort();
        EXPECT_EQ(allocations, before_wait);
    }
#endif
}

// Each allocation of its first start fails once.
TEST(allocations, an_agent_that_had_no_memory_starts_later) {
#if CANNOT_COUNT
    GTEST_SKIP() << "a sanitizer owns malloc";
#else
    std::uint64_t failures = 0;
    for (bool failed_once = true; failed_once; ++failures) {
        Agent agent({});
        refused = allocations + failures + 1;
        try {
            (void)agent.start();
        } catch (const std::bad_alloc&) {
        }
        failed_once = allocations >= refused;
        refused = UINT64_MAX;
        ASSERT_EQ(agent.start(), Status::ok) << failures;
        // What comes next is its rest.
        ASSERT_TRUE(test::in_time([&] { return agent.statistics().passes > 0; })) << failures;
        agent.stop();
    }
    EXPECT_GT(failures, sleeper_kinds / 2) << "the count sees nothing";
#endif
}

// A network whose slots take no memory.
class Roomy final : public Borrowed {
  public:
    explicit Roomy(Transport& inner) : Borrowed(inner, [] { return false; }) {}
    Slot slots() const override { return slots_; }
    Status grow(Slot slots) override {
        slots_ = slots;
        return Status::ok;
    }

  private:
    Slot slots_ = 4;
};

// Each allocation for more slots fails once. An operation that may need them all finds them later: without,
// it could wait for ever.
TEST(allocations, slots_that_there_was_no_memory_for_are_had_later) {
#if CANNOT_COUNT
    GTEST_SKIP() << "a sanitizer owns malloc";
#else
    constexpr Slot all = 1000;
    const auto schedule = std::make_shared<const Schedule>(Builder(0, 1).finish());
    std::uint64_t failures = 0;
    for (bool failed_once = true; failed_once; ++failures) {
        InprocNetwork network(1, {});
        Roomy roomy(network.endpoint(0));
        const std::shared_ptr<Channel> channel = make_channel(roomy, {});
        Execution::Impl execution(schedule, channel);
        ASSERT_EQ(channel->enter(execution, 0), Status::ok);
        refused = allocations + failures + 1;
        try {
            channel->provide(all);
        } catch (const std::bad_alloc&) {
        }
        failed_once = allocations >= refused;
        refused = UINT64_MAX;
        channel->provide(all);
        EXPECT_EQ(channel->widen(execution, all + 1), all) << failures;
        channel->leave(execution);
    }
    EXPECT_GT(failures, 2u) << "the count sees nothing";
#endif
}

}  // namespace
}  // namespace thalweg
