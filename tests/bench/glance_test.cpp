// The front of the page of measurements: gains, what is slower, and what was not measured, from the rows
// alone.
#include "bench/glance.h"

#include <gtest/gtest.h>

#include "bench/document.h"
#include "bench/exchange.h"
#include "bench/halo.h"
#include "bench/small.h"
#include "bench/waiters.h"
#include "launch_row.h"

namespace thalweg::bench {
namespace {

Row row(const std::string& mpi, const std::string& column, std::uint64_t bytes, std::vector<double> seconds) {
    const MeasuredOn on{.mpi = mpi, .hosts = 4, .ranks = 8, .settings = lab_link("1048576", "0", "0")};
    return launch_row(on, "bcast", "decide", column, bytes, bytes, std::move(seconds));
}

constexpr std::uint64_t mib = 1 << 20;

// 4 and 1 times as fast as the default under MPICH; but slower than its ring at 2 MiB.
std::vector<Row> measured() {
    return {row("mpich", "native", mib, {4, 4, 4}), row("mpich", "thalweg", mib, {1, 1, 1}),
            row("mpich", "native", 2 * mib, {3, 3, 3}), row("mpich", "thalweg", 2 * mib, {3, 3, 3}),
            row("mpich", "native ring", 2 * mib, {2, 2, 2})};
}

TEST(Glance, APointStandsBesideTheDefaultAndIsDecidedBesideTheBest) {
    const auto points = glance(measured());
    ASSERT_EQ(points.size(), 2u);
    EXPECT_EQ(points[0].operation, "MPI_Bcast");
    EXPECT_EQ(points[0].where, "1 MiB");
    EXPECT_DOUBLE_EQ(points[0].ratio.value, 0.25);
    EXPECT_DOUBLE_EQ(points[0].of_limit, 1);
    EXPECT_EQ(points[0].decision, Verdict::not_slower);
    EXPECT_EQ(points[0].than, "");
    EXPECT_DOUBLE_EQ(points[1].ratio.value, 1);
    EXPECT_EQ(points[1].decision, Verdict::slower);
    EXPECT_EQ(points[1].than, "its ring");
    EXPECT_DOUBLE_EQ(points[1].decided_by.value, 1.5);
}

TEST(Glance, TheFrontSaysWhatIsFasterWhatIsSlowerAndWhatIsNotThere) {
    const std::string text = glance_section(measured());
    EXPECT_NE(text.find("**2.00** (1.00 to 4.00)"), std::string::npos) << text;
    EXPECT_NE(text.find("1.25, worst 1.50"), std::string::npos) << text;
    EXPECT_NE(text.find("2 MiB: 1.500 of its ring"), std::string::npos) << text;
    EXPECT_NE(text.find("**not measured**"), std::string::npos) << text;  // under the other two
    EXPECT_NE(text.find("more than 4 hosts or 8 ranks"), std::string::npos) << text;
    for (const char* left : {"over InfiniBand", "`mpi_f08`", "standard ABI", "`agent=sibling`"})
        EXPECT_NE(text.find(left), std::string::npos) << left << " in\n" << text;
    EXPECT_EQ(glance_section({}), "");
}

TEST(Glance, WhatIsNowhereSlowerHasNoListOfIt) {
    const std::string text =
        glance_section({row("impi", "native", mib, {4, 4, 4}), row("impi", "thalweg", mib, {1, 1, 1})});
    EXPECT_EQ(text.find("### Where it is slower"), std::string::npos) << text;
    EXPECT_NE(text.find("| 4.00"), std::string::npos) << text;
}

TEST(Glance, AFirstLookDecidesNothing) {
    std::vector<Row> rows{row("impi", "native", mib, {4, 4, 4}), row("impi", "thalweg", mib, {1, 1, 1})};
    for (Row& each : rows) each.phase = "screen";
    const auto points = glance(rows);
    ASSERT_EQ(points.size(), 1u);
    EXPECT_EQ(points[0].decision, Verdict::undecided);
}

TEST(Glance, ShortCallsAreAllowedWhatTheirTableAllows) {
    std::vector<Row> rows;
    for (const char* column : {"native", "thalweg"}) {
        rows.push_back(row("openmpi", column, 8, {1e-6}));
        rows.back().phase = small_phase;
        rows.back().calls = {
            {"count", 1000}, {"median_ns", std::string(column) == "native" ? 400 : 500}, {"p99_ns", 900}};
    }
    const auto points = glance(rows);
    ASSERT_EQ(points.size(), 1u);
    EXPECT_DOUBLE_EQ(points[0].ratio.value, 1.25);
    EXPECT_EQ(points[0].decision, Verdict::not_slower);  // by 100 of 150 ns
}

// A plan may be slower than the library's own plan and faster than its calls: who plans has the former
// without Thalweg.
TEST(Glance, PlansStandBesideNativePlansAndBesideNativeCalls) {
    std::vector<Row> rows;
    const auto add = [&](const std::string& column, double seconds) {
        Row made = row("mpich", column, 4096, {seconds, seconds, seconds});
        made.phase = exchange_phase, made.collective = "alltoallv", made.launch = 1;
        made.exchange = {
            {"pattern", "dense"}, {"link_bytes", 1048576}, {"init_seconds", {0.5}}, {"free_seconds", {0.0}}};
        rows.push_back(std::move(made));
    };
    add("native", 3);
    add("native init", 1);
    add("thalweg init", 1.5);
    add("thalweg init spread", 1);  // asked for: not what a program gets
    const auto points = glance(rows);
    ASSERT_EQ(points.size(), 2u);
    EXPECT_EQ(points[0].operation, "MPI_Alltoallv_init, started again and again");
    EXPECT_EQ(points[0].compared, "its MPI_Alltoallv_init");
    EXPECT_DOUBLE_EQ(points[0].ratio.value, 1.5);
    EXPECT_EQ(points[0].decision, Verdict::slower);
    EXPECT_EQ(points[1].operation, "MPI_Alltoallv_init, in the place of repeated calls");
    EXPECT_EQ(points[1].compared, "its MPI_Alltoallv");
    EXPECT_DOUBLE_EQ(points[1].ratio.value, 0.5);
    EXPECT_NE(glance_section(rows).find("dense 4 KiB: 1.500"), std::string::npos) << glance_section(rows);
    // A library without plans has none to stand beside.
    rows.erase(rows.begin() + 1);
    ASSERT_EQ(glance(rows).size(), 1u);
    EXPECT_EQ(glance(rows)[0].compared, "its MPI_Alltoallv");
}

// A call that is waited for at once may be slower than the library's own nonblocking one and faster than the
// one that blocks, and is judged by each.
TEST(Glance, NonblockingNeighbourhoodsStandBesideBothNativeForms) {
    HaloGrid grid;
    grid.ranks = {4, 2, 1}, grid.cells = {16, 16, 16};
    std::vector<Row> rows;
    const auto add = [&](const std::string& column, double seconds) {
        Row made = row("mpich", column, 2048, {seconds, seconds, seconds});
        made.phase = halo_phase, made.collective = "halo", made.launch = 1;
        made.halo = to_json(grid);
        made.halo.update({{"link_bytes", 1048576},
                          {"wire_bytes", 4194304},
                          {"inside_bytes", 0},
                          {"packed_bytes", 0},
                          {"copied_bytes_per_s", 1e9},
                          {"copiers", 8},
                          {"cores", 2},
                          {"make_seconds", {0.5}}});
        rows.push_back(std::move(made));
    };
    add("native", 3);
    add("native nonblocking", 1);
    add("thalweg nonblocking", 1.5);
    add("thalweg nonblocking spread", 1);  // asked for: not what a program gets
    add("native init", 1);
    add("thalweg init", 1.2);
    const auto all = glance(rows);
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all[0].compared, "its MPI_Neighbor_alltoallw_init");
    EXPECT_DOUBLE_EQ(all[0].ratio.value, 1.2);
    EXPECT_EQ(all[0].decision, Verdict::slower);
    EXPECT_EQ(all[1].operation, "MPI_Neighbor_alltoallw_init, in the place of repeated calls");
    EXPECT_DOUBLE_EQ(all[1].ratio.value, 0.4);
    rows.resize(rows.size() - 2);
    const auto points = glance(rows);
    ASSERT_EQ(points.size(), 2u);
    EXPECT_EQ(points[0].operation, "MPI_Ineighbor_alltoallw, waited for at once");
    EXPECT_EQ(points[0].compared, "its MPI_Ineighbor_alltoallw");
    EXPECT_DOUBLE_EQ(points[0].ratio.value, 1.5);
    EXPECT_EQ(points[0].decision, Verdict::slower);
    EXPECT_DOUBLE_EQ(points[0].of_limit, 1.5);  // 1 MiB over a link of 1 MiB per second
    EXPECT_EQ(points[1].compared, "its MPI_Neighbor_alltoallw");
    EXPECT_DOUBLE_EQ(points[1].ratio.value, 0.5);
    EXPECT_EQ(points[1].decision, Verdict::not_slower);
    const std::string text = glance_section(rows);
    EXPECT_NE(text.find("4x2x1 ranks of 16x16x16 cells: 1.500"), std::string::npos) << text;

