// What the page of measurements makes of rows: its sections, and the table of both rings.
#include "bench/document.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/rings.h"
#include "bench/small.h"
#include "bench/table.h"
#include "table_rows.h"

namespace thalweg::bench {
namespace {

TEST(Rings, SavesWhatTheSchedulesAndTheKernelSay) {
    Row closed = row(closed_ring, rings_phase, 1, {2, 2, 2}),
        trimmed = row(trimmed_ring, rings_phase, 1, {1, 1, 1});
    for (Row* each : {&closed, &trimmed}) each->context["ranks"] = 8;
    closed.all_tx_bytes = 1000;
    trimmed.all_tx_bytes = 800;
    Row again = closed;
    again.column = closed_ring_again;
    again.seconds = {2.2, 2.2, 2.2};
    trimmed.late_samples = 2;
    EXPECT_EQ(format_rings({closed, trimmed}, false).find("1.10"), std::string::npos);
    const std::string text = format_rings({closed, again, trimmed}, false);
    EXPECT_NE(text.find("  1.10  "), std::string::npos) << text;
    EXPECT_NE(text.find("2 of 3"), std::string::npos) << text;
    EXPECT_NE(text.find("12 of 63"), std::string::npos) << text;  // 7 of the scatter, 56 of the closed ring
    EXPECT_NE(text.find("50.0 %"), std::string::npos) << text;
    EXPECT_NE(text.find("20.0 %"), std::string::npos) << text;
    EXPECT_EQ(format_rings({closed}, false), "");

    // What took turns stands together, and each library has lines of its own.
    Row torn = closed, later = trimmed, other_closed = closed, other_trimmed = trimmed;
    torn.launch = later.launch = 2;
    torn.seconds = {4, 4, 4};
    EXPECT_EQ(format_rings({closed, trimmed, torn}, false), format_rings({closed, trimmed}, false));
    EXPECT_NE(format_rings({torn, later, closed, trimmed}, false).find("75.0 %"), std::string::npos);
    for (Row* each : {&other_closed, &other_trimmed}) each->context["mpi_name"] = "openmpi";
    const std::string both = format_rings({closed, trimmed, other_closed, other_trimmed}, true);
    EXPECT_NE(both.find("| mpich "), std::string::npos) << both;
    EXPECT_NE(both.find("| openmpi "), std::string::npos) << both;
    EXPECT_EQ(text.find("MPI"), std::string::npos) << text;
}

TEST(Document, HoldsATableForEachMpiAndItsCommit) {
    Row native = row("native", "decide", 1, {6, 6, 6}), ours = row("thalweg", "decide", 1, {2, 2, 2});
    native.context["commit"] = ours.context["commit"] = "abc1234";
    const std::string text = document({native, ours});
    EXPECT_NE(text.find("## mpich"), std::string::npos);
    EXPECT_NE(text.find("abc1234"), std::string::npos);
    EXPECT_NE(text.find("3.00"), std::string::npos);
}

// Rows of two machines stand in one table only where its heading names both.
TEST(Document, TellsOnWhichMachinesRowsWereMeasured) {
    std::vector<Row> rows{row("native", "decide", 1, {6, 6, 6}), row("thalweg", "decide", 1, {2, 2, 2})};
    EXPECT_EQ(document(rows).find("Measured on"), std::string::npos);
    rows[0].context["machine"] = "AMD EPYC, 2 cores, Linux 6.18.1";
    EXPECT_NE(
        document(rows).find(" Measured on AMD EPYC, 2 cores, Linux 6.18.1; 1 of 2 rows do not say. How"),
        std::string::npos);
    rows[1].context["machine"] = "AMD EPYC, 2 cores, Linux 6.18.2";
    EXPECT_NE(document(rows).find("AMD EPYC, 2 cores, Linux 6.18.1; on AMD EPYC, 2 cores, Linux 6.18.2. How"),
              std::string::npos);
}

TEST(Document, BlockingCollectivesStandApartFromBroadcasts) {
    std::vector<Row> rows{row("native", "decide", 1, {6, 6, 6}), row("thalweg", "decide", 1, {2, 2, 2})};
    for (const char* collective : {"allgather", "allreduce"})
        for (const char* column : {"native", "native (A/A)", "thalweg"}) {
            rows.push_back(row(column, "decide", 2, {8, 8, 8}));
            rows.back().collective = collective;
            rows.back().context["ranks"] = 4;
            rows.back().context["shape"] = "4x1";
            rows.back().algorithm = std::string(column) == "thalweg" ? "ring" : "";
        }
    const auto lines = summarize(rows);
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0].collective, "allgather");
    // Three blocks of 1 MiB must enter each host, and half the vector cross twice; each beyond the burst.
    EXPECT_DOUBLE_EQ(lines[0].limit_seconds, (3 * 1048576 - 48576) / 1e6 + 0.5);
    EXPECT_DOUBLE_EQ(lines[1].limit_seconds, (1.5 * 1048576 - 48576) / 1e6 + 1);
    const std::string text = document(rows);
    const auto section = text.find("## Blocking allgather and allreduce");
    ASSERT_NE(section, std::string::npos);
    EXPECT_LT(text.find("## mpich"), section);
    EXPECT_NE(text.find("### mpich, blocking", section), std::string::npos);
    EXPECT_NE(text.find("MPI_Allgather:", section), std::string::npos);
    EXPECT_NE(text.find("MPI_Allreduce:", section), std::string::npos);
    for (const char* target :
         {"| allgather <= 1.10 x limit, from 256 KiB ", "| allreduce <= 1.25 x limit, from 1 MiB "})
        EXPECT_NE(text.find(target, section), std::string::npos) << target;
    EXPECT_EQ(document({rows[0], rows[1]}).find("Blocking"), std::string::npos);
}

