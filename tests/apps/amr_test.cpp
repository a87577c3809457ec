// The refined mesh of apps/amr: balance, shares, and that what its links move is what a halo holds by
// definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "amr/mesh.h"
#include "amr/report.h"
#include "amr/traffic.h"

namespace {

struct Mesh {
    Mesh(std::vector<int> roots, int deepest, int cells, int ranks, AmrSphere sphere)
        : mesh(amr_make_mesh(roots.data(), deepest, cells, ranks, &sphere)) {}
    ~Mesh() { amr_free_mesh(mesh); }
    Mesh(const Mesh&) = delete;
    Mesh& operator=(const Mesh&) = delete;
    AmrMesh* mesh;
};

AmrSphere sphere(std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t radius) {
    return {{x, y, z}, radius};
}

struct Data {
    explicit Data(const AmrMesh* mesh) : cells(static_cast<std::size_t>(mesh->count)) {
        for (int leaf = 0; leaf < mesh->count; ++leaf) {
            auto& own = cells[static_cast<std::size_t>(leaf)];
            own.resize(amr_volume(mesh));
            amr_first_values(mesh, leaf, own.data());
            blocks.push_back(own.data());
        }
    }
    std::vector<std::vector<AmrCell>> cells;
    std::vector<AmrCell*> blocks;
};

// Small and large spheres, off centre, outside and with none of it inside; flat and cubic domains.
struct Case {
    std::vector<int> roots;
    int deepest, cells;
    AmrSphere sphere;
};
std::vector<Case> cases() {
    return {{{1, 1, 1}, 0, 2, sphere(8, 8, 8, 4)},        {{2, 2, 2}, 1, 4, sphere(20, 31, 9, 13)},
            {{2, 3, 1}, 2, 2, sphere(64, 70, 11, 40)},    {{4, 2, 2}, 3, 2, sphere(100, 90, 128, 75)},
            {{2, 2, 2}, 3, 4, sphere(0, 0, 0, 10)},       {{3, 3, 3}, 2, 2, sphere(5000, 5000, 5000, 10)},
            {{1, 1, 1}, 4, 2, sphere(128, 128, 128, 100)}};
}

TEST(AmrMesh, BlocksFillTheDomainOnceAndNeighboursDifferByOneLevel) {
    for (const Case& each : cases()) {
        const Mesh made(each.roots, each.deepest, each.cells, 3, each.sphere);
        ASSERT_NE(made.mesh, nullptr);
        std::size_t places = 0, all = 1;
        for (const int roots : each.roots) all *= static_cast<std::size_t>(roots << each.deepest);
        std::vector<int> blocks(3);
        int before = 0;
        for (int leaf = 0; leaf < made.mesh->count; ++leaf) {
            const AmrLeaf& own = made.mesh->leaves[leaf];
            places += std::size_t{1} << (3 * (each.deepest - own.level));
            EXPECT_GE(own.owner, before);
            before = own.owner;
            ++blocks[static_cast<std::size_t>(own.owner)];
        }
        EXPECT_EQ(places, all);
        for (const int share : blocks) EXPECT_NEAR(share, made.mesh->count / 3.0, 1.0);
        for (int axis = 0; axis < amr_axes; ++axis) {
            AmrLink* links = nullptr;
            const int count = amr_links(made.mesh, axis, &links);
            for (int i = 0; i < count; ++i) EXPECT_LE(std::abs(links[i].change), 1);
            std::free(links);
        }
    }
}

TEST(AmrMesh, RefinesWhereTheSurfacePassesAndNotElsewhere) {
    const Mesh through({4, 4, 4}, 2, 2, 1, sphere(128, 128, 128, 60));
    EXPECT_GT(through.mesh->count, 64 + 7);
    int finest = 0, coarsest = 0;
    for (int leaf = 0; leaf < through.mesh->count; ++leaf) {
        finest += through.mesh->leaves[leaf].level == 2;
        coarsest += through.mesh->leaves[leaf].level == 0;
    }
    EXPECT_GT(finest, 0);
    EXPECT_GT(coarsest, 0);
    const Mesh past({4, 4, 4}, 2, 2, 1, sphere(5000, 0, 0, 60));
    EXPECT_EQ(past.mesh->count, 64);
}

TEST(AmrMesh, LinksMoveWhatAHaloHoldsByDefinition) {
    int uneven = 0;
    for (const Case& each : cases()) {
        const Mesh made(each.roots, each.deepest, each.cells, 2, each.sphere);
        Data moved(made.mesh), defined(made.mesh);
        for (int axis = 0; axis < amr_axes; ++axis) {
            AmrLink* links = nullptr;
            const int count = amr_links(made.mesh, axis, &links);
            for (int i = 0; i < count; ++i) {
                std::vector<AmrCell> face(static_cast<std::size_t>(amr_link_cells(made.mesh, &links[i])));
                amr_take(made.mesh, &links[i], moved.blocks[static_cast<std::size_t>(links[i].from)],
                         face.data());
                amr_put(made.mesh, &links[i], moved.blocks[static_cast<std::size_t>(links[i].to)],
                        face.data());
                uneven += links[i].change != 0;
            }
            std::free(links);
        }
        for (int leaf = 0; leaf < made.mesh->count; ++leaf)
            amr_define_halo(made.mesh, defined.blocks.data(), leaf);
        EXPECT_EQ(moved.cells, defined.cells) << made.mesh->count << " blocks";
    }
    EXPECT_GT(uneven, 100);
}

TEST(AmrMesh, ValuesOfAnotherMeshAreKeptOrAddedUp) {
    const Mesh coarse({2, 1, 1}, 1, 2, 1, sphere(5000, 0, 0, 1));  // two blocks of level 0
    const Mesh fine({2, 1, 1}, 1, 2, 1, sphere(0, 0, 0, 8));       // the first one in eight parts
    ASSERT_EQ(coarse.mesh->count, 2);
    ASSERT_EQ(fine.mesh->count, 9);
    Data from_coarse(coarse.mesh), from_fine(fine.mesh);
    const int cell[] = {3, 0, 1}, half[] = {1, 0, 0};
    EXPECT_EQ(amr_value(coarse.mesh, from_coarse.blocks.data(), 1, cell),
              amr_value(coarse.mesh, from_coarse.blocks.data(), 0, half));
    AmrCell sum = 0;
    for (int x = 2; x < 4; ++x)
        for (int y = 0; y < 2; ++y)
            for (int z = 0; z < 2; ++z) {
                const int below[] = {x, y, z};
                sum += amr_value(fine.mesh, from_fine.blocks.data(), 1, below);
            }
    EXPECT_EQ(amr_value(fine.mesh, from_fine.blocks.data(), 0, half), sum);
    EXPECT_TRUE(amr_overlap(coarse.mesh, 0, fine.mesh, 3));
    EXPECT_FALSE(amr_overlap(coarse.mesh, 0, fine.mesh, 8));
    EXPECT_TRUE(amr_overlap(fine.mesh, 8, coarse.mesh, 1));
}

AmrTraffic traffic(const AmrMesh* mesh, int axis, const std::vector<int>& hosts) {
    AmrTraffic found{};
    EXPECT_TRUE(amr_traffic(mesh, axis, hosts.data(), static_cast<int>(hosts.size()), &found));
    return found;
}

TEST(AmrTraffic, CountsWhatCrossesBetweenHostsByHand) {
    // Two blocks of level 0: a face of 4 x 4 cells each way.
    const Mesh even({2, 1, 1}, 0, 4, 2, sphere(5000, 0, 0, 1));
    AmrTraffic found = traffic(even.mesh, 0, {0, 1});
    EXPECT_EQ(found.crossing, 2 * 64);
    EXPECT_EQ(found.busiest, 64);
    EXPECT_EQ(found.messages, 2);
    EXPECT_EQ(found.largest, 64);
    EXPECT_EQ(traffic(even.mesh, 1, {0, 1}).crossing, 0);
    EXPECT_EQ(traffic(even.mesh, 0, {0, 0}).messages, 0);  // ranks of one host
    // The first in eight parts, of which five are the first rank's: three faces between equals, a quarter's
    // sums.
    const Mesh uneven({2, 1, 1}, 1, 4, 2, sphere(0, 0, 0, 8));
    ASSERT_EQ(uneven.mesh->count, 9);
    found = traffic(uneven.mesh, 0, {0, 1});
    EXPECT_EQ(found.busiest, 3 * 64 + 16);
    EXPECT_EQ(found.messages, 2);
}

TEST(AmrTraffic, IsThatOfTheLinksBetweenRanksOfDifferentHosts) {
    for (const Case& each : cases())
        for (const std::vector<int>& hosts : {std::vector<int>{0, 0, 2, 2}, std::vector<int>{0, 1, 0, 3}}) {
            const Mesh made(each.roots, each.deepest, each.cells, 4, each.sphere);
            for (int axis = 0; axis < amr_axes; ++axis) {
                AmrLink* links = nullptr;
                const int count = amr_links(made.mesh, axis, &links);
                std::map<std::pair<int, int>, std::int64_t> pairs, ends;  // ends: host, 1 where it receives
                std::int64_t crossing = 0, busiest = 0, largest = 0;
                for (int i = 0; i < count; ++i) {
                    const int from = made.mesh->leaves[links[i].from].owner;
                    const int to = made.mesh->leaves[links[i].to].owner;
                    const int left = hosts[static_cast<std::size_t>(from)];
                    const int entered = hosts[static_cast<std::size_t>(to)];
                    const std::int64_t bytes = 4 * amr_link_cells(made.mesh, &links[i]);
                    if (left == entered) continue;
                    crossing += bytes;
                    largest = std::max(largest, pairs[{from, to}] += bytes);
                    busiest = std::max({busiest, ends[{left, 0}] += bytes, ends[{entered, 1}] += bytes});
                }
                std::free(links);
                const AmrTraffic found = traffic(made.mesh, axis, hosts);
                EXPECT_EQ(found.crossing, crossing);
                EXPECT_EQ(found.busiest, busiest);
                EXPECT_EQ(found.messages, static_cast<std::int64_t>(pairs.size()));
                EXPECT_EQ(found.largest, largest);
            }
        }
}

TEST(AmrReport, StepsAreSharedOutOverMeshes) {
    for (const int steps : {1, 4, 5, 6, 14})
        for (const int every : {1, 2, 5, 20}) {
            AmrProblem problem{};
            problem.steps = steps;
            problem.refine_every = every;
            int exchanges = 0;
            for (int mesh = 0; mesh < amr_meshes(&problem); ++mesh) {
                EXPECT_GT(amr_exchanges_on(&problem, mesh), 0);
                exchanges += amr_exchanges_on(&problem, mesh);
            }
            EXPECT_EQ(exchanges, amr_exchanges(&problem)) << steps << " steps, " << every;
        }
}

TEST(AmrReport, ALineIsJsonWithEveryRunOfAVersion) {
    const AmrProblem problem{{4, 2, 1}, 8, 2, 2, 2, 3};
    AmrMeshReport meshes[2] = {{2, 30, {}}, {1, 31, {}}};
    meshes[1].stages[2] = {4000000000, 1000, 6, 400};
    double steps[] = {0.5, 0.25, 0.125};
    AmrSample sample{0.875, steps, 0.75, 0.7, 0.6, 0.1, 2};
    AmrSeries series{"init", 1, &sample, 0};
    const auto line = [&] {
        std::FILE* const file = std::tmpfile();
        amr_write_line(file, &problem, meshes, "An \"MPI\"\\ 1\nbuilt\twith care", &series);
        std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
        std::rewind(file);
        EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
        std::fclose(file);
        EXPECT_EQ(text.back(), '\n');
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
        return nlohmann::json::parse(text);
    };
    nlohmann::json read = line();
    EXPECT_EQ(read.at("app"), "amr");
    EXPECT_EQ(read.at("version"), "init");
    EXPECT_EQ(read.at("library"), "An \"MPI\"\\ 1");
    EXPECT_EQ(read.at("wrong"), "");
    EXPECT_EQ(read.at("parameters").dump(),
              R"({"blocks":[4,2,1],"cells":8,"levels":2,"ranks":3,"refine-every":2,"steps":2})");
    ASSERT_EQ(read.at("meshes").size(), 2u);
    EXPECT_EQ(read["meshes"][1]["exchanges"], 1);
    EXPECT_EQ(read["meshes"][1]["stages"][2]["crossing"], 4000000000);
    EXPECT_EQ(read["meshes"][1]["stages"][2]["busiest"], 1000);
    ASSERT_EQ(read.at("samples").size(), 1u);
    EXPECT_EQ(read["samples"][0]["communication"], 0.875);
    EXPECT_EQ(read["samples"][0]["steps"].size(), 3u);
    series.wrong = 7;
    EXPECT_EQ(line().at("wrong"), "7 cells");
}

TEST(AmrMesh, AStepLooksAtAllSixNeighbours) {
    const Mesh made({1, 1, 1}, 0, 2, 1, sphere(5000, 0, 0, 1));
    Data data(made.mesh);
    std::vector<AmrCell> scratch(amr_volume(made.mesh));
    const std::vector<AmrCell> before = data.cells[0];
    const auto value = [&](int x, int y, int z) { return before[amr_place(made.mesh, x, y, z)]; };
    amr_step(made.mesh, data.blocks[0], scratch.data());
    const AmrCell around =
        value(0, 1, 2) + value(2, 1, 2) + value(1, 0, 2) + value(1, 2, 2) + value(1, 1, 1) + value(1, 1, 3);
    EXPECT_EQ(data.cells[0][amr_place(made.mesh, 1, 1, 2)], value(1, 1, 2) * 5 + around * 3 + 1);
}

}  // namespace