    // Other stencils over the same cells are told apart.
    grid.corners = true;
    for (Row& each : rows) each.halo.update(to_json(grid));
    EXPECT_EQ(glance(rows).at(0).where, "4x2x1 ranks of 16x16x16 cells, 27 points");
    grid.corners = false, grid.upwind = true;
    for (Row& each : rows) each.halo.update(to_json(grid));
    EXPECT_EQ(glance(rows).at(0).where, "4x2x1 ranks of 16x16x16 cells, upwind");
}

TEST(Glance, WaysToSleepThatThisProcessorLacksAreNamed) {
    std::vector<Row> rows = measured();
    for (const bool exercised : {true, false}) {
        Row waiter;
        waiter.context = nlohmann::json::object();
        waiter.column = exercised ? "futex" : "umwait";
        waiter.phase = waiters_phase;
        waiter.waiter = {{"exercised", exercised}, {"why", exercised ? "" : "no WAITPKG"}};
        rows.push_back(std::move(waiter));
    }
    EXPECT_EQ(ways_not_exercised(rows), "umwait (no WAITPKG)");
    EXPECT_NE(glance_section(rows).find("umwait (no WAITPKG)"), std::string::npos);
}

TEST(Glance, ThePageBeginsWithIt) {
    const std::string page = document(measured());
    const auto front = page.find("## At a glance"), tables = page.find("## Broadcast between hosts");
    ASSERT_NE(front, std::string::npos);
    ASSERT_NE(tables, std::string::npos);
    EXPECT_LT(front, tables);
}

}  // namespace
}  // namespace thalweg::bench
