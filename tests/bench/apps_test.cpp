// The applications' rows: what is compared with what, the target, and the arithmetic of the slow-down.
#include "bench/apps.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "bench/amr.h"
#include "bench/apps_table.h"
#include "bench/carried.h"
#include "bench/document.h"
#include "bench/table.h"
#include "launch_row.h"

namespace thalweg::bench {
namespace {

Row row(const std::string& side, const std::string& version, double total, std::vector<double> gathers,
        std::vector<double> windows, int round = 0, double slowdown = 1e-6) {
    Row made = launch_row({.shape = "4x1"}, "radix_sort", apps_phase, app_column(side, version), 0, app_bytes,
                          std::vector<double>(5, total));
    made.context["commit"] = "abc";
    made.app = {{"parameters", {{"bytes", app_bytes}, {"slowdown", slowdown}}},
                {"round", round},
                {"wrong", ""},
                {"samples", nlohmann::json::array()}};
    for (int i = 0; i < 5; ++i)
        made.app["samples"].push_back({{"total", total},
                                       {"communication", 0},
                                       {"compute", 0},
                                       {"visible", 0},
                                       {"gathers", gathers},
                                       {"windows", windows}});
    return made;
}

// Native: 10 s, of which 4 could be hidden. Thalweg: its waiting version takes 9, of which 3 could be hidden.
std::vector<Row> rows(double ours) {
    return {row("native", "blocking", 10, {4}, {5}),
            row("native", "waited", 11, {5}, {5}),
            row("native", "nonblocking", 10, {4}, {5}),
            row("native", "manual/16", 8, {2}, {5}),
            row("native", "manual/64", 7, {1}, {5}),
            row("native (A/A)", "blocking", 11, {5}, {5}),
            row("native (A/A)", "nonblocking", 10, {4}, {5}),
            row("thalweg", "blocking", 9, {3}, {5}),
            row("thalweg", "waited", 9, {3}, {5}),
            row("thalweg", "nonblocking", ours, {0.1}, {5}),
            row("thalweg", "manual/16", 9, {3}, {5})};
}

TEST(Apps, FiguresHoldEachVersionAgainstItsOwn) {
    const auto lines = summarize_apps(rows(6));
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].rounds, 1);
    const AppFigures of = figures(lines[0]);
    EXPECT_DOUBLE_EQ(of.native_blocking, 10);
    EXPECT_DOUBLE_EQ(of.noise, 1.1);
    EXPECT_DOUBLE_EQ(of.saved, 0.4);
    EXPECT_DOUBLE_EQ(of.ceiling, 0.4);
    EXPECT_DOUBLE_EQ(of.native_hidden, 0.2);
    EXPECT_DOUBLE_EQ(of.ours_hideable, 3);
    EXPECT_DOUBLE_EQ(of.ours_hidden, 1);
    EXPECT_EQ(of.best_manual, "native/manual/64");
    EXPECT_DOUBLE_EQ(of.against_manual.value, 6.0 / 7);
}

TEST(Apps, TheTargetIsMissedVisibly) {
    // 0.6 of 3 hideable seconds stayed visible: 80 %.
    const auto lines = summarize_apps(rows(6.6));
    EXPECT_NEAR(figures(lines[0]).ours_hidden, 0.8, 1e-12);
    EXPECT_NE(format_app_figures(lines, true).find("| 80.0 % | no "), std::string::npos)
        << format_app_figures(lines, true);
    EXPECT_NE(format_app_figures(summarize_apps(rows(6.2)), true).find("| yes "), std::string::npos);
}

TEST(Apps, RoundsAddUpAndOtherParametersDoNot) {
    std::vector<Row> all{row("native", "blocking", 99, {4}, {5}, 0, 1e-7)};
    for (const auto& each : rows(6)) all.push_back(each);
    for (int round : {1, 2}) all.push_back(row("native", "blocking", 10, {4}, {5}, round));
    const auto lines = summarize_apps(all);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].rounds, 3);
    EXPECT_EQ(lines[0].native[0].samples.size(), 15u);
    EXPECT_DOUBLE_EQ(figures(lines[0]).native_blocking, 10);
}

