// Result rows survive the file, and the table's lines follow from them: the right pair, factors, limit and
// proof.
#include "bench/table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "bench/columns.h"
#include "bench/document.h"
#include "table_rows.h"

namespace thalweg::bench {
namespace {

struct TemporaryFile {
    std::string path = "/tmp/thalweg-rows-" + std::to_string(getpid()) + ".jsonl";
    TemporaryFile() { std::remove(path.c_str()); }
    ~TemporaryFile() { std::remove(path.c_str()); }
};

TEST(Results, RowsSurviveTheFile) {
    TemporaryFile file;
    std::string why;
    Row first = row("native", "screen", 7, {1.5, 2.5});
    first.algorithm = "chain:chunk_bytes=64K";
    first.tx_bytes = 123;
    first.stopped = "over 2x after 1";
    first.element = "int64";
    first.calls = {{"count", 5}};
    ASSERT_TRUE(append_rows(file.path, {first}, why)) << why;
    ASSERT_TRUE(append_rows(file.path, {row("thalweg", "screen", 7, {1})}, why)) << why;
    std::vector<Row> rows;
    ASSERT_TRUE(read_rows({file.path}, rows, why)) << why;
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].context, first.context);
    EXPECT_EQ(rows[0].seconds, first.seconds);
    EXPECT_EQ(rows[0].algorithm, first.algorithm);
    EXPECT_EQ(rows[0].tx_bytes, 123);
    EXPECT_EQ(rows[0].stopped, first.stopped);
    EXPECT_EQ(rows[0].element, "int64");
    EXPECT_EQ(rows[0].calls, first.calls);
    EXPECT_EQ(rows[1].column, "thalweg");
    EXPECT_EQ(rows[1].stopped, "");
    EXPECT_EQ(rows[1].element, "");
    EXPECT_TRUE(rows[1].calls.is_null());
}

TEST(Results, WhatWasDecidedSaysItsLimitAndOldRowsAreRead) {
    TemporaryFile file;
    std::string why;
    Row ours = row("thalweg", "decide", 7, {3, 3, 3});
    ours.context["transport"] = "mpi";
    ours.context["waiting"] = "naps";
    ASSERT_TRUE(append_rows(file.path, {ours, row("thalweg", "screen", 7, {3})}, why)) << why;
    std::ifstream lines(file.path);
    std::string text;
    std::getline(lines, text);
    const auto decided = nlohmann::json::parse(text);
    EXPECT_DOUBLE_EQ(decided.at("limit_s"), 1.5);
    EXPECT_DOUBLE_EQ(decided.at("time_over_limit"), 2);
    EXPECT_EQ(decided.at("context").at("waiting"), "naps");
    std::getline(lines, text);
    EXPECT_FALSE(nlohmann::json::parse(text).contains("limit_s"));
    std::vector<Row> rows;
    ASSERT_TRUE(read_rows({file.path}, rows, why)) << why;
    EXPECT_EQ(rows[0].context.at("transport"), "mpi");
    // Rows of before say nothing of either, nor of all links together.
    auto old = decided;
    for (const char* key : {"limit_s", "time_over_limit", "all_tx_bytes"}) old.erase(key);
    for (const char* key : {"transport", "waiting"}) old["context"].erase(key);
    EXPECT_EQ(row_of(old).seconds, ours.seconds);
    EXPECT_EQ(row_of(old).all_tx_bytes, -1);
}

TEST(Document, SaysWhatCarriedTheCallsWhereRowsDo) {
    std::vector<Row> rows{row("native", "decide", 1, {6, 6, 6}), row("thalweg", "decide", 1, {2, 2, 2})};
    EXPECT_EQ(document(rows).find("went over"), std::string::npos);
    rows[1].context["transport"] = "mpi";
    rows[1].context["waiting"] = "naps";
    EXPECT_NE(document(rows).find("Thalweg's calls went over mpi (naps); 1 of 2 rows do not say."),
              std::string::npos);
    rows[0].context = rows[1].context;
    EXPECT_NE(document(rows).find("Thalweg's calls went over mpi (naps)."), std::string::npos);
}

