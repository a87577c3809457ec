// Halo exchanges by their definition: which cell of which rank belongs in which cell of a halo; and figures
// made by hand.
#include "model/halo.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace thalweg {
namespace {

using Cell = std::array<int, most_halo_dimensions>;

HaloGrid make(std::vector<int> ranks, std::vector<int> cells, bool corners, bool periodic) {
    HaloGrid grid;
    grid.ranks = std::move(ranks);
    grid.cells = std::move(cells);
    grid.corners = corners;
    grid.periodic = periodic;
    EXPECT_EQ(refuse(grid), "") << grid.text();
    return grid;
}

// Grids with dimensions of one, two and three ranks, in one to four dimensions.
std::vector<HaloGrid> grids() {
    std::vector<HaloGrid> all;
    for (const bool corners : {false, true})
        for (const bool periodic : {false, true}) {
            all.push_back(make({3}, {2}, corners, periodic));
            all.push_back(make({2, 3}, {3, 2}, corners, periodic));
            all.push_back(make({3, 2, 1}, {2, 1, 3}, corners, periodic));
            all.push_back(make({1, 1, 1}, {1, 1, 1}, corners, periodic));
            all.push_back(make({2, 1, 2, 3}, {2, 3, 1, 2}, corners, periodic));
        }
    const std::size_t both_ways = all.size();
    for (std::size_t i = 0; i < both_ways; ++i) {
        all.push_back(all[i]);
        all.back().upwind = true;
    }
    return all;
}

std::vector<Cell> cells_of(const HaloBox& box) {
    std::vector<Cell> cells;
    for (int x = 0; x < box.count[0]; ++x)
        for (int y = 0; y < box.count[1]; ++y)
            for (int z = 0; z < box.count[2]; ++z)
                for (int t = 0; t < box.count[3]; ++t)
                    cells.push_back({box.begin[0] + x, box.begin[1] + y, box.begin[2] + z, box.begin[3] + t});
    return cells;
}

// Where a cell of a rank's array lies in the whole grid; beyond a border: outside of it.
Cell place(const HaloGrid& grid, int rank, const Cell& cell) {
    Cell global{};
    for (int d = grid.dimensions() - 1; d >= 0; --d) {
        const auto at = static_cast<std::size_t>(d);
        const int all = grid.ranks[at] * grid.cells[at];
        global[at] = rank % grid.ranks[at] * grid.cells[at] + cell[at] - 1;
        if (grid.periodic) global[at] = (global[at] + all) % all;
        rank /= grid.ranks[at];
    }
    return global;
}

TEST(Halo, EveryCellOfAHaloGetsTheCellOfItsPlace) {
    for (const HaloGrid& grid : grids()) {
        std::map<std::pair<int, int>, std::vector<HaloMessage>> sent, received;
        for (int rank = 0; rank < grid.size(); ++rank) {
            const HaloPart part = halo_part(grid, rank);
            for (const auto& each : part.outgoing) sent[{rank, each.peer}].push_back(each);
            for (const auto& each : part.incoming) received[{each.peer, rank}].push_back(each);
        }
        ASSERT_EQ(sent.size(), received.size()) << grid.text();
        for (const auto& [pair, messages] : sent) {
            const auto& arriving = received[pair];
            ASSERT_EQ(messages.size(), arriving.size()) << grid.text();
            std::set<int> directions;
            for (std::size_t k = 0; k < messages.size(); ++k) {
                EXPECT_EQ(messages[k].direction, arriving[k].direction) << grid.text();
                EXPECT_TRUE(directions.insert(messages[k].direction).second) << grid.text();
                EXPECT_EQ(messages[k].bytes, arriving[k].bytes);
                EXPECT_EQ(messages[k].bytes, 8 * messages[k].box.cells());
                const auto from = cells_of(messages[k].box), to = cells_of(arriving[k].box);
                ASSERT_EQ(from.size(), to.size());
                for (std::size_t i = 0; i < from.size(); ++i)
                    ASSERT_EQ(place(grid, pair.first, from[i]), place(grid, pair.second, to[i]))
                        << grid.text() << ", from rank " << pair.first << " to " << pair.second;
            }
        }
    }
}

TEST(Halo, NothingArrivesTwiceAndNothingIsMissing) {
    for (const HaloGrid& grid : grids()) {
        for (int rank = 0; rank < grid.size(); ++rank) {
            std::map<Cell, int> arrivals;
            for (const auto& each : halo_part(grid, rank).incoming)
                for (const Cell& cell : cells_of(each.box)) ++arrivals[cell];
            HaloBox whole;
            for (std::size_t d = 0; d < grid.cells.size(); ++d) whole.count[d] = grid.cells[d] + 2;
            for (const Cell& cell : cells_of(whole)) {
                int outside = 0, above = 0;
                bool beyond = false;
                const Cell global = place(grid, rank, cell);
                for (std::size_t d = 0; d < grid.cells.size(); ++d) {
                    outside += cell[d] == 0 || cell[d] == grid.cells[d] + 1;
                    above += cell[d] == grid.cells[d] + 1;
                    beyond |= global[d] < 0 || global[d] >= grid.ranks[d] * grid.cells[d];
                }
                // What goes up arrives from below.
                const bool wanted = !beyond && (outside == 1 || (grid.corners && outside > 1)) &&
                                    !(grid.upwind && above != 0);
                EXPECT_EQ(arrivals[cell], wanted ? 1 : 0) << grid.text() << ", rank " << rank;
            }
        }
    }
}

TEST(Halo, UpwindGoesOneWay) {
    HaloGrid grid = make({2, 2}, {3, 5}, false, false);
    grid.upwind = true;
    EXPECT_EQ(grid.points(), 3);
    EXPECT_EQ(grid.text(), "2x2 ranks of 3x5 cells, 3 points, upwind");
    EXPECT_EQ(halo_part(grid, 0).outgoing.size(), 2u);
    EXPECT_EQ(halo_part(grid, 0).incoming.size(), 0u);
    EXPECT_EQ(halo_part(grid, 3).outgoing.size(), 0u);
    EXPECT_EQ(halo_part(grid, 3).incoming.size(), 2u);
    grid.corners = true;
    EXPECT_EQ(grid.points(), 4);
    EXPECT_EQ(halo_part(grid, 0).outgoing.size(), 3u);
}

TEST(Halo, BytesOfFacesInsideHostsAndBetweenThem) {
    // Ranks 2k and 2k + 1 share a host: neighbours in the last dimension.
    const HaloGrid grid = make({2, 2, 2}, {4, 8, 16}, false, false);
    const std::vector<int> pairs{0, 0, 1, 1, 2, 2, 3, 3};
    const HaloBytes bytes = halo_bytes(grid, pairs);
    const std::uint64_t x = 8 * 8 * 16, y = 8 * 4 * 16, z = 8 * 4 * 8;
    EXPECT_EQ(bytes.largest, x);
    EXPECT_EQ(bytes.least_inside, z);
    EXPECT_EQ(bytes.most_inside, z);
    EXPECT_EQ(bytes.most_outside, x + y);
    EXPECT_EQ(bytes.link, 2 * (x + y));
    EXPECT_EQ(bytes.host_wire, 4 * (x + y));
    EXPECT_EQ(bytes.wire, 8 * (x + y));
    EXPECT_EQ(bytes.inside, 8 * z);
    EXPECT_EQ(bytes.packed, 2 * bytes.wire);  // every face is strided, because of the halo around it
    EXPECT_EQ(bytes.host_copied, 2 * z + 4 * (x + y));
    const HaloBytes one = halo_bytes(grid, std::vector<int>(8, 0));
    EXPECT_EQ(one.link + one.wire + one.packed, 0u);
    EXPECT_EQ(one.inside, 8 * (x + y + z));
    // Rows of the last dimension lie in one piece.
    const HaloBytes flat = halo_bytes(make({2, 1}, {5, 7}, false, false), std::vector<int>{0, 1});
    EXPECT_EQ(flat.wire, 2u * 8 * 7);
    EXPECT_EQ(flat.packed, 0u);
}

TEST(Halo, ThePapersGridOnItsHosts) {
    // 2304 ranks in blocks of 48: faces within a host, as a share of all.
    const HaloGrid grid = make(even_grid(2304, 3), {8, 8, 8}, false, false);
    EXPECT_EQ(grid.ranks, (std::vector<int>{16, 12, 12}));
    std::vector<int> host_of;
    for (int rank = 0; rank < grid.size(); ++rank) host_of.push_back(rank / 48);
    const HaloBytes bytes = halo_bytes(grid, host_of);
    const double share = static_cast<double>(bytes.inside) / static_cast<double>(bytes.inside + bytes.wire);
    EXPECT_NEAR(share, 0.60, 0.01);
}

TEST(Halo, LimitsAreTheLargestOfWireCopiesAndCores) {
    HaloRates rates;
    rates.wire_bytes_per_s = 1e6;
    rates.wire_latency_s = 0.5;
    rates.free_bytes = 1000;
    rates.copied_bytes_per_s = 1e7;
    rates.wire_cpu_s_per_byte = 1e-7;
    rates.copiers = 8;
    rates.cores = 2;
    const HaloLimits limits = halo_limits(2'001'000, 8'000'000, 10'000'000, rates);
    EXPECT_DOUBLE_EQ(limits.wire_s, 2.5);
    EXPECT_DOUBLE_EQ(limits.copies_s, 1.0);
    EXPECT_DOUBLE_EQ(limits.cpu_s, 1.4);  // (1 s on two cores and 0.8 s on one) / 2
    EXPECT_DOUBLE_EQ(limits.largest(), 2.5);
    EXPECT_EQ(mix_of(limits), "wire");
    rates.copied_bytes_per_s = 5e6;
    EXPECT_EQ(mix_of(halo_limits(2'001'000, 8'000'000, 10'000'000, rates)), "balanced");
    rates.copied_bytes_per_s = 1e6;
    EXPECT_EQ(mix_of(halo_limits(2'001'000, 8'000'000, 10'000'000, rates)), "copies");
    rates.copiers = 1;  // one core copies, the other one is free
    EXPECT_DOUBLE_EQ(halo_limits(0, 0, 10'000'000, rates).cpu_s, 5.0);
    EXPECT_DOUBLE_EQ(halo_limits(0, 0, 10'000'000, rates).wire_s, 0.0);
    // A rank that has no neighbour.
    EXPECT_EQ(mix_of(halo_limits(0, 0, 0, rates)), "balanced");
}

TEST(Halo, GridsAsEvenAsMpiMakesThem) {
    EXPECT_EQ(even_grid(8, 3), (std::vector<int>{2, 2, 2}));
    EXPECT_EQ(even_grid(12, 3), (std::vector<int>{3, 2, 2}));
    EXPECT_EQ(even_grid(9, 3), (std::vector<int>{3, 3, 1}));
    EXPECT_EQ(even_grid(7, 2), (std::vector<int>{7, 1}));
    EXPECT_EQ(even_grid(16, 4), (std::vector<int>{2, 2, 2, 2}));
    EXPECT_EQ(even_grid(1, 3), (std::vector<int>{1, 1, 1}));
}

TEST(Halo, ExtentsAndWhatIsNoGrid) {
    EXPECT_EQ(parse_extents("4x12x2"), (std::vector<int>{4, 12, 2}));
    EXPECT_EQ(parse_extents("64"), std::vector<int>{64});
    for (const char* wrong : {"", "x", "4x", "x4", "4x0", "-1", "4 x 4", "4y2", "99999999999"})
        EXPECT_TRUE(parse_extents(wrong).empty()) << wrong;
    EXPECT_EQ(extents_text(std::vector<int>{4, 12, 2}), "4x12x2");
    HaloGrid grid;
    EXPECT_NE(refuse(grid), "");
    grid.ranks = {2, 2};
    grid.cells = {8};
    EXPECT_NE(refuse(grid), "");
    grid.cells = {8, 0};
    EXPECT_NE(refuse(grid), "");
    grid.cells = {8, 2'000'000'000};
    EXPECT_EQ(refuse(grid), "");
    grid.cells = {2'000'000'000, 2'000'000'000};
    EXPECT_NE(refuse(grid), "");
    grid.cells = {8, 8};
    EXPECT_EQ(grid.points(), 5);
    grid.corners = true;
    EXPECT_EQ(grid.points(), 9);
}

}  // namespace
}  // namespace thalweg
