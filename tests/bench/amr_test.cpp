// The rows of the refined mesh's exchange: the limit of its stages, what is compared with what, and the
// target.
#include "bench/amr.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "amr/report.h"
#include "bench/apps_table.h"
#include "bench/document.h"
#include "bench/glance.h"
#include "bench/table.h"
#include "launch_row.h"

namespace thalweg::bench {
namespace {

// Four exchanges, two on each of two meshes, in the program's own words.
std::string line_of(const std::string& version, const std::vector<double>& communication, int cells = 32,
                    long wrong = 0) {
    const AmrProblem problem{{4, 2, 2}, cells, 1, 3, 2, 4};
    AmrMeshReport meshes[2] = {{2, 72, {}}, {2, 100, {}}};
    meshes[0].stages[0] = {150000, 100000, 6, 40000};
    meshes[0].stages[1] = {50000, 50000, 2, 25000};
    meshes[1].stages[0] = {400000, 200000, 8, 60000};
    std::vector<std::vector<double>> steps;
    std::vector<AmrSample> samples;
    for (const double seconds : communication) steps.emplace_back(4, seconds / 4);
    for (std::size_t i = 0; i < steps.size(); ++i)
        samples.push_back(
            {communication[i], steps[i].data(), communication[i], 0, 0, communication[i] / 8, 9});
    const AmrSeries series{version.c_str(), static_cast<int>(samples.size()), samples.data(), wrong};
    std::FILE* const file = std::tmpfile();
    amr_write_line(file, &problem, meshes, "An MPI", &series);
    std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
    std::rewind(file);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
    std::fclose(file);
    return text;
}

void add(const std::string& side, const std::string& text, std::vector<Row>& rows, int round = 0) {
    std::string why;
    std::vector<Row> fresh;
    ASSERT_TRUE(amr_rows(text, side, round, fresh, why)) << why;
    const MeasuredOn on{
        .shape = "4x1", .hosts = 4, .ranks = 4, .settings = lab_link("1e6", "10000", "0.001")};
    for (Row& row : fresh) {
        EXPECT_EQ(row.context.at("mpi"), "An MPI");
        row.context = launch_row(on, "", "", "", 0, 0, {}).context;
        row.context["commit"] = "abc";
        rows.push_back(std::move(row));
    }
}

// Sends and receives take `sends` seconds and more, the persistent neighbourhoods with Thalweg `ours`.
std::vector<Row> rows(double sends, double ours) {
    std::vector<Row> made;
    add(native_side,
        line_of("isend", {sends + 0.1, sends + 0.1, 9}) + line_of("persistent", {sends, sends, sends}) +
            line_of("neighbor", {sends - 0.1}) + line_of("init", {sends - 0.1}),
        made);
    add(thalweg_side,
        line_of("isend", {sends}) + line_of("persistent", {sends}) + line_of("neighbor", {ours + 0.1}) +
            line_of("init", {ours, ours, ours}),
        made);
    add(again_side, line_of("isend", {sends}) + line_of("persistent", {sends * 1.05}), made);
    return made;
}

// Of each exchange on the first mesh (150000 - 10000) / 1e6 s and two latencies, on the second one latency.
constexpr double limit = 2 * (0.14 + 0.002) + 2 * (0.19 + 0.001);

TEST(Amr, TheLimitIsThatOfOneStageAfterTheOther) {
    std::vector<Row> all = rows(1, 0.7);
    EXPECT_NEAR(amr_limit_seconds(all[0]), limit, 1e-12);
    EXPECT_EQ(all[0].bytes, 60000u);
    EXPECT_EQ(all[0].seconds, (std::vector<double>{1.1, 1.1, 9}));
    EXPECT_DOUBLE_EQ(limit_seconds(all[0]), 0);  // nor is it a broadcast
    all[0].context["settings"]["THALWEG_LAB_BURST_BYTES"] = "160000";
    EXPECT_NEAR(amr_limit_seconds(all[0]), 2 * 0.002 + 2 * 0.041, 1e-12);
    all[0].context.erase("settings");
    EXPECT_DOUBLE_EQ(amr_limit_seconds(all[0]), 0);
}

TEST(Amr, NeighbourhoodsStandBesideTheFastestSends) {
    const auto lines = summarize_amr(rows(1, 0.7));
    ASSERT_EQ(lines.size(), 1u);
    const AmrLine& line = lines[0];
    EXPECT_EQ(line.face_bytes(), 4096u);
    EXPECT_EQ(line.exchanges, 4);
    EXPECT_EQ(line.meshes, 2);
    EXPECT_DOUBLE_EQ(line.link_bytes, 175000);
    EXPECT_DOUBLE_EQ(line.messages, 8);
    EXPECT_DOUBLE_EQ(line.message_bytes, 600000 / 16.0);
    EXPECT_DOUBLE_EQ(line.largest_bytes, 60000);
    EXPECT_NEAR(line.limit_seconds, limit, 1e-12);
    ASSERT_NE(fastest_sends(line), nullptr);
    EXPECT_EQ(fastest_sends(line)->name,
              "persistent");  // not the native neighbourhoods, though these took less
    EXPECT_EQ(fastest_sends(line)->again.size(), 1u);
    EXPECT_DOUBLE_EQ(fastest_sends(line)->native_made[0], 0.125);
    ASSERT_NE(fastest_of_ours(line), nullptr);
    EXPECT_EQ(fastest_of_ours(line)->name, "init");
    const AmrOutcome of = outcome(line, *fastest_of_ours(line));
    EXPECT_DOUBLE_EQ(of.of_sends.value, 0.7);
    EXPECT_NEAR(of.saved, 0.3, 1e-12);
    EXPECT_NEAR(of.most, 1 - limit, 1e-12);
    EXPECT_NEAR(of.of_limit, 0.7 / limit, 1e-12);
}

TEST(Amr, TheTargetIsMetByWhatIsSavedOrByTheLimit) {
    const auto told = [](double sends, double ours) {
        return format_amr_figures(summarize_amr(rows(sends, ours)), true);
    };
    EXPECT_NE(told(2, 1).find("| yes, less "), std::string::npos) << told(2, 1);
    EXPECT_NE(told(0.9, 0.72).find("| yes, near the limit "), std::string::npos) << told(0.9, 0.72);
    EXPECT_NE(told(0.9, 0.75).find("| no "), std::string::npos) << told(0.9, 0.75);
    EXPECT_NE(told(0.9, 0.75).find("| 1.05 "), std::string::npos) << told(0.9, 0.75);  // A/A
    EXPECT_EQ(format_amr_figures({}, true), "");
    EXPECT_EQ(format_amr_versions({}, true), "");
}

TEST(Amr, RoundsAddUpOtherMeshesStandApartAndOtherParametersAreLeftOut) {
    std::vector<Row> all = rows(1, 0.7);
    add(native_side, line_of("isend", {1, 1, 1}), all, 1);
    add(native_side, line_of("isend", {4}, 64, 3), all);
    std::vector<Row> old;
    add(native_side, line_of("waitall", {0.1}), old);
    old[0].app["parameters"]["steps"] = 40;
    all.insert(all.begin(), old.begin(), old.end());
    const auto lines = summarize_amr(all);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0].rounds, 2);
    EXPECT_EQ(lines[0].versions[0].native.size(), 6u);
    EXPECT_EQ(lines[0].versions.size(), 4u);
    EXPECT_EQ(lines[0].wrong, 0u);
    EXPECT_EQ(lines[1].face_bytes(), 16384u);
    EXPECT_EQ(lines[1].wrong, 1u);
    EXPECT_EQ(fastest_of_ours(lines[1]), nullptr);
}