TEST(Results, AMalformedLineIsNamed) {
    TemporaryFile file;
    std::ofstream(file.path) << "{\"context\": {}}\n";
    std::vector<Row> rows;
    std::string why;
    EXPECT_FALSE(read_rows({file.path}, rows, why));
    EXPECT_NE(why.find("line 1"), std::string::npos) << why;
}

TEST(Table, LimitIsBytesBeyondTheBurstPlusOneLatency) {
    EXPECT_DOUBLE_EQ(limit_seconds(row("native", "screen", 1, {1})), 1.5);
    Row one_host = row("native", "screen", 1, {1});
    one_host.context["hosts"] = 1;
    EXPECT_EQ(limit_seconds(one_host), 0);
}

TEST(Table, LinksPerHostAreToldApart) {
    const std::vector<Row> one{row("native", "decide", 1, {6, 6, 6}), row("thalweg", "decide", 1, {2, 2, 2})};
    std::vector<Row> rows = one;
    for (Row each : one) {
        each.context["rails"] = 2;
        each.launch = 2;
        rows.push_back(each);
    }
    const auto lines = summarize(rows);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_NEAR(lines[0].limit_seconds, 1.5, 1e-9);
    EXPECT_NEAR(lines[1].limit_seconds, 0.975712, 1e-9);
    const std::string table = format_table(lines, true);
    EXPECT_NE(table.find("| 4x2 "), std::string::npos) << table;
    EXPECT_NE(table.find("| 4x2, 2 x 100mbit "), std::string::npos) << table;
}

TEST(Table, WhatIsBelowItsLimitIsADefectOfTheLab) {
    std::vector<Row> rows{row("native", "decide", 1, {6, 6, 6}),
                          row("thalweg", "decide", 1, {1.5, 1.5, 1.5})};
    EXPECT_EQ(below_limit_text(rows), "");
    rows[1].seconds = {1.2, 1.2, 1.2};
    const std::string text = below_limit_text(rows);
    EXPECT_EQ(
        text,
        "A DEFECT OF THE LAB: 1 of 2 rows are below their limit, the lowest 0.80 of it: thalweg in bcast of "
        "1 MiB on 4x2 under mpich\n");
    EXPECT_NE(document(rows).find("\n" + text), std::string::npos);
    rows[1].seconds.clear();
    rows[0].context["hosts"] = 1;
    EXPECT_EQ(below_limit_text(rows), "");
}

TEST(Table, TheBestNativeIsTheOneOursGainsLeastOn) {
    std::vector<Row> rows{row("native", "decide", 1, {6, 6, 6}),
                          row("native (A/A)", "decide", 1, {6, 6, 6}),
                          row("native scatter_ring", "decide", 1, {4, 4, 4}),
                          row("thalweg", "decide", 1, {2, 2, 2}),
                          row("native", "screen", 0, {9}),
                          row("thalweg", "screen", 0, {1})};
    const auto lines = summarize(rows);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].best_native, "native scatter_ring");
    EXPECT_DOUBLE_EQ(lines[0].against_best.value, 0.5);
    EXPECT_DOUBLE_EQ(lines[0].against_default.value, 1.0 / 3);
    EXPECT_DOUBLE_EQ(lines[0].noise, 1);
    EXPECT_FALSE(lines[0].screened_only);
    EXPECT_EQ(lines[0].decision, Verdict::not_slower);
}

TEST(Table, PairsOfDifferentLaunchesAreNeverCompared) {
    // The native of launch 2 is fast only because that launch was: ours was fast there too.
    const auto lines = summarize({row("native", "decide", 1, {6}), row("thalweg", "decide", 1, {3}),
                                  elsewhere(row("native ring", "decide", 2, {2})),
                                  elsewhere(row("thalweg", "decide", 2, {1}))});
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_DOUBLE_EQ(lines[0].against_best.value, 0.5);
}

