// What planned exchanges shall reach, judged by figures that are known.
#include "bench/exchange_targets.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace thalweg::bench {
namespace {

ExchangeLine line_of(const std::string& column, std::uint64_t bytes, double seconds) {
    ExchangeLine line;
    line.mpi = "mpich", line.shape = "4x2", line.rate = "100mbit", line.pattern = "dense";
    line.column = column, line.bytes = bytes, line.seconds = seconds;
    line.samples = 30;
    return line;
}

Ratio ratio(double value, double low, double high) { return {value, {low, high}}; }

const ExchangeTarget* find(const std::vector<ExchangeTarget>& targets, const std::string& start,
                           const std::string& column) {
    const auto found = std::find_if(targets.begin(), targets.end(), [&](const ExchangeTarget& each) {
        return each.target.starts_with(start) && each.column == column;
    });
    return found == targets.end() ? nullptr : &*found;
}

TEST(ExchangeTargets, NearTheLimitFrom32KiBOn) {
    std::vector<ExchangeLine> lines;
    for (const double of_limit : {1.04, 1.09, 1.2}) {
        lines.push_back(line_of("thalweg init", 64 << 10, of_limit * 0.05));
        lines.back().limit_seconds = 0.05;
    }
    lines.push_back(line_of("thalweg init", 16 << 10, 1));  // too small to count
    lines.back().limit_seconds = 0.01;
    const auto targets = judge_exchange(lines, {});
    const ExchangeTarget* const near = find(targets, "<= 1.10 x limit", "thalweg init");
    ASSERT_NE(near, nullptr);
    EXPECT_EQ(near->points, 3);
    EXPECT_EQ(near->reached, 2);
    EXPECT_FALSE(near->met());
    EXPECT_EQ(near->worst, "1.20 at dense, 64 KiB");
}

TEST(ExchangeTargets, NeverSlowerThanTheBestNative) {
    std::vector<ExchangeLine> lines(3, line_of("thalweg", 1024, 1));
    lines[0].of_best = ratio(0.8, 0.7, 0.9);
    lines[1].of_best = ratio(1.05, 0.9, 1.3);
    auto targets = judge_exchange({lines.begin(), lines.begin() + 2}, {});
    const ExchangeTarget* fast = find(targets, "not slower", "thalweg");
    ASSERT_NE(fast, nullptr);
    EXPECT_EQ(fast->undecided, 1);
    EXPECT_TRUE(fast->met());
    lines[2].of_best = ratio(1.2, 1.1, 1.3);
    targets = judge_exchange(lines, {});
    EXPECT_FALSE(find(targets, "not slower", "thalweg")->met());
}

// A call of ours takes 1 s, the native one `gain` times that: nine tenths of what could be gained, at 1.05
// times the limit, are asked for where that is less than the target.
TEST(ExchangeTargets, AMeanCountsByItselfOrByItsCeiling) {
    const auto met = [](double gain, double limit_seconds) {
        ExchangeLine line = line_of("thalweg", 64 << 10, 1);
        line.limit_seconds = limit_seconds;
        line.of_native = ratio(1 / gain, 0, 0);
        return find(judge_exchange({line}, {}), "native / Thalweg", "thalweg")->met();
    };
    EXPECT_TRUE(met(1.31, 0.1));
    EXPECT_TRUE(met(1.1, 0.99));
    EXPECT_FALSE(met(1.1, 0.8));
    EXPECT_TRUE(met(1.2, 0.9));
    EXPECT_FALSE(met(1.2, 0.8));
    EXPECT_FALSE(met(1.1, 0.5));
    EXPECT_FALSE(met(1.29, 0.5));
}

TEST(ExchangeTargets, LeadersSendOneMessagePerPairOfHosts) {
    EXPECT_EQ(packets_by_hosts(4, 2, 256), 3);
    EXPECT_EQ(packets_by_hosts(3, 3, 256), 4);  // 2304 bytes to each of two hosts
    std::vector<ExchangeLine> lines = {line_of("thalweg init node_leader", 256, 1e-3),
                                       line_of("thalweg init spread", 256, 1.6e-3)};
    lines[0].tx_packets = 6.2;
    lines[1].tx_packets = 24;
    auto targets = judge_exchange(lines, {});
    EXPECT_TRUE(find(targets, "aggregation", "thalweg init node_leader")->met());
    const ExchangeTarget* packets = find(targets, "one message", "thalweg init node_leader");
    ASSERT_NE(packets, nullptr);
    EXPECT_TRUE(packets->met());
    EXPECT_EQ(packets->worst, "6.2 for 3 segments (24.0 straight) at dense, 256 B");
    lines[0].tx_packets = 8;
    lines[0].seconds = 1.2e-3;
    targets = judge_exchange(lines, {});
    EXPECT_FALSE(find(targets, "aggregation", "thalweg init node_leader")->met());
    EXPECT_FALSE(find(targets, "one message", "thalweg init node_leader")->met());
}

// 1 KiB on 4 x 2: 9 segments of bundles allow more packets than the 12 messages take that go straight.
TEST(ExchangeTargets, LeadersSendFewerPacketsThanWhatGoesStraight) {
    std::vector<ExchangeLine> lines = {line_of("thalweg init node_leader", 1024, 1e-3),
                                       line_of("thalweg init spread", 1024, 1.6e-3)};
    const auto packets = [&](double by_leaders, double straight) {
        lines[0].tx_packets = by_leaders;
        lines[1].tx_packets = straight;
        return *find(judge_exchange(lines, {}), "one message", "thalweg init node_leader");
    };
    EXPECT_TRUE(packets(9, 16).met());
    EXPECT_FALSE(packets(10, 16).met());
    EXPECT_EQ(packets(10, 16).worst, "10.0 for 9 segments (16.0 straight) at dense, 1 KiB");
    // Not measured, or in another launch: by the segments alone.
    EXPECT_TRUE(packets(10, -1).met());
    EXPECT_EQ(packets(10, -1).worst, "10.0 for 9 segments at dense, 1 KiB");
    EXPECT_FALSE(packets(20, -1).met());
    lines[1].launch = 1;
    EXPECT_TRUE(packets(10, 16).met());
}

TEST(ExchangeTargets, FencesSaveWhatTheirCeilingAllows) {
    WindowLine line;
    line.mpi = "openmpi", line.shape = "4x1", line.pattern = "dense", line.plan = "rma_fence";
    line.bytes = 1024;
    line.reduction = 0.45, line.set_up = 0.5;
    line.pays.calls = 1;
    WindowLine large = line;
    large.bytes = 1 << 20;
    large.reduction = 0.01, large.set_up = 0.12;
    large.pays.calls = never;
    const auto targets = judge_exchange({}, {line, large});
    EXPECT_TRUE(find(targets, "a plan over fences", "rma_fence")->met());
    const ExchangeTarget* const share = find(targets, "80 % of the ceiling", "rma_fence");
    EXPECT_EQ(share->points, 2);
    EXPECT_EQ(share->reached, 1);
    EXPECT_EQ(find(targets, "pays at once", "rma_fence")->worst, "1 KiB");
    EXPECT_NE(format_exchange_targets(targets, true).find("not reached"), std::string::npos);
    EXPECT_EQ(format_exchange_targets({}, true), "");
}

}  // namespace
}  // namespace thalweg::bench
