// At which sizes plans pay at once: the ranges, the table, and the picture that the page refers to.
#include "bench/payback.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/document.h"
#include "bench/picture.h"

namespace thalweg::bench {
namespace {

// A plan over fences of which a window per call took turns.
ExchangeLine line_of(std::uint64_t bytes, double calls, double high) {
    ExchangeLine line;
    line.mpi = "mpich", line.shape = "4x1", line.rate = "100mbit", line.pattern = "dense";
    line.column = "rma_fence";
    line.bytes = bytes;
    line.samples = 30;
    line.init_seconds = 1e-3;
    line.window_seconds = 2e-3;
    line.against_window.calls = calls;
    line.against_window.high = high;
    return line;
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
}

TEST(Payback, SaysWhereItBeginsAndWhereItEnds) {
    const auto all = paybacks({line_of(1024, 1.5, 2), line_of(4096, 1.1, 1.3), line_of(16384, 0.6, 0.9),
                               line_of(65536, 1.2, 4), line_of(262144, 0.9, never)});
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].plan, "rma_fence");
    EXPECT_EQ(all[0].against, "window per call");
    EXPECT_EQ(all[0].at_once_text(false), "4 KiB to 16 KiB, 256 KiB");
    EXPECT_EQ(all[0].at_once_text(true), "16 KiB");
    const std::string table = format_payback(all, true);
    EXPECT_NE(table.find("| 4 KiB to 16 KiB, 256 KiB | 16 KiB "), std::string::npos) << table;
    EXPECT_NE(table.find("| 1 KiB to 256 KiB "), std::string::npos) << table;
    EXPECT_NE(table.find("| 0.60 at 16 KiB "), std::string::npos) << table;
    EXPECT_EQ(paybacks({line_of(1024, 1.5, 2)})[0].at_once_text(false), "never");
    EXPECT_EQ(format_payback({}, true), "");
}

TEST(Payback, ComparesOnlyWhatTookTurns) {
    ExchangeLine alone = line_of(1024, 0.5, 0.6);
    alone.window_seconds = 0;
    EXPECT_TRUE(paybacks({alone}).empty());
    // Ours against three: the window, MPI_Alltoallv and the best of the natives.
    ExchangeLine ours = line_of(1024, 0.5, 0.6);
    ours.column = "thalweg init";
    ours.of_native.value = ours.of_best.value = 0.9;
    ours.best_native = "native init";
    ours.against_native.calls = 2;
    ours.against_best.calls = 3;
    const auto all = paybacks({ours});
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].against, "window per call");
    EXPECT_EQ(all[0].points[0].pays.calls, 0.5);
    EXPECT_EQ(all[1].against, "MPI_Alltoallv");
    EXPECT_EQ(all[1].points[0].pays.calls, 2);
    EXPECT_EQ(all[2].against, "the best native call");
    EXPECT_EQ(all[2].points[0].pays.calls, 3);
}

TEST(Payback, APictureHasAPanelForEachShapeAndTheLevel) {
    std::vector<ExchangeLine> lines{line_of(1024, 1.5, 2), line_of(4096, 0.3, 1.3),
                                    line_of(16384, never, never)};
    lines.push_back(line_of(1024, 20, 30));
    lines.back().shape = "4x2";
    ExchangeLine sparse = line_of(1024, 2, 3), other = line_of(1024, 2, 3);
    sparse.pattern = "banded";
    other.mpi = "impi";
    lines.push_back(sparse);
    lines.push_back(other);
    const auto all = paybacks(lines);
    const std::string picture = draw_payback(all, "mpich");
    EXPECT_EQ(picture.find("<svg "), 0u);
    EXPECT_EQ(count(picture, "<g "), 2u) << picture;
    EXPECT_NE(picture.find(">mpich, 4x1, 100mbit<"), std::string::npos) << picture;
    EXPECT_NE(picture.find(">mpich, 4x2, 100mbit<"), std::string::npos) << picture;
    EXPECT_NE(picture.find(">pays at once: N* is at most 1.1<"), std::string::npos) << picture;
    EXPECT_NE(picture.find(">rma_fence against window per call<"), std::string::npos) << picture;
    EXPECT_EQ(count(picture, ">never<"), 2u) << picture;
    // Whole decades from 0.3 to 20.
    for (const char* tick : {">0.1<", ">1<", ">10<", ">100<", ">1 KiB<", ">16 KiB<"})
        EXPECT_EQ(count(picture, tick), 2u) << tick << picture;
    EXPECT_EQ(count(picture, "<circle "), 4u) << picture;
    EXPECT_EQ(count(picture, "r=\"2\""), 1u) << "one never pays: " << picture;
    EXPECT_EQ(picture, draw_payback(paybacks(lines), "mpich"));
    EXPECT_EQ(draw_payback(all, "openmpi"), "");
}

TEST(Picture, OfNothingThereIsNone) {
    EXPECT_EQ(draw_panels({}, Axes()), "");
    Panel panel;
    panel.title = "a panel";
    panel.curves.push_back({"a curve", "#000000", {}});
    EXPECT_EQ(draw_panels({panel}, Axes()), "");
}

TEST(Payback, ThePageRefersToItsPictures) {
    std::vector<Row> rows;
    for (const char* column : {"native", "thalweg init"}) {
        Row row;
        row.context = {
            {"mpi_name", "mpich"}, {"shape", "4x1"}, {"rate", "100mbit"}, {"hosts", 4}, {"ranks", 4}};
        row.collective = "alltoallv";
        row.column = column;
        row.phase = exchange_phase;
        row.launch = 1;
        row.bytes = 1024;
        row.seconds.assign(5, rows.empty() ? 2e-3 : 1e-3);
        row.exchange = {{"pattern", "dense"}, {"link_bytes", 3000.0}, {"neighbours", 3}};
        if (!rows.empty()) row.exchange["init_seconds"] = std::vector<double>(3, 1e-3);
        rows.push_back(row);
    }
    std::vector<Picture> pictures;
    const std::string page = document(rows, "", "another", &pictures);
    ASSERT_EQ(pictures.size(), 1u);
    EXPECT_EQ(pictures[0].path, "pictures/another-payback-mpich.svg");
    EXPECT_EQ(pictures[0].text.find("<svg "), 0u);
    EXPECT_NE(page.find("](pictures/another-payback-mpich.svg)"), std::string::npos);
    EXPECT_NE(page.find("### When a plan pays at once"), std::string::npos);
    EXPECT_NE(document(rows).find("](pictures/measurements-payback-mpich.svg)"), std::string::npos);
}

}  // namespace
}  // namespace thalweg::bench