TEST(Amr, RowsMakeASectionAndAPlaceAtAGlance) {
    const std::vector<Row> all = rows(1, 0.7);
    const std::string page = document(all);
    EXPECT_NE(page.find("\n## The exchange of a refined mesh\n"), std::string::npos);
    EXPECT_NE(page.find("0.70 [0.70, "), std::string::npos) << page;
    EXPECT_EQ(page.find("\n## Applications\n"), std::string::npos);
    EXPECT_EQ(document({}).find("refined mesh"), std::string::npos);
    const auto points = glance(all);
    ASSERT_EQ(points.size(), 5u);  // the target, and each version against itself
    EXPECT_EQ(points[0].where, "4 KiB faces, init");
    EXPECT_DOUBLE_EQ(points[0].ratio.value, 0.7);
    EXPECT_NEAR(points[0].of_limit, 0.7 / limit, 1e-12);
    EXPECT_EQ(points[1].where, "4 KiB faces, isend");
    EXPECT_EQ(points[1].compared, "the same program");
}

TEST(Amr, LinesOfAnotherProgramAreRefused) {
    std::vector<Row> made;
    std::string why;
    EXPECT_TRUE(amr_rows("", native_side, 0, made, why));
    EXPECT_TRUE(made.empty());
    for (const char* text : {"{}", "no JSON", "[]"}) {
        why.clear();
        EXPECT_FALSE(amr_rows(text, native_side, 0, made, why)) << text;
        EXPECT_NE(why.find("not what amr writes"), std::string::npos) << why;
    }
}

TEST(Amr, TwoMeshesAreMeasured) {
    const auto cases = amr_cases();
    ASSERT_EQ(cases.size(), 2u);
    for (const AppCase& each : cases) {
        EXPECT_EQ(each.program, "amr");
        EXPECT_EQ(each.again, "isend,waitall,persistent");
        // Each exchange is on a mesh that changes after the same number of them.
        EXPECT_EQ((each.known.at("steps").get<int>() + 1) % each.known.at("refine-every").get<int>(), 0);
    }
    EXPECT_NE(cases[0].known, cases[1].known);
}

}  // namespace
}  // namespace thalweg::bench
