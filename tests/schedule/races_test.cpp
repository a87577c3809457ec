// find_race() against all pairs of steps, on random schedules with random order.
#include "schedule/races.h"

#include <gtest/gtest.h>

#include "cpu_time.h"
#include "schedule/samples.h"

using namespace thalweg;
using namespace thalweg::samples;

namespace {

bool conflict(const Step& a, const Step& b) {
    auto reads = [](const Step& step, const Slice& slice) {
        return step.kind != StepKind::recv && overlap(step.source, slice);
    };
    auto writes = [](const Step& step, const Slice& slice) {
        return step.kind != StepKind::send && overlap(step.target, slice);
    };
    return (b.kind != StepKind::send && (reads(a, b.target) || writes(a, b.target))) ||
           (b.kind != StepKind::recv && writes(a, b.source));
}

std::vector<std::vector<bool>> closure(const Schedule& schedule) {
    std::vector<std::vector<bool>> precedes(schedule.steps().size(),
                                            std::vector<bool>(schedule.steps().size()));
    for (StepId id = 0; id < schedule.steps().size(); ++id)
        for (StepId on : schedule.after(id)) {
            precedes[on][id] = true;
            for (StepId earlier = 0; earlier < on; ++earlier)
                if (precedes[earlier][on]) precedes[earlier][id] = true;
        }
    return precedes;
}

TEST(races, found_exactly_where_all_pairs_show_one) {
    oracle::Random random(11);
    int with = 0, without = 0;
    for (int trial = 0; trial < 4000; ++trial) {
        Builder builder(0, 2);
        const auto steps = 2 + random.below(8);
        for (std::uint64_t i = 0; i < steps; ++i) {
            const std::uint64_t from = random.below(12), length = 1 + random.below(12 - from);
            const std::uint64_t kind = random.below(3);
            if (kind == 0) builder.send(1, out(from, length));
            if (kind == 1) builder.recv(1, out(from, length));
            if (kind == 2) builder.copy(out(from, length), {Buffer::in, from, length});
        }
        // Some derived order is lost, some other is added.
        Parts parts(std::move(builder).finish());
        for (StepId id = 0; id < steps; ++id) {
            std::erase_if(parts.after[id], [&](StepId) { return random.below(6) == 0; });
            if (id != 0 && random.below(2) == 0)
                parts.after[id].push_back(static_cast<StepId>(random.below(id)));
        }
        const Schedule schedule = parts.whole();
        const auto precedes = closure(schedule);
        bool expected = false;
        for (StepId b = 0; b < steps; ++b)
            for (StepId a = 0; a < b; ++a)
                expected |= conflict(schedule.steps()[a], schedule.steps()[b]) && !precedes[a][b];
        Race race;
        ASSERT_EQ(find_race(schedule, race), expected) << "trial " << trial;
        ++(expected ? with : without);
        if (!expected) continue;
        EXPECT_TRUE(conflict(schedule.steps()[race.earlier], schedule.steps()[race.later]));
        EXPECT_FALSE(precedes[race.earlier][race.later]);
    }
    EXPECT_GT(with, 500);
    EXPECT_GT(without, 500);
}

TEST(races, order_through_a_long_chain_is_seen_in_seconds) {
    // 20,000 writes, each after the one before only; the second half touches what the first half touched.
    constexpr std::uint64_t steps = 20000;
    Builder builder(0, 2);
    for (std::uint64_t i = 0; i < steps; ++i) builder.recv(1, out(i % (steps / 2) * 8, 8));
    Parts parts(std::move(builder).finish());
    for (StepId id = 1; id < steps; ++id) parts.after[id] = {id - 1};
    const double start = thalweg::test::thread_cpu_seconds();
    Race race;
    EXPECT_FALSE(find_race(parts.whole(), race));
    const double took = thalweg::test::thread_cpu_seconds() - start;
    RecordProperty("seconds", std::to_string(took));
    EXPECT_LT(took, 30.0) << "half a second on an idle core";
    parts.after[steps / 2].clear();
    ASSERT_TRUE(find_race(parts.whole(), race));
    EXPECT_EQ(race.earlier, 0u);
    EXPECT_EQ(race.later, steps / 2);
}

}  // namespace
