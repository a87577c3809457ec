// Targets of broadcasts: which points count, what is the worst, and what is not known counts against.
#include "bench/broadcast_targets.h"

#include <gtest/gtest.h>

namespace thalweg::bench {
namespace {

constexpr std::uint64_t kib = 1024, mib = 1024 * kib;

// Of a limit of 1 s, with an MPI that takes 3 s by itself, of which the algorithm is 2.
Summary line(std::uint64_t bytes, double seconds) {
    Summary made;
    made.collective = "bcast", made.mpi = "mpich", made.shape = "4x1", made.transport = "mpi";
    made.bytes = bytes;
    made.limit_seconds = 1;
    made.ours_seconds = seconds, made.native_seconds = 3, made.twin_seconds = 2;
    made.against_default.value = made.against_best.value = seconds / 3;
    made.decision = Verdict::not_slower;
    return made;
}

BroadcastTarget judged(const std::vector<Summary>& lines, std::string_view target) {
    for (const BroadcastTarget& each : judge_broadcasts(lines))
        if (each.target.starts_with(target)) return each;
    return {};
}

TEST(BroadcastTargets, EachSizeHasItsOwn) {
    const std::vector<Summary> lines{line(64 * kib, 1.9),  line(256 * kib, 1.5), line(mib, 1.21),
                                     line(4 * mib, 1.101), line(16 * mib, 1.1),  line(64 * mib, 9)};
    const BroadcastTarget large = judged(lines, "<= 1.10"), middle = judged(lines, "<= 1.20"),
                          small = judged(lines, "<= 1.5 ");
    EXPECT_EQ(large.points, 2);
    EXPECT_EQ(large.reached, 1);
    EXPECT_EQ(large.worst, "1.10 at 4x1, 4 MiB");
    EXPECT_FALSE(large.met());
    EXPECT_EQ(middle.points, 1);
    EXPECT_FALSE(middle.met());
    EXPECT_EQ(small.points, 1);
    EXPECT_TRUE(small.met());
    EXPECT_EQ(judged(lines, "not slower").points, 5);
}

TEST(BroadcastTargets, WhatWasOnlyScreenedOrIsUndecidedIsNotReached) {
    Summary screened = line(mib, 1);
    screened.screened_only = true;
    EXPECT_FALSE(judged({screened}, "<= 1.20").met());
    Summary undecided = line(mib, 1);
    undecided.decision = Verdict::undecided;
    EXPECT_FALSE(judged({undecided}, "not slower").met());
    EXPECT_TRUE(judged({line(mib, 1)}, "not slower").met());
}

TEST(BroadcastTargets, ItSaysWhatCarriedThemAndWhereNothingDoes) {
    Summary silent = line(mib, 1);
    silent.transport.clear();
    EXPECT_EQ(judged({line(mib, 1), line(mib, 1.1)}, "<= 1.20").carried, "mpi");
    EXPECT_EQ(judged({line(mib, 1), silent}, "<= 1.20").carried, "mpi, not said");
}

// Gains of 3 and 3, of which the algorithm's is 2 and unknown.
TEST(BroadcastTargets, TheMeanSaysWhatTheAlgorithmGainsAtLeast) {
    Summary without = line(4 * mib, 1);
    without.twin_seconds = 0;
    const BroadcastTarget mean = judged({line(mib, 1), without}, "native / Thalweg");
    EXPECT_TRUE(mean.met());
    EXPECT_EQ(mean.worst,
              "3.00 of 2 points; by the algorithm 2.00 of 3.00 at 1, 1.41 if the others had none");
    EXPECT_FALSE(judged({line(mib, 1.6)}, "native / Thalweg").met());
    Summary waits = line(mib, 1);  // three times as fast, and the same algorithm
    waits.twin_seconds = 1;
    EXPECT_FALSE(judged({waits}, "native / Thalweg").met());
    EXPECT_TRUE(judge_broadcasts({}).empty());
    EXPECT_EQ(format_broadcast_targets({}, true), "");
    EXPECT_NE(format_broadcast_targets({mean}, true).find("| reached"), std::string::npos);
}

// Blocking allgathers and allreduces, with the limits of the nonblocking ones.
TEST(BroadcastTargets, BlockingOnesHaveTheLimitsOfNonblockingOnes) {
    const auto of = [](const char* collective, std::uint64_t bytes, double seconds) {
        Summary made = line(bytes, seconds);
        made.collective = collective;
        return made;
    };
    std::vector<Summary> lines{of("allgather", 64 * kib, 1.9), of("allgather", 256 * kib, 1.1),
                               of("allgather", 4 * mib, 1.11), of("allreduce", 256 * kib, 1.9),
                               of("allreduce", mib, 1.25),     of("bcast", mib, 9)};
    lines[2].algorithm = "native";
    auto judged = judge_blocking(lines);
    ASSERT_EQ(judged.size(), 2u);
    EXPECT_EQ(judged[0].target, "allgather <= 1.10 x limit, from 256 KiB");
    EXPECT_EQ(judged[0].points, 2);
    EXPECT_EQ(judged[0].reached, 1);
    EXPECT_EQ(judged[0].worst, "1.11 (left to the MPI) at 4x1, 4 MiB");
    EXPECT_EQ(judged[1].target, "allreduce <= 1.25 x limit, from 1 MiB");
    EXPECT_EQ(judged[1].points, 1);
    EXPECT_TRUE(judged[1].met());
    lines[4].ours_seconds = 1.26;
    EXPECT_FALSE(judge_blocking(lines)[1].met());
    for (Summary& each : lines) each.limit_seconds = 0;  // without a lab
    EXPECT_TRUE(judge_blocking(lines).empty());
}

}  // namespace
}  // namespace thalweg::bench