TEST(Table, WhatWasMeasuredAgainCounts) {
    std::vector<Row> rows{row("native", "decide", 1, {2, 2, 2}), row("thalweg", "decide", 1, {1, 3, 9})};
    EXPECT_EQ(summarize(rows)[0].decision, Verdict::undecided);
    rows.push_back(row("native", "decide", 5, {2, 2, 2, 2, 2, 2, 2, 2, 2}));
    rows.push_back(row("thalweg", "decide", 5, {2, 2, 2, 2, 2, 2, 2, 2, 2}));
    rows.push_back(elsewhere(row("native ring", "decide", 3, {4, 4, 4})));
    rows.push_back(elsewhere(row("thalweg", "decide", 3, {4.04, 4.04, 4.04})));
    const auto lines = summarize(rows);
    EXPECT_EQ(lines[0].decision, Verdict::not_slower);
    EXPECT_EQ(lines[0].best_native, "native ring");
    EXPECT_DOUBLE_EQ(lines[0].against_default.value, 1);
}

TEST(Table, AnUncertainRatioHidesNoneThatIsSurelyAboveOne) {
    std::vector<double> spread;  // ours takes 1.045 times the median, or as long, or 1.098 times
    for (int i = 0; i < 30; ++i) spread.push_back(0.86 + 0.28 * i / 29);
    const auto lines = summarize({row("native", "decide", 2, spread),
                                  row("native ring", "decide", 2, std::vector<double>(30, 1.01)),
                                  row("thalweg", "decide", 2, std::vector<double>(30, 1.045))});
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_GT(lines[0].against_default.value, lines[0].against_best.value);
    EXPECT_EQ(lines[0].best_native, "native ring");
    EXPECT_EQ(lines[0].decision, Verdict::slower);
}

TEST(Table, OursStandsBesideTheDefaultOfItsOwnLaunch) {
    const auto lines = summarize({row("native", "decide", 1, {6}), row("thalweg", "decide", 1, {3}),
                                  elsewhere(row("native ring", "decide", 2, {2})),
                                  elsewhere(row("thalweg", "decide", 2, {1}))});
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_DOUBLE_EQ(lines[0].native_seconds, 6);
    EXPECT_DOUBLE_EQ(lines[0].ours_seconds, 3);
}

TEST(Table, CallsInARowAndTheSlowestStandBesideTheMedian) {
    std::vector<Row> rows{row("native", "decide", 1, {6, 6, 9}), row("thalweg", "decide", 1, {2, 2, 4})};
    const std::string without = format_table(summarize(rows), true);
    EXPECT_NE(without.find("| 3.960 s (2.26) |"), std::string::npos) << without;
    EXPECT_EQ(without.find("| 1.500 s (4.00) |"), std::string::npos) << without;
    rows[0].back_to_back = {6, 5, 7};
    rows[1].back_to_back = {1.5, 1.4, 9};
    const std::string with = format_table(summarize(rows), true);
    EXPECT_NE(with.find("| 1.500 s (4.00) |"), std::string::npos) << with;
}
TEST(Table, TheGainSplitsIntoAlgorithmAndWaiting) {
    const auto lines = summarize(
        counted_alike({row("native", "screen", 1, {6}), row("native scatter_ring", "screen", 1, {6.1}),
                       row("thalweg scatter_ring", "screen", 1, {3}), row("thalweg", "screen", 1, {1.5})}));
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].twin, "scatter_ring");
    EXPECT_DOUBLE_EQ(lines[0].twin_seconds, 3);
    EXPECT_NE(format_table(lines, false).find("2.00 x 2.00"), std::string::npos);
}

