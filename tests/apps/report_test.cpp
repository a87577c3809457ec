// What overlap can win and has won; how work is slowed down and cut into pieces; what is written down.
#include "common/report.h"

#include <gtest/gtest.h>

#include "common/arithmetic.h"
#include "common/version.h"
#include "common/work.h"

namespace thalweg::apps {
namespace {

Series series(const std::string& version, double total, std::vector<double> gathers,
              std::vector<double> windows) {
    Series made{version, {}, {}};
    // The median of three, so that it is neither the first nor the mean.
    for (const double factor : {1.0, 3.0, 0.9}) {
        Sample sample{factor * total, 0, 0, 0, gathers, windows};
        made.samples.push_back(sample);
    }
    return made;
}

TEST(Arithmetic, HidesTheLesserOfAllgatherAndWorkInEachStage) {
    EXPECT_DOUBLE_EQ(hideable_seconds({3}, {5}), 3);
    EXPECT_DOUBLE_EQ(hideable_seconds({5}, {3}), 3);
    EXPECT_DOUBLE_EQ(hideable_seconds({5, 1}, {3, 4}), 4);
    EXPECT_DOUBLE_EQ(hideable_seconds({6}, {2, 4}), 5);  // an allgather in one piece, taken in halves
    EXPECT_DOUBLE_EQ(hideable_seconds({}, {2}), 0);
}

TEST(Arithmetic, ComparesWithTheBlockingVersionAndItsOwnAllgather) {
    // Blocking: 4 gathered, 10 worked, of which 3 + 5 beside; waited: slower, 3 + 2 gathered.
    const std::vector<Series> all{series("blocking", 14, {4}, {3, 5}), series("waited", 15, {3, 2}, {3, 5}),
                                  series("nonblocking", 11, {0.5, 0.5}, {3.5, 5.5})};
    const Comparison found = compare(all[2], all);
    EXPECT_TRUE(found.possible && found.measured_hiding);
    EXPECT_DOUBLE_EQ(found.blocking_total, 14);
    EXPECT_DOUBLE_EQ(found.saved, 3);
    EXPECT_DOUBLE_EQ(found.ceiling, 4);
    EXPECT_DOUBLE_EQ(found.hideable, 5);
    EXPECT_DOUBLE_EQ(found.hidden, 4);
    EXPECT_FALSE(compare(all[2], {all[2]}).possible);
    EXPECT_FALSE(compare(all[2], {all[2]}).measured_hiding);
}

TEST(Arithmetic, SlowerThanBlockingIsNegative) {
    const std::vector<Series> all{series("blocking", 10, {4}, {4}), series("manual/4", 12, {4}, {4})};
    EXPECT_DOUBLE_EQ(compare(all[1], all).saved, -2);
}

TEST(Report, ComesBackFromItsLines) {
    Report report{"radix_sort", "a title", {{"keys", 10}}, {}, "everything", "an MPI"};
    report.series = {series("blocking", 14, {4}, {3, 5}), series("waited", 15, {3, 2}, {3, 5})};
    report.series[1].wrong = "one key";
    std::vector<Report> read;
    std::string why;
    ASSERT_TRUE(read_reports(json_lines(report), read, why)) << why;
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0].app, "radix_sort");
    EXPECT_EQ(read[0].parameters, report.parameters);
    EXPECT_EQ(read[0].library, "an MPI");
    ASSERT_EQ(read[0].series.size(), 2u);
    EXPECT_EQ(read[0].series[1].wrong, "one key");
    EXPECT_EQ(read[0].series[1].samples.size(), 3u);
    EXPECT_EQ(read[0].series[1].samples[1].total, 45);
    EXPECT_EQ(read[0].series[1].samples[1].windows, (std::vector<double>{3, 5}));
    EXPECT_FALSE(report.correct());
    EXPECT_FALSE(read_reports("{}", read, why));
    EXPECT_NE(why, "");
}

TEST(Report, IsWrittenWhateverTheNameOfAFile) {
    Report report{"conjugate_gradient", "a title", {{"matrix", "w\xe4rme.mtx"}}, {}, "everything", "an MPI"};
    report.series = {series("blocking", 14, {4}, {3})};
    std::vector<Report> read;
    std::string why;
    ASSERT_TRUE(read_reports(json_lines(report), read, why)) << why;
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0].parameters.at("matrix"), "w\xef\xbf\xbdrme.mtx");
}

TEST(Report, TableSaysWhatIsWrongAndShowsTheArithmetic) {
    Report report{"radix_sort", "a title", {}, {}, "everything", "an MPI"};
    report.series = {series("blocking", 14e-3, {4e-3}, {3e-3}), series("waited", 15e-3, {5e-3}, {3e-3}),
                     series("nonblocking", 12e-3, {1e-3}, {3e-3})};
    std::string text = format_report(report);
    EXPECT_NE(
        text.find("min(4.00 ms, 3.00 ms), is 3.00 ms; that is 21.4 % of the blocking version's 14.00 ms"),
        std::string::npos)
        << text;
    EXPECT_NE(text.find("min(5.00 ms, 3.00 ms) = 3.00 ms"), std::string::npos) << text;
    EXPECT_NE(text.find("checked: everything"), std::string::npos) << text;
    report.series[2].wrong = "one key is missing";
    text = format_report(report);
    EXPECT_NE(text.find("WRONG, nonblocking: one key is missing"), std::string::npos) << text;
    EXPECT_EQ(text.find("checked:"), std::string::npos) << text;
}

TEST(Versions, ManualIsOneForEachNumberOfPieces) {
    std::vector<Version> versions;
    std::string why;
    ASSERT_TRUE(parse_versions({"blocking", "manual", "waited", "nonblocking"}, {4, 9}, versions, why));
    std::vector<std::string> names;
    for (const auto& version : versions) names.push_back(version.name());
    EXPECT_EQ(names, (std::vector<std::string>{"blocking", "manual/4", "manual/9", "waited", "nonblocking"}));
    EXPECT_FALSE(parse_versions({"blockng"}, {4}, versions, why));
    EXPECT_NE(why.find("blockng"), std::string::npos);
}

TEST(Work, PiecesCoverAllItemsOnceAndInOrder) {
    for (const std::size_t items : {0, 1, 5, 64, 1000})
        for (const int pieces : {1, 3, 64}) {
            std::size_t next = 0;
            int between = 0, last = 0;
            work_in_pieces(
                items, pieces, 0,
                [&](std::size_t begin, std::size_t end) {
                    EXPECT_EQ(begin, next);
                    EXPECT_LE(begin, end);
                    next = end;
                },
                [&](bool is_last) {
                    ++between;
                    last += is_last;
                });
            EXPECT_EQ(next, items);
            EXPECT_EQ(between, pieces);
            EXPECT_EQ(last, 1);
        }
}

TEST(Work, SleepsItsSlowdownOnceHoweverManyPieces) {
    sharpen_sleep();
    for (const int pieces : {1, 50}) {
        const double begin = now();
        double between = 0;
        const double worked = work_in_pieces(
            50, pieces, 0.05, [](std::size_t, std::size_t) {},
            [&](bool) {
                const double start = now();
                sleep_for(1e-3);
                between += now() - start;
            });
        const double passed = now() - begin;
        EXPECT_GE(worked, 0.05 - 1e-6) << pieces;
        // What lies between the pieces is not work.
        EXPECT_LE(worked + between, passed + 1e-6) << pieces;
    }
}

}  // namespace
}  // namespace thalweg::apps
