// What communicators keep between their calls, bounded for the process.
#include "plan/kept_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../cpu_time.h"

namespace thalweg {
namespace {

constexpr std::size_t room = 64 << 10;

// A call that packs `room` bytes.
void use(KeptMemory& memory) {
    const KeptMemory::InUse in_use(memory);
    ASSERT_EQ(memory.staging.reserve(room), Status::ok);
    memory.staging.piece(room);
}

class kept_memory : public testing::Test {
  protected:
    ~kept_memory() override { KeptMemory::set_limit(~std::uint64_t{0}); }
};

TEST_F(kept_memory, what_was_not_used_for_longest_goes_first) {
    KeptMemory::set_limit(2 * room);
    KeptMemory nothing, first;
    auto second = std::make_unique<KeptMemory>();
    auto third = std::make_unique<KeptMemory>();
    use(first);
    use(*second);
    use(first);
    use(*third);
    EXPECT_EQ(first.staging.resident_bytes(), room);
    EXPECT_EQ(second->staging.resident_bytes(), 0u);
    EXPECT_EQ(third->staging.resident_bytes(), room);
    EXPECT_EQ(KeptMemory::total(), 2 * room);
    second.reset();
    third.reset();
    EXPECT_EQ(KeptMemory::total(), room);
    {
        const KeptMemory::InUse in_use(first);
        KeptMemory::give_up_idle();
        EXPECT_EQ(first.staging.resident_bytes(), room) << "its call goes on";
    }
    KeptMemory::give_up_idle();
    EXPECT_EQ(first.staging.resident_bytes(), 0u);
    EXPECT_EQ(KeptMemory::total(), 0u);
}

// Of ten thousand communicators 64 may run schedules at a time.
TEST_F(kept_memory, who_keeps_nothing_is_not_looked_at) {
    constexpr int idle = 100'000, calls = 2'000;
    KeptMemory::set_limit(room / 2);  // each call ends with a look for what can go
    KeptMemory busy;
    std::vector<std::unique_ptr<KeptMemory>> others;
    for (int i = 0; i < idle; ++i) {
        others.push_back(std::make_unique<KeptMemory>());
        const KeptMemory::InUse in_use(*others.back());
    }
    const double begin = test::thread_cpu_seconds();
    for (int call = 0; call < calls; ++call) use(busy);
    EXPECT_LT(test::thread_cpu_seconds() - begin, 0.5);
    EXPECT_EQ(busy.staging.resident_bytes(), room) << "of the call that has just ended";
}

}  // namespace
}  // namespace thalweg