// MPICH on 4 hosts of 2 ranks at 64 KiB: under "tree" it runs by hosts what it runs by default, and took
// nearest as long; a tree that knows no hosts sends three times what the default does.
TEST(Table, TheTwinIsTheScheduleWhoseTrafficIsTheDefaults) {
    std::vector<Row> rows{counted(row("native", "screen", 1, {14.045}), 137766, 211710),
                          counted(row("native smp", "screen", 1, {13.963}), 137832, 211809),
                          counted(row("native tree", "screen", 1, {14.035}), 137832, 211809),
                          counted(row("native scatter_ring", "screen", 1, {7.114}), 104354, 282289),
                          counted(row("thalweg", "screen", 1, {4.618}), 68657, 204204)};
    const Row nested =
        counted(row("thalweg node_leader(intra=binomial,inter=binomial)", "screen", 1, {16}), 137700, 209367);
    const Row flat = counted(row("thalweg kary:chunk_bytes=0", "screen", 1, {32.1}), 207732, 416817);
    rows.push_back(flat);
    auto lines = summarize(rows);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].twin, "");
    EXPECT_NE(format_table(lines, false).find("no twin"), std::string::npos);
    rows.push_back(nested);
    lines = summarize(rows);
    EXPECT_EQ(lines[0].twin, "node_leader(intra=binomial,inter=binomial)");
    EXPECT_DOUBLE_EQ(lines[0].twin_seconds, 16);
    // The bytes of all links tell apart what the busiest link does not.
    for (Row& each : rows)
        if (each.column.starts_with("thalweg node_leader")) each.all_tx_bytes = 300000;
    EXPECT_EQ(summarize(rows)[0].twin, "");
    // Nothing counted, nothing known.
    for (Row& each : rows) each.tx_bytes = each.all_tx_bytes = -1;
    EXPECT_EQ(summarize(rows)[0].twin, "");
}

// Open MPI on 4 hosts of 2 ranks at 1 MiB: HAN, which no control but its priority asks for.
TEST(Table, ADefaultThatNoControlAsksForHasItsTwinByTraffic) {
    std::vector<Row> rows{counted(row("native", "screen", 1, {262.7}), 3296721, 3376414),
                          counted(row("native basic_linear", "screen", 1, {525}), 6584000, 6720000),
                          counted(row("thalweg", "screen", 1, {89.6}), 1100000, 3290000),
                          counted(row("thalweg node_leader(intra=linear,inter=kary:fanout=3:chunk_bytes=64K)",
                                      "screen", 1, {250}),
                                  3240000, 3310000)};
    for (Row& each : rows) each.context["mpi_name"] = "openmpi";
    auto lines = summarize(rows);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].twin, "node_leader(intra=linear,inter=kary:fanout=3:chunk_bytes=64K)");
    EXPECT_DOUBLE_EQ(lines[0].twin_seconds, 250);
    // The chain's bytes are not those of a root that sends to every host.
    rows[3] = counted(rows[3], 1120000, 3310000);
    EXPECT_EQ(summarize(rows)[0].twin, "");
    // A library whose default can always be asked for has none.
    rows[3] = counted(rows[3], 3240000, 3310000);
    for (Row& each : rows) each.context["mpi_name"] = "mpich";
    EXPECT_EQ(summarize(rows)[0].twin, "");
}

TEST(Table, PiecesOfAnotherSizeAreNoTwinThoughTheBytesAreTheSame) {
    const auto lines = summarize(counted_alike(
        {row("native", "screen", 1, {260}), row("native pipelined_tree", "screen", 1, {100}),
         row("thalweg kary:chunk_bytes=8K", "screen", 1, {90}), row("thalweg", "screen", 1, {89})}));
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].twin, "");
}

TEST(Table, WhatWasLeftToTheMpiHasNoGainToSplit) {
    Row ours = row("thalweg", "screen", 1, {6});
    ours.algorithm.clear();
    const auto lines = summarize(
        counted_alike({row("native", "screen", 1, {6}), row("native scatter_ring", "screen", 1, {6.1}),
                       row("thalweg scatter_ring", "screen", 1, {3}), ours}));
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].algorithm, "native");
    EXPECT_EQ(lines[0].twin_seconds, 0);
}

TEST(Table, ATwinIsFoundHoweverItsColumnIsWritten) {
    const std::vector<Row> rows{row("native", "screen", 1, {6}), row("native knomial", "screen", 1, {6}),
                                row("thalweg knomial:radix=4", "screen", 1, {3}),
                                row("thalweg", "screen", 1, {1.5})};
    std::vector<Row> of_openmpi = counted_alike(rows);
    for (Row& each : of_openmpi) each.context["mpi_name"] = "openmpi";
    const auto lines = summarize(of_openmpi);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_DOUBLE_EQ(lines[0].twin_seconds, 3);
}

