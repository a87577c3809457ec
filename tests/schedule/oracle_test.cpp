// The oracle itself: right schedules pass with every seed, wrong ones are named, equal seeds give equal
// verdicts.
#include "oracle/oracle.h"

#include <gtest/gtest.h>

#include "schedule/samples.h"

using namespace thalweg;
using namespace thalweg::samples;

namespace {

TEST(oracle, samples_pass_for_1_to_130_ranks) {
    for (const Sample& sample : all)
        for (int size = 1; size <= 130; ++size)
            for (std::uint64_t bytes : {0, 1, 131}) {
                const auto schedules = group(sample.make, size, bytes);
                for (std::uint64_t seed = 0; seed < 2; ++seed)
                    ASSERT_EQ(samples::run(schedules, bytes, seed), "")
                        << sample.name << " " << size << " " << bytes;
            }
}

TEST(oracle, every_style_of_order_appears_and_is_reproducible) {
    const auto schedules = changed(group(scatter_ring, 6, 60), 3, [](Parts& parts) {
        for (auto& list : parts.after) list.clear();
    });
    int wrong = 0;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const std::string verdict = samples::run(schedules, 60, seed);
        EXPECT_EQ(verdict, samples::run(schedules, 60, seed));
        wrong += !verdict.empty();
    }
    EXPECT_GT(wrong, 25);
}

TEST(oracle, names_rank_and_byte_of_a_wrong_answer) {
    const auto schedules = changed(group(chain, 3, 8), 2, [](Parts& parts) {
        parts.steps[0].target = {Buffer::scratch, 0, 8};
        parts.scratch_bytes = 8;
    });
    const std::string verdict = samples::run(schedules, 8, 1);
    EXPECT_EQ(verdict.rfind("rank 2: byte 0 of 8 is ", 0), 0u) << verdict;
}

TEST(oracle, an_untouched_byte_is_always_wrong) {
    // Poison is the complement of the right answer, so that no byte is right by chance.
    const std::uint64_t bytes = 500;
    for (std::uint64_t missing = 0; missing < bytes; missing += 31) {
        auto build = [&](int rank) {
            Builder builder(rank, 2);
            for (Slice slice : {out(0, missing), out(missing + 1, bytes - missing - 1)}) {
                if (rank == 0)
                    builder.send(1, slice);
                else
                    builder.recv(0, slice);
            }
            return std::move(builder).finish();
        };
        const std::string verdict = samples::run(oracle::all_ranks(2, build), bytes, missing);
        EXPECT_EQ(verdict.rfind("rank 1: byte " + std::to_string(missing) + " of", 0), 0u) << verdict;
    }
}

TEST(oracle, finds_writes_past_the_end) {
    auto schedules = changed(group(staged_chain, 2, 30), 1, [](Parts& parts) { parts.scratch_bytes -= 1; });
    std::string verdict = samples::run(schedules, 30, 1);
    EXPECT_NE(verdict.find("rank 1"), std::string::npos) << verdict;
    EXPECT_NE(verdict.find("of scratch, which has 10"), std::string::npos) << verdict;
    schedules = changed(group(chain, 2, 30), 1, [](Parts& parts) { parts.steps[0].target.offset = 4; });
    verdict = samples::run(schedules, 30, 1);
    EXPECT_EQ(verdict, "rank 1: a step wrote byte 30 of out, which has 30");
    schedules = changed(group(chain, 2, 30), 1, [](Parts& parts) { parts.steps[0].target.offset = 400; });
    verdict = samples::run(schedules, 30, 1);
    EXPECT_NE(verdict.find("rank 1 step 0 (recv from 0, message 0): writes bytes 400 to 430"),
              std::string::npos)
        << verdict;
}

TEST(oracle, finds_steps_that_never_end) {
    auto schedules = group(chain, 3, 8);
    schedules = changed(schedules, 1, [](Parts& parts) { parts.steps[1].message = 1; });
    EXPECT_NE(samples::run(schedules, 8, 1), "");
    auto build = [](int rank) {
        Builder builder(rank, 2);
        const StepId got = builder.recv(1 - rank, out(0, 4));
        builder.send(1 - rank, out(4, 4), std::array{got});
        return std::move(builder).finish();
    };
    const std::string verdict = samples::run(oracle::all_ranks(2, build), 8, 1);
    EXPECT_EQ(verdict, "rank 0 step 0 (recv from 1, message 0): waits for ever, the other end never comes");
}

TEST(oracle, sees_a_send_that_reads_too_late) {
    // The relay's buffer is overwritten without waiting for the send that reads it.
    auto schedules = group(staged_chain, 3, 90);
    schedules = changed(schedules, 1, [](Parts& parts) { std::erase(parts.after[3], StepId{2}); });
    int wrong = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) wrong += !samples::run(schedules, 90, seed).empty();
    EXPECT_GT(wrong, 5);
}

}  // namespace
