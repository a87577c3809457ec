// The builder writes exactly the order that data flow demands.
#include "schedule/builder.h"

#include <gtest/gtest.h>

#include "cpu_time.h"
#include "schedule/samples.h"

using namespace thalweg;
using namespace thalweg::samples;

namespace {

std::vector<StepId> after(const Schedule& schedule, StepId step) {
    std::vector<StepId> list(schedule.after(step).begin(), schedule.after(step).end());
    std::sort(list.begin(), list.end());
    return list;
}

using Ids = std::vector<StepId>;

TEST(builder, readers_follow_writers_and_writers_follow_readers) {
    Builder builder(0, 4);
    builder.recv(1, out(0, 10));   // 0
    builder.send(2, out(0, 10));   // 1: reads what 0 wrote
    builder.send(3, out(5, 5));    // 2: reads too, beside 1
    builder.recv(1, out(0, 10));   // 3: overwrites what 1 and 2 read
    builder.send(2, out(9, 1));    // 4
    builder.recv(3, out(10, 10));  // 5: other bytes
    const Schedule schedule = std::move(builder).finish();
    EXPECT_EQ(after(schedule, 0), Ids{});
    EXPECT_EQ(after(schedule, 1), Ids{0});
    EXPECT_EQ(after(schedule, 2), Ids{0});
    EXPECT_EQ(after(schedule, 3), (Ids{1, 2}));
    EXPECT_EQ(after(schedule, 4), Ids{3});
    EXPECT_EQ(after(schedule, 5), Ids{});
}

TEST(builder, writes_to_one_byte_are_ordered) {
    Builder builder(0, 2);
    builder.recv(1, out(0, 10));
    builder.recv(1, out(9, 10));
    builder.recv(1, out(19, 1));
    const Schedule schedule = std::move(builder).finish();
    EXPECT_EQ(after(schedule, 1), Ids{0});
    EXPECT_EQ(after(schedule, 2), Ids{}) << "bytes 0 to 18 were written, 19 was not";
}

TEST(builder, buffers_do_not_mix_and_scratch_slices_share_no_cache_line) {
    Builder builder(0, 2);
    const Slice a = builder.scratch(10), b = builder.scratch(100);
    EXPECT_EQ(a.offset, 0u);
    EXPECT_EQ(b.offset, 64u);
    builder.copy(a, {Buffer::in, 0, 10});
    builder.copy(out(0, 10), a);
    builder.send(1, {Buffer::in, 0, 10});
    builder.recv(1, b);
    const Schedule schedule = std::move(builder).finish();
    EXPECT_EQ(after(schedule, 1), Ids{0});
    EXPECT_EQ(after(schedule, 2), Ids{});
    EXPECT_EQ(after(schedule, 3), Ids{});
    EXPECT_EQ(schedule.scratch_bytes(), 164u);
}

TEST(builder, explicit_order_is_kept_and_named_once) {
    Builder builder(0, 3);
    const StepId first = builder.recv(1, out(0, 10));
    const StepId second = builder.send(2, out(0, 10), std::array{first, first});
    builder.send(2, out(20, 10), std::array{first, second});
    const Schedule schedule = std::move(builder).finish();
    EXPECT_EQ(after(schedule, 1), Ids{0});
    EXPECT_EQ(after(schedule, 2), (Ids{0, 1}));
}

TEST(builder, numbers_the_messages_of_each_pair_and_direction) {
    Builder builder(0, 3);
    for (int i = 0; i < 3; ++i) {
        builder.send(1, out(0, 1));
        builder.send(2, out(0, 0));
        builder.recv(1, out(10, 1));
    }
    const Schedule schedule = std::move(builder).finish();
    for (StepId id = 0; id < 9; ++id) EXPECT_EQ(schedule.steps()[id].message, id / 3);
}

TEST(builder, append_renames_ranks_and_orders_the_part_behind_what_it_needs) {
    Builder part(1, 2);
    const Slice stage = part.scratch(10);
    part.recv(0, stage);
    part.copy(out(0, 10), stage);
    const Schedule inner = std::move(part).finish();

    Builder builder(5, 8);
    builder.scratch(1);
    builder.send(7, out(0, 10));
    builder.recv(3, out(20, 10));
    builder.append(inner, std::array{3, 5});
    builder.append(inner, std::array{3, 5});
    const Schedule schedule = std::move(builder).finish();
    ASSERT_EQ(schedule.steps().size(), 6u);
    EXPECT_EQ(schedule.steps()[2].peer, 3);
    EXPECT_EQ(schedule.steps()[2].message, 1u);
    EXPECT_EQ(schedule.steps()[4].message, 2u);
    EXPECT_EQ(schedule.steps()[2].target.offset, 64u);
    EXPECT_EQ(schedule.steps()[4].target.offset, 128u) << "each part has scratch of its own";
    EXPECT_EQ(after(schedule, 2), Ids{});
    EXPECT_EQ(after(schedule, 3), (Ids{0, 2})) << "writes what step 0 sends";
    EXPECT_EQ(after(schedule, 4), Ids{});
    EXPECT_EQ(after(schedule, 5), (Ids{3, 4}));
}

// Every pair of steps that touch one byte, one of them writing, is ordered; tried against all pairs.
TEST(builder, random_schedules_have_no_unordered_conflict) {
    oracle::Random random(7);
    for (int trial = 0; trial < 300; ++trial) {
        Builder builder(0, 2);
        builder.scratch(40);
        auto slice = [&](bool writable) {
            const auto buffer = static_cast<Buffer>(writable ? 1 + random.below(2) : random.below(3));
            const std::uint64_t from = random.below(40);
            return Slice{buffer, from, 1 + random.below(40 - from)};
        };
        for (int i = 0; i < 40; ++i) {
            const std::uint64_t kind = random.below(3);
            if (kind == 0) builder.send(1, slice(false));
            if (kind == 1) builder.recv(1, slice(true));
            if (kind == 2) {
                const Slice target = slice(true);
                Slice source = slice(false);
                if (overlap(source, target)) source.buffer = Buffer::in;
                source.offset = std::min(source.offset, 40 - target.bytes);
                source.bytes = target.bytes;
                if (overlap(source, target)) source.buffer = Buffer::in;
                if (random.below(2))
                    builder.copy(target, source);
                else
                    builder.reduce(target, source);
            }
        }
        const Schedule schedule = std::move(builder).finish();
        const auto steps = schedule.steps();
        std::vector<std::vector<bool>> precedes(steps.size(), std::vector<bool>(steps.size()));
        for (StepId id = 0; id < steps.size(); ++id)
            for (StepId on : schedule.after(id)) {
                precedes[on][id] = true;
                for (StepId earlier = 0; earlier < on; ++earlier)
                    if (precedes[earlier][on]) precedes[earlier][id] = true;
            }
        auto reads = [](const Step& step, const Slice& slice) {
            return step.kind != StepKind::recv && overlap(step.source, slice);
        };
        auto writes = [](const Step& step, const Slice& slice) {
            return step.kind != StepKind::send && overlap(step.target, slice);
        };
        for (StepId b = 0; b < steps.size(); ++b)
            for (StepId a = 0; a < b; ++a) {
                bool conflict = false;
                if (steps[b].kind != StepKind::send)
                    conflict |= reads(steps[a], steps[b].target) || writes(steps[a], steps[b].target);
                if (steps[b].kind != StepKind::recv) conflict |= writes(steps[a], steps[b].source);
                ASSERT_TRUE(!conflict || precedes[a][b])
                    << "trial " << trial << ": steps " << a << " and " << b;
                // and nothing is ordered that does not conflict
                for (StepId on : schedule.after(b)) ASSERT_TRUE(on != a || conflict);
            }
    }
}

// What an alltoallv sends may overlap: each peer gets a longer part of one array.
TEST(builder, sends_that_overlap_take_a_step_each) {
    constexpr std::uint64_t sends = 8192;
    double best = 1e9;
    for (int repeat = 0; repeat < 3; ++repeat) {
        const double start = thalweg::test::thread_cpu_seconds();
        Builder builder(0, 2);
        for (std::uint64_t i = 1; i <= sends; ++i) builder.send(1, {Buffer::in, 0, 8 * i});
        const Schedule schedule = std::move(builder).finish();
        ASSERT_EQ(schedule.steps().size(), sends);
        best = std::min(best, thalweg::test::thread_cpu_seconds() - start);
    }
    RecordProperty("milliseconds", std::to_string(best * 1e3));
    EXPECT_LT(best, 0.02) << "a look at all shorter ones is one at 33 million runs";
}

TEST(builder, a_relay_of_4096_chunks_takes_about_a_millisecond) {
    double best = 1e9;
    for (int repeat = 0; repeat < 20; ++repeat) {
        const double start = thalweg::test::thread_cpu_seconds();
        Builder builder(1, 3);
        for (std::uint64_t chunk = 0; chunk < 4096; ++chunk) {
            builder.recv(0, out(chunk << 16, 1 << 16));
            builder.send(2, out(chunk << 16, 1 << 16));
        }
        const Schedule schedule = std::move(builder).finish();
        ASSERT_EQ(schedule.steps().size(), 8192u);
        best = std::min(best, thalweg::test::thread_cpu_seconds() - start);
    }
    RecordProperty("milliseconds", std::to_string(best * 1e3));
    EXPECT_LT(best, 0.02) << "0.5 ms in a release build; 40 times that is a defect, not a slow machine";
}

}  // namespace
