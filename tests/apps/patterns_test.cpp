// Who sends how much to whom in an alltoallv.
#include "common/patterns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <fstream>
#include <numeric>

namespace thalweg::apps {
namespace {

std::vector<std::uint64_t> pattern(const std::string& name, int ranks, std::uint64_t bytes) {
    std::vector<std::uint64_t> matrix;
    std::string why;
    EXPECT_TRUE(make_pattern(name, ranks, bytes, matrix, why)) << why;
    EXPECT_EQ(matrix.size(), static_cast<std::size_t>(ranks * ranks));
    return matrix;
}

std::uint64_t sum(const std::vector<std::uint64_t>& matrix) {
    return std::accumulate(matrix.begin(), matrix.end(), std::uint64_t{0});
}

TEST(Patterns, SayWhoSendsToWhom) {
    EXPECT_EQ(pattern("dense", 3, 100), std::vector<std::uint64_t>(9, 100));
    EXPECT_EQ(pattern("one_to_many", 3, 7), (std::vector<std::uint64_t>{0, 7, 7, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(pattern("banded", 3, 5), (std::vector<std::uint64_t>{0, 5, 0, 5, 0, 5, 0, 5, 0}));
    const auto block = pattern("block", 4, 9);  // two groups: even and odd ranks
    EXPECT_EQ(block, (std::vector<std::uint64_t>{9, 0, 9, 0, 0, 9, 0, 9, 9, 0, 9, 0, 0, 9, 0, 9}));
}

TEST(Patterns, BandedReachGrowsWithTheRanks) {
    const auto halo = pattern("banded", 16, 1);
    for (int from = 0; from < 16; ++from)
        for (int to = 0; to < 16; ++to)
            EXPECT_EQ(halo[static_cast<std::size_t>(from * 16 + to)],
                      from != to && std::abs(from - to) <= 2 ? 1u : 0u);
}

TEST(Patterns, RandomOnesAreTheSameEverywhere) {
    const auto uniform = pattern("uniform", 8, 100'000);
    EXPECT_EQ(uniform, pattern("uniform", 8, 100'000));
    std::uint64_t least = ~std::uint64_t{0}, most = 0;
    for (const auto bytes : uniform) least = std::min(least, bytes), most = std::max(most, bytes);
    EXPECT_GE(least, 90'000u);
    EXPECT_LE(most, 110'000u);
    EXPECT_LT(least, 95'000u);  // they do spread
    EXPECT_GT(most, 105'000u);
}

TEST(Patterns, PowerLawKeepsTheMeanAndHasATail) {
    const int ranks = 16;
    const auto matrix = pattern("powerlaw", ranks, 10'000);
    EXPECT_NEAR(static_cast<double>(sum(matrix)), 10'000.0 * ranks * ranks, ranks * ranks);
    std::vector<std::size_t> largest_at;
    for (int from = 0; from < ranks; ++from) {
        const auto row = matrix.begin() + from * ranks;
        const auto largest = std::max_element(row, row + ranks);
        const auto least = std::min_element(row, row + ranks);
        EXPECT_NEAR(static_cast<double>(*largest) / static_cast<double>(*least), ranks, 0.1);
        largest_at.push_back(static_cast<std::size_t>(largest - row));
    }
    std::sort(largest_at.begin(), largest_at.end());
    EXPECT_NE(largest_at.front(), largest_at.back());  // not everybody's to the same rank
}

TEST(Patterns, OfAMatrixAreItsColumns) {
    const std::string path = testing::TempDir() + "pattern.mtx";
    // Rows and columns 1, 2 belong to rank 0, 3, 4 to rank 1. Rank 0's rows need column 3 twice, rank 1's
    // need columns 1 and 2.
    std::ofstream(path)
        << "%%MatrixMarket matrix coordinate pattern general\n4 4 6\n1 1\n1 3\n2 3\n3 1\n4 2\n4 4\n";
    EXPECT_EQ(pattern(path, 2, 8), (std::vector<std::uint64_t>{0, 16, 8, 0}));
    std::remove(path.c_str());
}

TEST(Patterns, OfCubesAreTheirFaces) {
    const int ranks = 8;
    const auto matrix = pattern(THALWEG_MATRICES "/poisson-4x4x4.mtx", ranks, 10);
    for (int from = 0; from < ranks; ++from)
        for (int to = 0; to < ranks; ++to) {
            const bool share_a_face = std::popcount(static_cast<unsigned>(from ^ to)) == 1;
            EXPECT_EQ(matrix[static_cast<std::size_t>(from * ranks + to)], share_a_face ? 40u : 0u);
        }
}

// Which elements are needed is mutual, how many of them is not: rank 0 has the hubs.
TEST(Patterns, OfAGraphWithHubsAreIrregular) {
    const int ranks = 8;
    const auto matrix = pattern(THALWEG_MATRICES "/scale-free-384.mtx", ranks, 1);
    const auto at = [&](int from, int to) { return matrix[static_cast<std::size_t>(from * ranks + to)]; };
    std::uint64_t to_first = 0, to_last = 0;
    for (int from = 0; from < ranks; ++from) {
        EXPECT_EQ(at(from, from), 0u);
        to_first += at(from, 0);
        to_last += at(from, ranks - 1);
        for (int to = 0; to < ranks; ++to) EXPECT_EQ(at(from, to) != 0, at(to, from) != 0);
    }
    EXPECT_EQ(sum(matrix), 775u);
    EXPECT_EQ(*std::max_element(matrix.begin(), matrix.end()), 48u);
    EXPECT_EQ(at(4, 6), 1u);
    EXPECT_GT(to_first, 5 * to_last);
}

TEST(Patterns, UnknownOnesAreRefused) {
    std::vector<std::uint64_t> matrix;
    std::string why;
    EXPECT_FALSE(make_pattern("dence", 4, 1, matrix, why));
    EXPECT_NE(why.find("dence"), std::string::npos);
    EXPECT_FALSE(make_pattern("/nowhere/a.mtx", 4, 1, matrix, why));
    EXPECT_NE(why.find("/nowhere/a.mtx"), std::string::npos);
}

}  // namespace
}  // namespace thalweg::apps