TEST(Table, WhatResemblesTheDefaultIsTheNearestNativeAndItsTwin) {
    const std::vector<Row> rows = counted_alike(
        {row("native", "screen", 1, {6}), row("native scatter_ring", "screen", 1, {6.1}),
         row("native binomial", "screen", 1, {8}), row("thalweg scatter_ring", "screen", 1, {3}),
         row("thalweg binomial", "screen", 1, {4})});
    std::vector<const Row*> point;
    for (const Row& each : rows) point.push_back(&each);
    EXPECT_EQ(resembling_default(point),
              (std::vector<std::string>{"native scatter_ring", "thalweg scatter_ring"}));
    EXPECT_TRUE(resembling_default({}).empty());
}

// An environment's algorithm has launches of its own, and is a rival by what took turns there. Where ours
// hands the call on it is named if it was clearly quicker than the default in both of its launches.
TEST(Table, AnEnvironmentsAlgorithmThatIsQuickerThanTheDefaultIsNamedWhereOursHandsTheCallOn) {
    std::vector<Row> rows{row("native", "screen", 1, {6, 6, 6}),
                          row("native", "decide", 2, {6, 6, 6}),
                          row("thalweg", "decide", 2, {6, 6, 6}),
                          elsewhere(row("native ring", "screen", 3, {4, 4, 4})),
                          elsewhere(row("native ring", "decide", 4, {4, 4, 4})),
                          elsewhere(row("thalweg", "decide", 4, {5, 5, 5}))};
    auto lines = summarize(rows);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].best_native, "native ring");
    EXPECT_EQ(lines[0].decision, Verdict::slower);
    EXPECT_EQ(quicker_elsewhere_text(lines), "");
    for (Row& each : rows) each.algorithm = "";
    lines = summarize(rows);
    EXPECT_EQ(lines[0].best_native, "native ring");
    EXPECT_EQ(lines[0].decision, Verdict::slower);
    EXPECT_NE(quicker_elsewhere_text(lines).find("4x2, 1 MiB: 4.000 s (ring) beside 6.000 s"),
              std::string::npos)
        << quicker_elsewhere_text(lines);
    // Once only says nothing.
    rows[3].seconds = {5.9, 5.9, 5.9};
    EXPECT_EQ(quicker_elsewhere_text(summarize(rows)), "");
}

TEST(Table, AColumnThatWasLeftOutIsNoBestNativeAndNoTwin) {
    Row left_out = row("native scatter_ring", "screen", 0, {});
    left_out.stopped = "left out: 3x at 4 MiB";
    const auto lines = summarize(
        counted_alike({row("native", "screen", 1, {6}), left_out,
                       row("thalweg scatter_ring", "screen", 1, {3}), row("thalweg", "screen", 1, {1.5})}));
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].best_native, "native");
    EXPECT_EQ(lines[0].twin, "");
    EXPECT_NE(format_columns({left_out}).find("left out: 3x at 4 MiB"), std::string::npos);
}

TEST(Table, ASlowerPointSaysSoAndHowManyOfItsSamplesBeganLate) {
    Row ours = row("thalweg", "decide", 1, {2, 2, 2});
    ours.back_to_back = {2};
    ours.late_samples = 1;
    const auto lines = summarize({row("native", "decide", 1, {1, 1, 1}), ours});
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].decision, Verdict::slower);
    EXPECT_NE(format_table(lines, true).find("slower"), std::string::npos);
    EXPECT_NE(format_table(lines, true).find("| 1 of 4 |"), std::string::npos) << format_table(lines, true);
    auto inside = lines;
    inside[0].limit_seconds = 0;
    EXPECT_EQ(format_table(inside, true).find("1 of 4"), std::string::npos);
}

}  // namespace
}  // namespace thalweg::bench