TEST(Apps, RowsSurviveTheFileAndMakeASection) {
    const std::string path = "/tmp/thalweg-app-rows-" + std::to_string(getpid()) + ".jsonl";
    std::remove(path.c_str());
    std::string why;
    auto written = rows(6);
    written[0].app["wrong"] = "one key";
    written[0].wrong_words = 1;
    written[1].context["settings"] = {{"THALWEG_LAB_RATE_BYTES_PER_S", 1.2e7}};
    written[2].context["settings"] = {{"THALWEG_LAB_RATE_BYTES_PER_S", "1.2e7"}};
    for (const int numbers_and_text : {1, 2})
        EXPECT_DOUBLE_EQ(setting(written[numbers_and_text], "THALWEG_LAB_RATE_BYTES_PER_S"), 1.2e7);
    ASSERT_TRUE(append_rows(path, written, why)) << why;
    std::vector<Row> read;
    ASSERT_TRUE(read_rows({path}, read, why)) << why;
    std::remove(path.c_str());
    ASSERT_EQ(read.size(), written.size());
    EXPECT_EQ(read[3].app, written[3].app);
    const std::string page = document(read);
    EXPECT_NE(page.find("\n## Applications\n"), std::string::npos);
    EXPECT_NE(page.find("native/manual/64 0.86 [0.86, 0.86], not slower"), std::string::npos) << page;
    const auto lines = summarize_apps(read);
    EXPECT_EQ(lines[0].wrong, 1u);
    EXPECT_EQ(document({}).find("Applications"), std::string::npos);
}

TEST(Apps, TheSlowDownMakesTheMixOfThePapers) {
    const Shape shape{.mpi = "mpich", .hosts = 4, .ppn = 1, .rails = 1, .rate = "100mbit"};
    const double rate = bytes_per_second(shape.rate);
    EXPECT_DOUBLE_EQ(rate, 12.5e6);
    const double wire = 3 * 262144 / rate;  // of one allgather
    AppCase app;
    ASSERT_TRUE(find_app("radix_sort", shape, rate, app));
    EXPECT_NEAR(app.slowdown * 32768, 1.25 * wire, 0.005 * wire);
    ASSERT_TRUE(find_app("conjugate_gradient", shape, rate, app));
    const double work = app.slowdown * 32768 * 31;  // 31 entries a row
    EXPECT_NEAR(wire / (wire + work), 0.32, 0.002);
    EXPECT_EQ(app.known.at("slowdown"), app.slowdown);
    EXPECT_FALSE(find_app("fluid", shape, rate, app));
    for (const char* text : {"", "fast", "100", "-1mbit", "1mbits", "nanmbit"})
        EXPECT_LE(bytes_per_second(text), 0) << text;
}

// What the report of a run says of the operation that a version calls.
TEST(Apps, ReportsTellWhatCarriedTheCalls) {
    using nlohmann::json;
    const auto counted = [](const char* operation, const char* how) {
        return json{{"operation", operation}, {how, "ring"}};
    };
    const json set_up{
        {"wait", "sleep"},
        {"nonblocking_over", "ucx, exchanges over shm and ucx"},
        {"rows", json::array({counted("allgather", "algorithm"), counted("iallgather", "algorithm"),
                              counted("neighbor_alltoallw_init", "algorithm")})}};
    json report = json::object();
    report["communicators"] = json::array({set_up});
    const auto told = [&](const char* app, const char* version) {
        const Carried of = carried_by(report, operation_of(app, version));
        return of.transport + " (" + of.waiting + ")";
    };
    for (const char* version : {"blocking", "waited", "nonblocking", "manual/16"})
        EXPECT_EQ(told("radix_sort", version), "ucx (sleep)") << version;
    EXPECT_EQ(told(amr_app, "init"), "shm and ucx (sleep)");
    EXPECT_EQ(told(amr_app, "neighbor"), " ()") << "it was not called";
    EXPECT_EQ(told(amr_app, "persistent"), " ()") << "sends and receives are the MPI's own";
    // Beside a communicator that only blocks, and one whose calls were the MPI's own.
    json blocking = json::object(), native = json::object();
    blocking["wait"] = "sleep";
    blocking["rows"] = json::array({counted("allgather", "algorithm")});
    native["wait"] = "spin";
    native["rows"] = json::array({counted("iallgather", "declined")});
    report["communicators"].push_back(blocking);
    report["communicators"].push_back(native);
    EXPECT_EQ(told("radix_sort", "blocking"), "mpi, ucx (naps, sleep)");
    EXPECT_EQ(told("radix_sort", "nonblocking"), "ucx (sleep)");
    report = json::parse("", nullptr, false);  // none was written
    EXPECT_EQ(told("radix_sort", "nonblocking"), " ()");
}

}  // namespace
}  // namespace thalweg::bench
