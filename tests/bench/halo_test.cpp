// The cells of a halo exchange, moved by hand instead of by MPI: the check must accept what is right and see
// what is not; what a request asks for; and what rows say about limits.
#include "bench/halo.h"

#include <gtest/gtest.h>

#include "bench/columns.h"
#include "bench/document.h"
#include "bench/halo_overlap.h"
#include "bench/halo_table.h"
#include "driver/halo_memory.h"
#include "launch_row.h"

namespace thalweg::bench {
namespace {

HaloGrid make(std::vector<int> ranks, std::vector<int> cells, bool corners, bool periodic) {
    HaloGrid grid;
    grid.ranks = std::move(ranks);
    grid.cells = std::move(cells);
    grid.corners = corners;
    grid.periodic = periodic;
    return grid;
}

// All ranks of a grid; rank / 2 is its host.
std::vector<HaloMemory> all_ranks(const HaloGrid& grid) {
    std::vector<int> host_of;
    for (int rank = 0; rank < grid.size(); ++rank) host_of.push_back(rank / 2);
    std::vector<HaloMemory> all;
    for (int rank = 0; rank < grid.size(); ++rank) all.emplace_back(grid, rank, host_of);
    return all;
}

// The k-th message to a peer becomes the k-th that it has from this rank.
void exchange(std::vector<HaloMemory>& ranks) {
    for (std::size_t from = 0; from < ranks.size(); ++from)
        for (std::size_t to = 0; to < ranks.size(); ++to) {
            std::vector<HaloMessage> leaving, arriving;
            for (const auto& each : ranks[from].part().outgoing)
                if (each.peer == static_cast<int>(to)) leaving.push_back(each);
            for (const auto& each : ranks[to].part().incoming)
                if (each.peer == static_cast<int>(from)) arriving.push_back(each);
            for (std::size_t k = 0; k < leaving.size(); ++k) {
                std::vector<std::uint64_t> cells(leaving[k].box.cells());
                ranks[from].pack(leaving[k].box, cells.data());
                ranks[to].unpack(arriving[k].box, cells.data());
            }
        }
}

TEST(HaloMemory, WhatIsRightIsAccepted) {
    for (const bool corners : {false, true})
        for (const bool periodic : {false, true})
            for (const HaloGrid& grid :
                 {make({3}, {5}, corners, periodic), make({2, 1, 3}, {3, 4, 2}, corners, periodic),
                  make({1, 2, 1, 2}, {2, 3, 1, 2}, corners, periodic)}) {
                auto ranks = all_ranks(grid);
                for (const std::uint64_t seed : {7, 8}) {
                    for (auto& rank : ranks) rank.fill(seed);
                    exchange(ranks);
                    for (const auto& rank : ranks) {
                        EXPECT_EQ(rank.count_wrong(seed), 0u) << grid.text();
                        EXPECT_EQ(rank.count_wrong_anywhere(seed), 0u) << grid.text();
                    }
                }
            }
}

TEST(HaloMemory, EveryCellThatIsWrongIsSeen) {
    const HaloGrid grid = make({2, 2, 1}, {3, 4, 5}, false, false);
    auto ranks = all_ranks(grid);
    for (auto& rank : ranks) rank.fill(1);
    for (const auto& rank : ranks) EXPECT_GT(rank.count_wrong(1), 0u);  // the halo is poisoned
    exchange(ranks);
    HaloMemory& victim = ranks[2];
    const std::size_t cells = 5 * 6 * 7;
    std::size_t seen_at_once = 0;
    for (std::size_t i = 0; i < cells; ++i) {
        victim.cells()[i] ^= 1u << (i % 8);
        EXPECT_GE(victim.count_wrong_anywhere(1), 1u) << i;
        seen_at_once += victim.count_wrong(1) > 0;
        EXPECT_EQ(victim.count_wrong_elsewhere(), victim.count_wrong(1) > 0 ? 0u : 1u) << i;
        victim.cells()[i] ^= 1u << (i % 8);
    }
    // Rank 2 is at one end of both dimensions: a face of 4 x 5 and one of 3 x 5 arrive, and two leave, which
    // share 5 cells.
    EXPECT_EQ(seen_at_once, 20u + 15u + (20u + 15u - 5u));
    // What came from the call before.
    for (auto& rank : ranks) rank.fill(2);
    exchange(ranks);
    EXPECT_EQ(victim.count_wrong(1), 20u + 15u + 20u + 15u);  // shared cells once for each face
    // A cell beyond a border, whatever came and went since.
    victim.cells()[0] = 0;
    for (auto& rank : ranks) rank.fill(3);
    exchange(ranks);
    EXPECT_EQ(victim.count_wrong(3), 0u);
    EXPECT_EQ(victim.count_wrong_elsewhere(), 1u);
    victim.reset();
    EXPECT_GT(victim.count_wrong(3), 0u);
    EXPECT_EQ(victim.count_wrong_elsewhere(), 0u);
}

TEST(HaloMemory, KnowsWhoIsNear) {
    const auto ranks = all_ranks(make({4}, {2}, false, true));
    EXPECT_TRUE(ranks[2].is_near(3));
    EXPECT_FALSE(ranks[2].is_near(1));
}

TEST(HaloRequest, GridsOfARequest) {
    HaloRequest request;
    request.cells = {"64", "8x16x2"};
    request.points = 27;
    std::vector<HaloGrid> grids;
    std::string why;
    ASSERT_TRUE(read_grids(request, 12, grids, why)) << why;
    ASSERT_EQ(grids.size(), 2u);
    EXPECT_EQ(grids[0].text(), "3x2x2 ranks of 64x64x64 cells, 27 points");
    EXPECT_EQ(grids[1].text(), "3x2x2 ranks of 8x16x2 cells, 27 points");
    EXPECT_EQ(halo_grid(to_json(grids[1])).text(), grids[1].text());
    const auto refused = [&](auto change) {
        HaloRequest wrong = request;
        change(wrong);
        why.clear();
        return !read_grids(wrong, 12, grids, why) && !why.empty();
    };
    EXPECT_TRUE(refused([](HaloRequest& r) { r.grid = "2x2x2"; }));
    EXPECT_TRUE(refused([](HaloRequest& r) { r.grid = "65536x65536x3"; }));
    EXPECT_TRUE(refused([](HaloRequest& r) { r.grid = "12"; }));
    EXPECT_TRUE(refused([](HaloRequest& r) { r.dims = 5; }));
    EXPECT_TRUE(refused([](HaloRequest& r) { r.points = 9; }));
    EXPECT_TRUE(refused([](HaloRequest& r) { r.cells = {"8x8"}; }));
    EXPECT_TRUE(refused([](HaloRequest& r) { r.cells = {"many"}; }));
}

TEST(HaloColumns, SettingsComeOnceMoreBesideTheirNative) {
    const auto columns = halo_columns({"THALWEG_TRANSPORT=shm THALWEG_AGENT=sleep"});
    int apart = 0;
    for (const auto& column : columns) {
        if (column.environment.empty()) {
            EXPECT_EQ(column.name.find(setting_begins), std::string::npos);
            continue;
        }
        ++apart;
        EXPECT_EQ(column.environment, "THALWEG_TRANSPORT=shm THALWEG_AGENT=sleep");
        EXPECT_NE(column.name.find(" [transport=shm agent=sleep]"), std::string::npos) << column.name;
    }
    EXPECT_EQ(apart, 8);
}

TEST(HaloColumns, AlgorithmsAreMeasuredAsPlansBesides) {
    const auto usual = halo_columns({}), more = halo_columns({}, {"pairwise:ahead=3"});
    ASSERT_EQ(more.size(), usual.size() + 1);
    EXPECT_EQ(more.back().name, "thalweg init pairwise:ahead=3");
    EXPECT_EQ(more.back().variant, "thalweg_init");
    EXPECT_EQ(more.back().option, "pairwise:ahead=3");
}

Row row(const std::string& column, std::uint64_t launch, std::vector<double> seconds) {
    const MeasuredOn on{.hosts = 4, .ranks = 8, .settings = lab_link("1000000", "0", "0.0")};
    Row made = launch_row(on, "halo", halo_phase, column, launch, 2048, std::move(seconds));
    made.context["settings"]["THALWEG_LAB_CPU_S_PER_BYTE"] = "0";
    made.context.update({{"mpi", "MPICH"}, {"commit", "abc"}, {"date", "2026-01-01"}});
    made.halo = to_json(make({2, 2, 2}, {16, 16, 16}, false, false));
    made.halo.update({{"link_bytes", 100000},
                      {"wire_bytes", 400000},
                      {"inside_bytes", 500000},
                      {"packed_bytes", 300000},
                      {"copied_bytes_per_s", 10000000.0},
                      {"copiers", 8},
                      {"cores", 2},
                      {"make_seconds", {0.5}}});
    return made;
}

TEST(HaloTable, LimitsCeilingsAndWhatStandsBesideWhat) {
    std::vector<Row> rows{row("native", 1, {0.4, 0.4, 0.4}),
                          row("native (A/A)", 1, {0.44, 0.44, 0.44}),
                          row("isend parted", 1, {0.3, 0.3, 0.3}),
                          row("isend", 1, {0.24, 0.24, 0.24}),
                          row("thalweg init", 1, {0.12, 0.12, 0.12}),
                          row("thalweg init parted", 1, {0.2, 0.2, 0.2}),
                          row("native [transport=shm]", 2, {0.8, 0.8, 0.8}),
                          row("thalweg init [transport=shm]", 2, {0.16, 0.16, 0.16})};
    rows[4].algorithm = "spread";
    rows[7].reason = "no agent";
    const auto lines = summarize_halo(rows);
    ASSERT_EQ(lines.size(), rows.size());
    const auto find = [&](const std::string& column) -> const HaloLine& {
        for (const auto& each : lines)
            if (each.column == column) return each;
        throw std::runtime_error(column);
    };
    const HaloLine& plan = find("thalweg init");
    EXPECT_DOUBLE_EQ(plan.limits.wire_s, 0.1);
    EXPECT_DOUBLE_EQ(plan.limits.copies_s, 0.08);
    EXPECT_DOUBLE_EQ(plan.limits.cpu_s, 0.08);
    EXPECT_DOUBLE_EQ(plan.of_limit(), 1.2);
    EXPECT_NEAR(plan.of_native.value, 0.3, 1e-12);
    EXPECT_DOUBLE_EQ(plan.saved(), 0.4);    // of our own messages without overlap
    EXPECT_DOUBLE_EQ(plan.ceiling(), 0.5);  // 1 - 0.1 / 0.2
    EXPECT_NEAR(plan.noise, 1.1, 1e-12);
    EXPECT_EQ(plan.ran, "spread");
    EXPECT_NEAR(find("isend").saved(), 0.2, 1e-12);  // of plain sends and receives without overlap
    const HaloLine& shm = find("thalweg init [transport=shm]");
    EXPECT_NEAR(shm.of_native.value, 0.2, 1e-12);  // of the native call of its own launch
    EXPECT_DOUBLE_EQ(shm.parted_seconds, 0);       // nothing without overlap took turns with it
    EXPECT_EQ(shm.ran, "native: no agent");
    // In the order of the columns, settings behind the same without.
    EXPECT_EQ(lines[0].column, "native");
    EXPECT_EQ(lines[1].column, "native [transport=shm]");
    EXPECT_EQ(lines.back().column, "thalweg init parted");

    const std::string points = format_halo_points(lines, true);
    EXPECT_EQ(std::count(points.begin(), points.end(), '\n'), 3);
    EXPECT_NE(points.find("balanced"), std::string::npos);
    EXPECT_NE(format_halo(lines, true).find("80.0 %"), std::string::npos);  // 0.4 of a ceiling of 0.5

    rows[3].wrong_words = 5;
    rows[0].wrong_words = 3;
    const std::string page = document(rows);
    EXPECT_NE(page.find("\n## Halo exchange\n"), std::string::npos);
    EXPECT_NE(page.find("### mpich, halo exchange"), std::string::npos);
    EXPECT_NE(page.find("received: 5; by native neighbourhood collectives: 3."), std::string::npos);
    EXPECT_EQ(page.find("## Broadcast between hosts"), std::string::npos);  // they are no broadcasts
}

// Cubes of the same cells lie on a square of ranks and on a line of them.
TEST(HaloTable, GridsOfTheSameCellsAreToldApart) {
    std::vector<Row> rows{row("native", 1, {0.4, 0.4, 0.4}), row("native", 2, {0.2, 0.2, 0.2})};
    rows[1].halo.update(to_json(make({4, 2, 1}, {16, 16, 16}, false, false)));
    const auto lines = summarize_halo(rows);
    ASSERT_EQ(lines.size(), 2u);
    const std::string text = format_halo(lines, true);
    for (const char* grid : {"| 2x2x2 | 16x16x16 ", "| 4x2x1 | 16x16x16 "})
        EXPECT_NE(text.find(grid), std::string::npos) << grid << " in\n" << text;
}

// What is measured again is what the front of the page calls undecided: nonblocking calls and plans beside
// the library's own, too.
TEST(HaloTable, WhateverAColumnIsJudgedByMayBeUndecided) {
    const auto spread = [](double least, double most) {
        std::vector<double> seconds;
        for (int i = 0; i < 30; ++i) seconds.push_back(least + (most - least) * i / 29);
        return seconds;
    };
    const auto undecided = [](const std::vector<Row>& rows) { return any_undecided(summarize_halo(rows)); };
    const Row native = row("native", 1, spread(4, 4.04));
    EXPECT_FALSE(undecided({native, row("thalweg", 1, spread(4, 4.04))}));
    EXPECT_TRUE(undecided({native, row("thalweg", 1, spread(3, 5.6))}));
    for (const std::string form : {"nonblocking", "init"}) {
        const Row ours = row("thalweg " + form, 1, spread(1.1, 3.3));
        EXPECT_FALSE(undecided({native, ours})) << form;
        EXPECT_TRUE(undecided({native, row("native " + form, 1, spread(1, 3)), ours})) << form;
        EXPECT_FALSE(undecided({native, row("native " + form, 1, spread(1, 3)),
                                row("thalweg " + form + " [transport=shm]", 1, spread(1.1, 3.3))}))
            << form;
    }
}

// Over two links the wire needs half as long.
TEST(HaloTable, LinksPerHostAreToldApart) {
    std::vector<Row> rows{row("native", 1, {0.4, 0.4, 0.4}), row("native", 2, {0.2, 0.2, 0.2})};
    rows[1].context["rails"] = 2;
    const auto lines = summarize_halo(rows);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_DOUBLE_EQ(lines[0].limits.wire_s, 0.1);
    EXPECT_DOUBLE_EQ(lines[1].limits.wire_s, 0.05);
    EXPECT_NE(format_halo(lines, true).find("| 4x2, 2 x 100mbit "), std::string::npos);
    for (Row& each : rows) {
        each.phase = halo_overlap_phase;
        each.stopped = "not had", each.seconds.clear();
    }
    EXPECT_EQ(summarize_halo_hidden(rows).size(), 2u);
}

TEST(HaloTable, TargetsAreCountedPointByPoint) {
    std::vector<Row> rows{row("native", 1, {0.4, 0.4, 0.4}), row("thalweg init", 1, {0.119, 0.119, 0.119}),
                          row("thalweg init parted", 1, {0.2, 0.2, 0.2})};
    const auto judged = [&rows] {
        const auto all = judge_halo(summarize_halo(rows));
        EXPECT_EQ(all.size(), 1u);
        return all.at(0);
    };
    EXPECT_EQ(judged().column, "thalweg init");
    EXPECT_EQ(judged().large, 0);  // messages of 2 KiB
    EXPECT_EQ(judged().not_slower, 1);
    EXPECT_NEAR(judged().gain, 0.4 / 0.119, 1e-9);
    EXPECT_NEAR(judged().most_gain, 0.4 / 0.105, 1e-9);
    EXPECT_EQ(judged().balanced, 1);
    EXPECT_EQ(judged().hidden, 0);  // 40.5 % of a ceiling of 50 %
    for (Row& each : rows) each.bytes = 64 << 10;
    EXPECT_EQ(judged().within, 1);  // 1.19 where it is balanced
    rows[1].seconds = {0.103, 0.103, 0.103};
    EXPECT_EQ(judged().hidden, 1);  // 48 %
    for (Row& each : rows) each.halo["packed_bytes"] = 0;
    EXPECT_EQ(judged().balanced, 0);  // bound by the wire
    EXPECT_EQ(judged().within, 1);
    rows[1].seconds = {0.111, 0.111, 0.111};
    EXPECT_EQ(judged().within, 0);
    rows[1].seconds = {0.5, 0.5, 0.5};
    EXPECT_EQ(judged().slower, 1);
}

TEST(HaloTable, AColumnThatCouldNotBeHad) {
    std::vector<Row> rows{row("native init", 1, {})};
    rows[0].stopped = "this MPI has no PMPI_Neighbor_alltoallw_init";
    EXPECT_NE(format_halo(summarize_halo(rows), false).find("has no PMPI"), std::string::npos);
}

}  // namespace
}  // namespace thalweg::bench
