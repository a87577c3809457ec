// Overlap: the two definitions, which rows are compared, the limits, and how targets are judged.
#include <gtest/gtest.h>

#include "bench/columns.h"
#include "bench/document.h"
#include "bench/overlap_table.h"
#include "bench/table.h"
#include "bench/waiters.h"
#include "launch_row.h"

namespace thalweg::bench {
namespace {

using Values = std::vector<double>;

// 2 hosts, 1 rank each, 1 MB/s, nothing for free: 256 KiB per rank take 0.262144 s at least.
Row row(std::string_view column, std::uint64_t launch, double pure, double computed, double total) {
    const MeasuredOn on{.shape = "2x1", .rate = "8mbit", .hosts = 2, .ranks = 2};
    Row row = launch_row(on, "iallgather", overlap_phase, column, launch, 256 << 10, Values(5, pure));
    row.context["environment"] = "";
    row.context["settings"]["THALWEG_LAB_RATE_BYTES_PER_S"] = "1000000";
    const nlohmann::json equal{{"seconds", pure},
                               {"total", Values(5, total)},
                               {"compute", Values(5, computed)},
                               {"delay_seconds", 0.001},
                               {"lost", 2},
                               {"softirq_seconds", 0.002},
                               {"crossed_meanwhile", 0.75}};
    row.overlap = {{"compute", "arithmetic"},
                   {"pure_mean", Values(5, pure)},
                   {"total", Values(5, total)},
                   {"computed", Values(5, computed)},
                   {"visible", Values(5, total - computed)},
                   {"worst_pure", Values(5, pure)},
                   {"worst_computed", Values(5, computed)},
                   {"worst_total", Values(5, total)},
                   {"tests", 0},
                   {"agent_cpu_seconds", 0.01},
                   {"agent_wake_ups", 40},
                   {"other_cpu_seconds", 0},
                   {"other_wake_ups", 0},
                   {"equal", {{"arithmetic", equal}}}};
    if (column == automatic) row.algorithm = "ring";
    return row;
}

std::vector<Row> point(double ours_computed, double ours_total) {
    return {row(native_default, 1, 0.28, 0.28, 0.56), row(native_blocking, 1, 0.28, 0.28, 0.56),
            row(socket_reference, 1, 0.27, 0.28, 0.29), row(no_traffic, 1, 0, 0.27, 0.27),
            row(automatic, 1, 0.28, ours_computed, ours_total)};
}

const OverlapLine& line_of(const std::vector<OverlapLine>& lines, std::string_view column) {
    for (const auto& line : lines)
        if (line.column == column) return line;
    throw std::out_of_range(std::string(column));
}

const TargetLine& target_of(const std::vector<TargetLine>& lines, std::string_view begin) {
    for (const auto& line : lines)
        if (line.target.starts_with(begin)) return line;
    throw std::out_of_range(std::string(begin));
}

TEST(Overlap, OsuCountsWhatIsVisibleImbWhatIsSaved) {
    // All of it hides, a half, nothing.
    EXPECT_DOUBLE_EQ(osu_overlap(2, 2, 2), 100);
    EXPECT_DOUBLE_EQ(osu_overlap(2, 2, 3), 50);
    EXPECT_DOUBLE_EQ(osu_overlap(2, 2, 4), 0);
    EXPECT_DOUBLE_EQ(imb_overlap(2, 2, 2), 100);
    EXPECT_DOUBLE_EQ(imb_overlap(2, 2, 3), 50);
    EXPECT_DOUBLE_EQ(imb_overlap(2, 2, 4), 0);
    // A computation that slowed down hides in OSU's figure and lowers IMB's.
    EXPECT_DOUBLE_EQ(osu_overlap(2, 4, 4), 100);
    EXPECT_DOUBLE_EQ(imb_overlap(2, 4, 4), 50);
    // Neither leaves its range, and no communication hides nowhere.
    EXPECT_DOUBLE_EQ(osu_overlap(2, 2, 9), 0);
    EXPECT_DOUBLE_EQ(imb_overlap(2, 2, 1), 100);
    EXPECT_DOUBLE_EQ(osu_overlap(0, 2, 2), 0);
}

TEST(Overlap, LimitsFollowTheCollective) {
    Row each = row(automatic, 1, 1, 1, 1);
    each.context["settings"]["THALWEG_LAB_LATENCY_S"] = "0.5";
    EXPECT_DOUBLE_EQ(limit_seconds(each), 0.262144 + 0.5);
    each.context["hosts"] = 4;
    each.context["ranks"] = 8;
    EXPECT_DOUBLE_EQ(necessary_link_bytes(each), 6 * 262144.0);
    each.collective = "iallreduce";
    EXPECT_DOUBLE_EQ(necessary_link_bytes(each), 1.5 * 262144);
    EXPECT_DOUBLE_EQ(limit_seconds(each), 1.5 * 0.262144 + 1);
    each.collective = "ibcast";
    EXPECT_DOUBLE_EQ(necessary_link_bytes(each), 262144);
    each.context["hosts"] = 1;
    EXPECT_EQ(limit_seconds(each), 0);
    OverlapLine in_the_bucket;
    in_the_bucket.pure_seconds = 1e-3;
    in_the_bucket.limit_seconds = 3e-6;
    EXPECT_EQ(in_the_bucket.of_limit(), 0);
}

// Sums of doubles are declined by default: tables say of what the measured ones are.
TEST(Overlap, ReductionsSayOfWhatTheyAre) {
    std::vector<Row> rows = point(0.28, 0.29);
    EXPECT_EQ(line_of(summarize_overlap(rows), automatic).operation(), "iallgather");
    for (Row& each : rows) each.collective = "iallreduce";
    EXPECT_EQ(line_of(summarize_overlap(rows), automatic).operation(), "iallreduce of int64");
    for (Row& each : rows) each.element = "float32";
    const auto lines = summarize_overlap(rows);
    for (const std::string& table :
         {format_hidden(lines, true), format_cost(lines, true), format_targets(judge(lines), true)})
        EXPECT_NE(table.find("| iallreduce of float32 "), std::string::npos) << table;
    EXPECT_NE(document(rows).find("sums of doubles are declined by"), std::string::npos);
}

TEST(Overlap, ALineComparesWithinItsLaunch) {
    auto rows = point(0.28, 0.29);
    // A faster native and a cheaper reference of another launch do not count.
    Row other = row(socket_reference, 2, 0.27, 0.10, 0.11);
    other.context["environment"] = "THALWEG_AGENT=core";
    rows.push_back(other);
    const auto lines = summarize_overlap(rows);
    ASSERT_EQ(lines.size(), 5u);
    const OverlapLine& ours = line_of(lines, automatic);
    EXPECT_NEAR(ours.osu, 100 * (1 - 0.01 / 0.28), 1e-9);
    EXPECT_NEAR(ours.visible_seconds, 0.01, 1e-12);
    EXPECT_NEAR(ours.dilation_arithmetic.value, 1, 1e-12);
    EXPECT_NEAR(ours.slowed_arithmetic.value, 0.28 / 0.27, 1e-12);
    EXPECT_EQ(ours.dilation_memory.value, 0);
    EXPECT_NEAR(ours.of_native.value, 0.29 / 0.56, 1e-12);
    EXPECT_NEAR(ours.of_limit(), 0.28 / 0.262144, 1e-9);
    EXPECT_EQ(ours.algorithm, "ring");
    EXPECT_EQ(line_of(lines, native_default).osu, 0);
    EXPECT_FALSE(line_of(lines, no_traffic).moves);
    // By the ratio of medians, as all verdicts; the median of these pairs' ratios is 0.73.
    rows[0].overlap["equal"]["arithmetic"]["total"] = {1.0, 2.0, 3.0};
    rows[4].overlap["equal"]["arithmetic"]["total"] = {3.3, 1.1, 2.2};
    EXPECT_NEAR(line_of(summarize_overlap(rows), automatic).of_native.value, 1.1, 1e-12);
}

TEST(Overlap, TheBestBlockingAlgorithmIsTheOneOursGainsLeastOn) {
    auto rows = point(0.28, 0.281);
    Row ring = row("native blocking ring", 1, 0.14, 0, 0);
    ring.overlap["equal"] = nlohmann::json::object();
    rows.push_back(ring);
    // Another launch was twice as fast in all.
    Row other = row("native blocking bruck", 3, 0.10, 0, 0), ours = row(automatic, 3, 0.14, 0.1, 0.1);
    other.context["environment"] = ours.context["environment"] = "I_MPI_ADJUST_ALLGATHER=2";
    rows.push_back(other);
    rows.push_back(ours);
    const auto lines = summarize_overlap(rows);
    const OverlapLine& line = line_of(lines, automatic);
    EXPECT_DOUBLE_EQ(line.pure_seconds, 0.28) << "of the main launch";
    EXPECT_EQ(line.best_blocking, "native blocking ring");
    EXPECT_NEAR(line.of_blocking.value, 2, 1e-12);
    EXPECT_TRUE(line_of(lines, "native blocking ring").alone);
    EXPECT_EQ(target_of(judge(lines), "pure time not slower").reached, 0);
    EXPECT_EQ(format_cost(lines, false).find("native blocking ring"), std::string::npos);
}

// As a run with one more column does; what was measured before stays in the file.
TEST(Overlap, WhatWasMeasuredAgainCountsBesideBlockingCallsToo) {
    auto rows = point(0.28, 0.281);
    rows.push_back(row(native_blocking, 0, 0.07, 0.28, 0.56));
    rows.push_back(row(automatic, 0, 0.56, 0.28, 0.6));
    const auto lines = summarize_overlap(rows);
    EXPECT_DOUBLE_EQ(line_of(lines, automatic).pure_seconds, 0.28);
    EXPECT_NEAR(line_of(lines, automatic).of_blocking.value, 1, 1e-12);
    EXPECT_EQ(target_of(judge(lines), "pure time not slower").reached, 1);
}

TEST(Overlap, EveryMpisBlockingAlgorithmsAreColumns) {
    for (const char* mpi : {"mpich", "openmpi", "impi"})
        for (const char* collective : {"iallgather", "iallreduce", "ibcast"}) {
            int alone = 0;
            for (const auto& column : overlap_columns(mpi, collective, {}, {})) {
                if (column.way != "alone") continue;
                ++alone;
                EXPECT_TRUE(column.name.starts_with("native blocking ")) << column.name;
                EXPECT_TRUE(!column.controls.empty() || !column.environment.empty()) << column.name;
            }
            EXPECT_GE(alone, 5) << mpi << " " << collective;
        }
}

TEST(Overlap, TargetsAreReachedOrNot) {
    auto judged = judge(summarize_overlap(point(0.28, 0.281)));
    for (const char* reached :
         {"OSU overlap >= 95", "IMB overlap >= 90", "agent CPU <= 5", "compute dilation <= 1.03",
          "allgather <= 1.10", "pure time not slower", "communication with equal work"}) {
        EXPECT_EQ(target_of(judged, reached).reached, 1) << reached;
        EXPECT_EQ(target_of(judged, reached).points, 1) << reached;
    }
    EXPECT_THROW(target_of(judged, "broadcast"), std::out_of_range);
    EXPECT_THROW(target_of(judged, "visible time"), std::out_of_range) << "256 KiB are not of medium length";

    auto rows = point(0.30, 0.33);  // visible 0.03 of 0.28; computation 0.30 against 0.28
    rows.back().overlap["agent_cpu_seconds"] = 0.02;
    rows[2].overlap["other_cpu_seconds"] = 0.027;
    rows.back().seconds = Values(5, 0.30);
    judged = judge(summarize_overlap(rows));
    for (const char* missed : {"OSU overlap >= 95", "IMB overlap >= 90", "agent CPU <= 5",
                               "compute dilation <= 1.03", "allgather <= 1.10", "pure time not slower"})
        EXPECT_EQ(target_of(judged, missed).reached, 0) << missed;
    EXPECT_EQ(target_of(judged, "OSU overlap >= 95").worst, "89.3 % at 256 KiB");
    EXPECT_EQ(target_of(judged, "OSU overlap >= 95").reference, "96.3 %");
    EXPECT_EQ(target_of(judged, "agent CPU <= 5").reference, "10.0 %");
    EXPECT_EQ(target_of(judged, "compute dilation <= 1.03").reference, "");
}

TEST(Overlap, WhatHidesOfALongerCallDoesNotCount) {
    for (const bool beside_work : {false, true}) {
        auto rows = point(0.28, 0.281);
        if (beside_work)
            rows.back().overlap["equal"]["arithmetic"]["total"] = Values(5, 0.60);  // native's: 0.56
        else
            rows.back().seconds = Values(5, 0.30);  // 1.14 times the limit
        const auto judged = judge(summarize_overlap(rows));
        for (const char* hidden : {"OSU overlap >= 95", "IMB overlap >= 90"}) {
            EXPECT_EQ(target_of(judged, hidden).reached, 0) << hidden;
            EXPECT_EQ(target_of(judged, hidden).worst, "99.6 % at 256 KiB (does not count)");
        }
        EXPECT_EQ(target_of(judged, "agent CPU <= 5").reached, 1);
    }
}

// As rows of earlier runs have, and long calls.
TEST(Overlap, PointsOfFewSamplesAreCounted) {
    auto rows = point(0.28, 0.281);  // 5 samples
    for (const Row& each : point(0.28, 0.281)) {
        rows.push_back(each);
        rows.back().bytes *= 4;
        for (const char* what : {"total", "compute"})
            rows.back().overlap["equal"]["arithmetic"][what] = Values(30, 0.281);
    }
    const auto judged = judge(summarize_overlap(rows));
    const TargetLine& hidden = target_of(judged, "OSU overlap >= 95");
    EXPECT_EQ(hidden.points, 2);
    EXPECT_EQ(hidden.short_of_samples, 1);
    const std::string table = format_targets(judged, true);
    EXPECT_NE(table.find("| below 30 samples |"), std::string::npos) << table;
    EXPECT_NE(table.find("| 1 of 2           |"), std::string::npos) << table;
    std::erase_if(rows, [](const Row& each) { return each.bytes == 256 << 10; });
    EXPECT_EQ(target_of(judge(summarize_overlap(rows)), "OSU overlap >= 95").short_of_samples, 0);
}

TEST(Overlap, AFailedColumnSaysSo) {
    auto rows = point(0.28, 0.281);
    Row hung;
    hung.context = rows[0].context;
    hung.collective = "iallgather";
    hung.column = native_async;
    hung.phase = overlap_phase;
    hung.bytes = 256 << 10;
    hung.stopped = "the launch did not end in 60 s";
    rows.push_back(hung);
    const auto lines = summarize_overlap(rows);
    EXPECT_NE(format_hidden(lines, false).find("the launch did not end in 60 s"), std::string::npos);
    EXPECT_EQ(format_cost(lines, false).find(native_async), std::string::npos);
}

TEST(Overlap, WhatTheMpiKeptIsNotOurs) {
    auto rows = point(0.28, 0.281);
    rows.back().algorithm = "";
    rows.back().reason = "nothing of ours would advance it";
    EXPECT_EQ(line_of(summarize_overlap(rows), automatic).algorithm,
              "native: nothing of ours would advance it");
}

TEST(Overlap, ColumnsWithAnEnvironmentStandApart) {
    for (const std::string mpi : {"mpich", "openmpi", "impi", "mpich-debian"}) {
        int apart = 0;
        for (const auto& column : overlap_columns(mpi, "ibcast", {"ring"}, {"sleep", "core"}))
            apart += !column.environment.empty() && column.way != "alone";
        EXPECT_EQ(apart, 3) << mpi;
    }
    EXPECT_NE(asynchronous_remark("openmpi"), "");
    EXPECT_EQ(asynchronous_remark("mpich"), "");
}

TEST(Overlap, ThePageHasASectionAndTheOtherTablesHaveNone) {
    const auto rows = point(0.28, 0.281);
    EXPECT_TRUE(summarize(rows).empty());
    const std::string page = document(rows);
    for (const char* part : {"## Nonblocking collectives", "### Targets", "### mpich, overlap", "reached"})
        EXPECT_NE(page.find(part), std::string::npos) << part;
    EXPECT_EQ(page.find("## Broadcast between hosts"), std::string::npos);
    EXPECT_EQ(document({}).find("Nonblocking"), std::string::npos);
}

TEST(Waiters, TheNewestOfEachIsShown) {
    const auto wait = [](const char* name, std::uint64_t launch, double median) {
        Row row;
        row.context = {{"machine", "a machine"}, {"commit", "abc"}};
        row.column = name;
        row.phase = waiters_phase;
        row.launch = launch;
        row.waiter = {{"waiter", name},
                      {"exercised", true},
                      {"samples", 10},
                      {"wake_us", {{"min", 1.0}, {"median", median}, {"p99", 9.0}}},
                      {"ring_us", {{"median", 0.5}, {"p99", 2.0}}},
                      {"cpu_share", 0.25}};
        return row;
    };
    Row lacking = wait("umwait", 2, 0);
    lacking.waiter = {{"waiter", "umwait"}, {"exercised", false}, {"why", "no WAITPKG"}};
    const std::vector<Row> rows{wait("futex", 1, 4), wait("futex", 2, 3), lacking};
    const std::string text = format_waiters(rows, false);
    EXPECT_NE(text.find("3.00 us"), std::string::npos) << text;
    EXPECT_EQ(text.find("4.00 us"), std::string::npos) << text;
    EXPECT_NE(text.find("no WAITPKG"), std::string::npos) << text;
    EXPECT_NE(document(rows).find("## How a waiting thread wakes"), std::string::npos);
    // Whence they come is told of what is shown.
    std::vector<Row> again = rows;
    again[1].context = again[2].context = {{"machine", "another"}, {"commit", "def"}};
    EXPECT_EQ(waiters_source(again), "another; commit def");
    EXPECT_NE(document(again).find("\nanother; commit def.\n"), std::string::npos);
    again[2].context["commit"] = "abc";
    EXPECT_EQ(waiters_source(again), "another; commit abc, def");
    EXPECT_EQ(format_waiters({}, false), "");
}

// The blocking call and then the work, 0.56 s, against both together.
TEST(Overlap, WhatIsSavedOfBothStandsBesideWhatCouldBe) {
    const auto lines = summarize_overlap(point(0.28, 0.308));
    EXPECT_DOUBLE_EQ(line_of(lines, automatic).one_by_one_seconds, 0.56);
    EXPECT_DOUBLE_EQ(line_of(lines, automatic).work_seconds, 0.28);
    EXPECT_DOUBLE_EQ(line_of(lines, native_default).one_by_one_seconds, 0.56);
    const std::string table = format_saved(lines, true);
    EXPECT_NE(table.find("| 45 % | 50 %    | 90 % "), std::string::npos) << table;
    EXPECT_EQ(format_saved({}, true), "");
    std::vector<Row> without = point(0.28, 0.308);
    std::erase_if(without, [](const Row& each) { return each.column == native_blocking; });
    EXPECT_EQ(format_saved(summarize_overlap(without), true), "");
}

// Two links of the same rate against one, which are points of their own.
TEST(Overlap, LinksPerHostAreToldApart) {
    std::vector<Row> rows = point(0.28, 0.29);
    EXPECT_EQ(format_rails(summarize_overlap(rows), false), "");
    for (Row each : point(0.28, 0.29)) {
        each.context["rails"] = 2;
        each.launch = 2;
        each.seconds = Values(5, 0.14);
        rows.push_back(each);
    }
    const auto lines = summarize_overlap(rows);
    ASSERT_EQ(lines.size(), 10u);
    int links[3] = {};
    for (const auto& line : lines) {
        if (line.column != automatic) continue;
        ++links[line.rails];
        EXPECT_EQ(line.place(), line.rails == 2 ? "2x1, 2 x 8mbit" : "2x1, 8mbit");
        EXPECT_DOUBLE_EQ(line.limit_seconds, line.rails == 2 ? 0.131072 : 0.262144);
    }
    EXPECT_EQ(links[1], 1);
    EXPECT_EQ(links[2], 1);
    // Sockets take one of the links.
    for (const auto& target : judge(lines)) {
        if (!target.target.starts_with("allgather <= 1.10")) continue;
        EXPECT_EQ(target.reference, target.place == "2x1, 2 x 8mbit" ? "1.07 x limit" : "1.03 x limit");
    }
    const std::string table = format_rails(lines, true);
    EXPECT_NE(table.find("| 2.00 "), std::string::npos) << table;
    EXPECT_NE(document(rows).find("### Several links per host"), std::string::npos);
    EXPECT_EQ(format_ports(lines, true), "") << "rings by ports were not measured";
}

// One port against two on the same links, which takes both of one launch.
TEST(Overlap, RingsByPortsStandBesideTheChoice) {
    int found = 0;
    for (const auto& column : overlap_columns("mpich", "iallgather", {"ring"}, {}, 2))
        if (column.name == "thalweg ring" || column.name == "thalweg kport_ring:ports=2") {
            EXPECT_EQ(std::string(ours_prefix) + column.option, column.name);
            EXPECT_EQ(column.way, "nonblocking");
            ++found;
        }
    EXPECT_EQ(found, 2) << "each once";
    for (const auto& column : overlap_columns("mpich", "ibcast", {}, {}, 2))
        EXPECT_EQ(column.name.find("ring:ports"), std::string::npos) << column.name;
    for (const auto& column : overlap_columns("mpich", "iallgather", {}, {}))
        EXPECT_EQ(column.name.find("kport_ring"), std::string::npos) << column.name;

    std::vector<Row> rows = point(0.28, 0.29);
    rows.push_back(row("thalweg ring", 1, 0.24, 0.28, 0.29));
    rows.push_back(row("thalweg kport_ring:ports=2", 1, 0.16, 0.28, 0.29));
    for (Row& each : rows) each.context["rails"] = 2;
    const std::string table = format_ports(summarize_overlap(rows), true);
    EXPECT_NE(table.find("| 1.50 "), std::string::npos) << table;
    const std::string page = document(rows);
    EXPECT_NE(page.find("One port against several on the same links"), std::string::npos);
    EXPECT_NE(page.find("are messages that are cut up,"), std::string::npos) << "what two links gain by";
    rows.back().launch = 2;
    EXPECT_EQ(format_ports(summarize_overlap(rows), true), "");
}

}  // namespace
}  // namespace thalweg::bench
