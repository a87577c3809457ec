// An interrupted run goes on where it was cut off; what was measured otherwise is measured again.
#include "bench/resume.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launch_row.h"

namespace thalweg::bench {
namespace {

Shape shape() {
    Shape made;
    made.mpi = "mpich";
    made.hosts = 4, made.ppn = 2;
    return made;
}

Row row(const char* phase, const char* column, std::uint64_t bytes) {
    Row made = launch_row({}, "bcast", phase, column, 0, bytes, {});
    made.context["settings"] = {{"THALWEG_LAB_RATE_BYTES_PER_S", "1e6"},
                                {"THALWEG_MPI_LIBRARY", "libmpi.so"}};
    return made;
}

const nlohmann::json nothing = nlohmann::json::object();

TEST(Resume, WhatTheFileHasIsDoneAndTheRestIsMissing) {
    const std::vector<ColumnPlan> columns = all_columns("mpich", "bcast", {});
    std::vector<Row> rows;
    for (const auto& column : columns) rows.push_back(row("screen", column.name.c_str(), 65536));
    rows.pop_back();  // cut off here
    const Done done(rows, "bcast", shape(), nothing);
    EXPECT_TRUE(done.has("screen", "native", 65536));
    EXPECT_FALSE(done.has("screen", "native", 262144));
    EXPECT_FALSE(done.has("decide", "native", 65536));
    const auto missing = done.missing("screen", columns, 65536);
    ASSERT_EQ(missing.size(), 1u);
    EXPECT_EQ(missing[0].name, columns.back().name);
    EXPECT_EQ(done.missing("screen", columns, 262144).size(), columns.size());
}

// Columns that came to the list later are screened beside old pairs, and may be faster than what has them.
TEST(Resume, ADecisionEndsWhereALaterScreenFindsAFasterNative) {
    const auto timed = [](const char* phase, const char* column, double seconds, std::uint64_t launch) {
        Row made = row(phase, column, 65536);
        made.seconds = {seconds, seconds, seconds};
        made.launch = launch;
        return made;
    };
    std::vector<Row> rows{timed("screen", "native", 3, 1), timed("screen", "native quick", 1, 1),
                          timed("decide", "native", 3, 2), timed("decide", "native ring", 2, 2),
                          timed("decide", "thalweg", 1, 2)};
    const auto decided = [&](std::uint64_t bytes) {
        return Done(rows, "bcast", shape(), nothing).decided(bytes);
    };
    EXPECT_TRUE(decided(65536));  // what was known then was judged then
    EXPECT_FALSE(decided(262144));
    rows.push_back(timed("screen", "native slow", 2.5, 3));
    rows.push_back(timed("screen", "thalweg chain", 0.5, 3));
    rows.push_back(timed("screen", "native (A/A)", 1.5, 3));
    EXPECT_TRUE(decided(65536));
    rows.push_back(timed("screen", "native chain", 1.9, 3));
    EXPECT_FALSE(decided(65536));
    rows.push_back(timed("decide", "native chain", 1.9, 4));
    EXPECT_TRUE(decided(65536));
}

// Few pairs will do where the native against itself is steady.
TEST(Resume, NoisyPairsAreWantedInFullNumber) {
    const auto timed = [](const char* column, double spread, std::size_t pairs, std::uint64_t launch) {
        Row made = row("decide", column, 65536);
        for (std::size_t i = 0; i < pairs; ++i) made.seconds.push_back(1 + (i % 2 == 0 ? spread : -spread));
        made.launch = launch;
        return made;
    };
    const auto wanted = [](const std::vector<Row>& rows) {
        return Done(rows, "bcast", shape(), nothing).wants_more_pairs(65536, 30);
    };
    std::vector<Row> rows{timed("native", 0.1, 10, 1)};
    EXPECT_FALSE(wanted({}));
    EXPECT_FALSE(wanted(rows));  // nothing to compare it with
    rows.push_back(timed("native (A/A)", 0.1, 10, 1));
    EXPECT_TRUE(wanted(rows));
    EXPECT_FALSE(Done(rows, "bcast", shape(), nothing).wants_more_pairs(65536, 10));
    std::vector<Row> steady{timed("native", 0.01, 10, 1), timed("native (A/A)", 0.01, 10, 1)};
    EXPECT_FALSE(wanted(steady));
    // The newest pairs count, however noisy: they are all there can be.
    rows.push_back(timed("native", 0.1, 30, 2));
    rows.push_back(timed("native (A/A)", 0.1, 30, 2));
    EXPECT_FALSE(wanted(rows));
}

TEST(Resume, RowsOfAnotherShapeMpiRateOrNumberOfLinksAreNotHere) {
    const Row measured = row("screen", "native", 65536);
    EXPECT_TRUE(measured_here(measured, shape(), nothing));
    Shape other = shape();
    other.ppn = 1;
    EXPECT_FALSE(measured_here(measured, other, nothing));
    other = shape(), other.mpi = "openmpi";
    EXPECT_FALSE(measured_here(measured, other, nothing));
    other = shape(), other.rate = "50mbit";
    EXPECT_FALSE(measured_here(measured, other, nothing));
    other = shape(), other.rails = 2;
    EXPECT_FALSE(measured_here(measured, other, nothing));
}

TEST(Resume, ARowWhoseSettingsChangedIsMeasuredAgain) {
    Row measured = row("screen", "thalweg", 65536);
    EXPECT_FALSE(measured_here(measured, shape(), {{"THALWEG_AGENT", "off"}}));
    measured.context["settings"]["THALWEG_AGENT"] = "off";
    EXPECT_TRUE(measured_here(measured, shape(), {{"THALWEG_AGENT", "off"}}));
    EXPECT_FALSE(measured_here(measured, shape(), {{"THALWEG_AGENT", "sleep"}}));
    EXPECT_FALSE(measured_here(measured, shape(), nothing));
    EXPECT_FALSE(Done({measured}, "bcast", shape(), nothing).has("screen", "thalweg", 65536));
}

TEST(Resume, WhatAColumnSetsIsPartOfItAndNotOfTheRun) {
    Row measured = row("overlap", "thalweg agent=off", 65536);
    measured.context["environment"] = "THALWEG_AGENT=off THALWEG_INSIDE=coop";
    measured.context["settings"]["THALWEG_AGENT"] = "off";
    measured.context["settings"]["THALWEG_INSIDE"] = "coop";
    EXPECT_TRUE(measured_here(measured, shape(), nothing));
    EXPECT_FALSE(measured_here(measured, shape(), {{"THALWEG_WAIT", "spin"}}));
}

TEST(Resume, OptionsOfTheEnvironmentSteerButWhereFilesLieDoesNot) {
    ASSERT_EQ(setenv("THALWEG_WAIT", "spin", 1), 0);
    ASSERT_EQ(setenv("THALWEG_TUNING", "/somewhere/table.json", 1), 0);
    ASSERT_EQ(setenv("THALWEG_REPORT", "-", 1), 0);
    ASSERT_EQ(setenv("THALWEG_NO_SUCH_OPTION", "1", 1), 0);
    const auto settings = steering_settings();
    for (const char* name : {"THALWEG_WAIT", "THALWEG_TUNING", "THALWEG_REPORT", "THALWEG_NO_SUCH_OPTION"})
        unsetenv(name);
    EXPECT_EQ(settings, (nlohmann::json{{"THALWEG_WAIT", "spin"}, {"THALWEG_TUNING", "table.json"}}));
}

// Killed, or out of room, in the middle of a row: the rows before it count, and the next one is whole.
TEST(Resume, ARowThatWasCutOffIsMeasuredAgain) {
    const std::string file = testing::TempDir() + "/thalweg-resume-" + std::to_string(getpid()) + ".jsonl";
    std::string why;
    ASSERT_TRUE(append_rows(file, {row("screen", "native", 65536), row("screen", "thalweg", 65536)}, why));
    const std::uintmax_t whole = std::filesystem::file_size(file);
    for (const std::uintmax_t lost : {1, 20, 200}) {
        std::filesystem::resize_file(file, whole - lost);
        std::vector<Row> rows;
        ASSERT_TRUE(read_rows({file}, rows, why)) << why;
        EXPECT_EQ(rows.size(), lost == 1 ? 2u : 1u);  // only the end of the line
        ASSERT_TRUE(append_rows(file, {row("screen", "thalweg", 65536)}, why));
        rows.clear();
        ASSERT_TRUE(read_rows({file}, rows, why)) << why;
        EXPECT_EQ(rows.size(), lost == 1 ? 3u : 2u);
        std::filesystem::resize_file(file, whole);
    }
    // What is no row of ours is refused, and stays.
    std::ofstream(file) << "notes of mine";
    std::vector<Row> rows;
    EXPECT_FALSE(read_rows({file}, rows, why));
    EXPECT_EQ(std::filesystem::file_size(file), 13u);
    std::filesystem::remove(file);
}

}  // namespace
}  // namespace thalweg::bench