// Whatever was measured, and also where the section of it counts no wrong words.
TEST(Document, WrongWordsAreSaidOfEveryKindOfRow) {
    std::vector<Row> rows{row("native", "decide", 1, {6, 6, 6}), row("thalweg", "decide", 1, {2, 2, 2})};
    EXPECT_EQ(wrong_words_text(rows), "");
    EXPECT_EQ(document(rows).find("Not every byte was right"), std::string::npos);
    rows[1].wrong_words = 3;
    rows.push_back(row(trimmed_ring, rings_phase, 2, {1}));
    rows.push_back(row("thalweg", small_phase, 3, {1e-6}));
    rows.push_back(row("thalweg init", "halo_overlap", 4, {}));
    rows.back().halo = {{"grid", {4, 2}}, {"cells", {8, 8}}, {"corners", false}, {"periodic", false}};
    for (std::size_t i = 2; i < rows.size(); ++i) rows[i].wrong_words = i;
    rows.push_back(row("native", small_phase, 3, {1e-6}));
    for (Row& each : rows) each.context["shape"] = "1x2", each.context["rate"] = "";
    const std::string text = wrong_words_text(rows);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
    EXPECT_NE(text.find("3 WRONG WORDS were received by thalweg in bcast of 1 MiB on 1x2 under mpich\n"),
              std::string::npos)
        << text;
    EXPECT_NE(document(rows).find("\n**Not every byte was right:**\n\n```text\n" + text), std::string::npos);
    Row sorted = row("thalweg/blocking", "apps", 5, {1});
    sorted.wrong_words = 1;
    sorted.app = {{"wrong", "the keys are not in order"}};
    EXPECT_EQ(wrong_words_text({sorted}), "");
}

TEST(Document, TheShareOfTheAlgorithmIsOfThePointsThatHaveATwin) {
    std::vector<Row> rows =
        counted_alike({row("native", "screen", 1, {6}), row("native scatter_ring", "screen", 1, {6.1}),
                       row("thalweg scatter_ring", "screen", 1, {3}), row("thalweg", "screen", 1, {1.5})});
    for (const char* column : {"native", "thalweg"}) {  // without any: not part of the share
        rows.push_back(row(column, "screen", 2, {100}));
        rows.back().bytes *= 4;
    }
    const std::string text = document(rows);
    EXPECT_NE(text.find("2.00 of 4.00 (1 points)"), std::string::npos) << text;
}

TEST(Document, OneHostAndShortCallsHaveSectionsOfTheirOwn) {
    std::vector<Row> rows{row("native", "decide", 1, {6, 6, 6}), row("thalweg", "decide", 1, {2, 2, 2})};
    for (Row& each : rows)
        each.context["shape"] = "1x2", each.context["rate"] = "", each.context["hosts"] = 1;
    for (const char* column : {"native", "thalweg"}) {
        rows.push_back(row(column, small_phase, 2, {1e-6}));
        rows.back().calls = {{"count", 1000}, {"median_ns", 1000}, {"p99_ns", 1500}};
    }
    const std::string text = document(rows);
    EXPECT_EQ(text.find("## Broadcast between hosts"), std::string::npos) << text;
    const auto one = text.find("## One host"), table = text.find("### mpich\n"),
               small = text.find("### mpich, short calls");
    ASSERT_NE(one, std::string::npos) << text;
    ASSERT_NE(small, std::string::npos) << text;
    EXPECT_LT(one, table);
    EXPECT_LT(table, small);
}

}  // namespace
}  // namespace thalweg::bench
