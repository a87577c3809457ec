// with_receipts(): what is moved stays, both ends agree, and the last message of a pair is one of no bytes.
#include "schedule/receipts.h"

#include <gtest/gtest.h>

#include "schedule/samples.h"

using namespace thalweg;
using namespace thalweg::samples;

namespace {

std::vector<Schedule> with(const std::vector<Schedule>& schedules, const Receipts& receipts) {
    std::vector<Schedule> made;
    for (const Schedule& schedule : schedules) made.push_back(with_receipts(schedule, receipts));
    return made;
}

TEST(receipts, every_sample_stays_right) {
    for (const Sample& sample : all)
        for (int size : {1, 2, 3, 7, 8, 13})
            for (std::uint64_t bytes : {0u, 1u, 39u, 40u, 200u, 203u})
                for (const Receipts& receipts : {Receipts{1, 1}, Receipts{16, 8}, Receipts{1000, 8}}) {
                    const auto plain = group(sample.make, size, bytes);
                    const auto made = with(plain, receipts);
                    const Verdict before = check(plain, bytes), after = check(made, bytes);
                    ASSERT_EQ(after.status, Status::ok)
                        << sample.name << " " << size << " " << bytes << after.why;
                    EXPECT_EQ(after.bytes, before.bytes);
                    for (std::uint64_t seed = 0; seed < 4; ++seed)
                        ASSERT_EQ(samples::run(made, bytes, seed), "")
                            << sample.name << " " << size << " " << bytes;
                }
}

// Rank 0 of two sends `messages` messages of `bytes` bytes.
Schedule sender(int messages, std::uint64_t bytes) {
    Builder builder(0, 2);
    for (int i = 0; i < messages; ++i) builder.send(1, out(0, bytes));
    return std::move(builder).finish();
}

TEST(receipts, stand_behind_what_they_confirm_and_are_numbered_last) {
    const Schedule made = with_receipts(sender(5, 100), {200, 100});
    std::vector<std::uint64_t> bytes;
    std::vector<std::uint32_t> numbers;
    for (StepId id = 0; id < made.steps().size(); ++id) {
        const Step& step = made.steps()[id];
        bytes.push_back(step.source.bytes);
        numbers.push_back(step.message);
        ASSERT_EQ(made.after(id).size(), step.source.bytes == 0 ? 1u : 0u);
        if (step.source.bytes == 0) EXPECT_EQ(made.after(id)[0], id - 1);
    }
    EXPECT_EQ(bytes, (std::vector<std::uint64_t>{100, 100, 0, 100, 100, 0, 100, 0}));
    EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 1, 5, 2, 3, 6, 4, 7}));
}

TEST(receipts, are_received_behind_what_they_confirm) {
    Builder builder(1, 2);
    builder.recv(0, out(0, 100));
    builder.recv(0, out(100, 100));
    const Schedule made = with_receipts(std::move(builder).finish(), {100, 100});
    ASSERT_EQ(made.steps().size(), 4u);
    for (StepId id : {1u, 3u}) {
        EXPECT_EQ(made.steps()[id].target.bytes, 0u);
        ASSERT_EQ(made.after(id).size(), 1u);
        EXPECT_EQ(made.after(id)[0], id - 1);
    }
}

TEST(receipts, few_bytes_and_too_many_messages_get_none) {
    EXPECT_EQ(with_receipts(sender(2, 49), {200, 100}).steps().size(), 2u);
    EXPECT_EQ(with_receipts(sender(2, 50), {200, 100}).steps().size(), 3u);
    EXPECT_EQ(with_receipts(sender(1, 100), {200, 100}).steps().size(), 2u);
    constexpr int most = max_messages_per_pair;
    EXPECT_EQ(with_receipts(sender(most, 1), {most, 1}).steps().size(), std::size_t{most});
    EXPECT_EQ(with_receipts(sender(most - 1, 1), {most, 1}).steps().size(), std::size_t{most});
}

TEST(receipts, direct_messages_get_none) {
    Builder builder(0, 2);
    const StepId room = builder.recv(1, {});
    builder.put(1, out(0, 100), {{room}});
    builder.send(1, out(100, 100));
    EXPECT_EQ(with_receipts(std::move(builder).finish(), {1, 1}).steps().size(), 3u);
}

}  // namespace
