// The matrices of the conjugate gradient, its serial solve, and its checker.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "conjugate_gradient/matrix.h"
#include "conjugate_gradient/solve.h"

namespace thalweg::apps {
namespace {

std::vector<double> dense(const Rows& rows, std::size_t columns) {
    std::vector<double> all(rows.count() * columns);
    for (std::size_t row = 0; row < rows.count(); ++row)
        for (auto i = rows.start[row]; i < rows.start[row + 1]; ++i)
            all[row * columns + static_cast<std::size_t>(rows.column[static_cast<std::size_t>(i)])] +=
                rows.value[static_cast<std::size_t>(i)];
    return all;
}

// The benchmark's published results need the very matrix, the very method and right arithmetic.
TEST(ConjugateGradient, ReachesThePublishedResultsOfTheBenchmark) {
    for (const char* name : {"S", "W"}) {
        NasProblem problem;
        ASSERT_TRUE(find_nas_class(name, problem));
        Solution solution;
        ASSERT_TRUE(
            solve_serial(nas_rows(problem, 0, problem.n), {problem.outer, 25, problem.shift}, solution));
        EXPECT_NEAR(solution.zeta / problem.zeta, 1, zeta_tolerance) << name;
        EXPECT_LT(solution.residual, 1e-10) << name;
    }
}

TEST(NasMatrix, IsSymmetricAndMadeInPiecesIsTheSame) {
    for (const std::int64_t n : {1, 2, 5, 61}) {
        const NasProblem problem{n, static_cast<int>(std::min<std::int64_t>(n, 3)), 10, 1, 0};
        const auto size = static_cast<std::size_t>(n);
        const auto whole = dense(nas_rows(problem, 0, n), size);
        for (std::size_t i = 0; i < size; ++i)
            for (std::size_t j = 0; j < size; ++j)
                ASSERT_NEAR(whole[i * size + j], whole[j * size + i], 1e-15) << n;
        std::vector<double> pieces;
        for (std::int64_t at = 0; at < n; at += 2) {
            const auto piece = dense(nas_rows(problem, at, std::min(n, at + 2)), size);
            pieces.insert(pieces.end(), piece.begin(), piece.end());
        }
        EXPECT_EQ(pieces, whole);
    }
}

TEST(SplitRows, ProductsOfThePartsAddUpToTheWhole) {
    const NasProblem problem{61, 4, 10, 1, 0};
    const Rows matrix = nas_rows(problem, 0, problem.n);
    std::vector<double> x(61), expected(61);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.0 / (1.0 + static_cast<double>(i));
    multiply(matrix, x.data(), expected.data(), 0, 61, false);
    for (const int ranks : {1, 2, 5, 8, 70})
        for (const int segments : {1, 2, 3}) {
            const Partition partition{61, ranks};
            for (int me = 0; me < ranks; ++me) {
                const Rows rows = nas_rows(problem, partition.begin(me), partition.begin(me + 1));
                const SplitRows parts = split(rows, partition, me, segments);
                const auto length = static_cast<std::size_t>(parts.segment_length);
                const auto block = length * static_cast<std::size_t>(segments);
                std::vector<double> q(rows.count());
                // The vector as the ranks hold it, padded, and as it is gathered.
                std::vector<double> padded(block * static_cast<std::size_t>(ranks));
                for (std::int64_t i = 0; i < 61; ++i) {
                    const int owner = partition.owner(i);
                    padded[static_cast<std::size_t>(owner) * block +
                           static_cast<std::size_t>(i - partition.begin(owner))] =
                        x[static_cast<std::size_t>(i)];
                }
                multiply(parts.parts[0], padded.data() + static_cast<std::size_t>(me) * block, q.data(), 0,
                         q.size(), false);
                for (std::size_t segment = 0; segment < static_cast<std::size_t>(segments); ++segment) {
                    std::vector<double> gathered;
                    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
                        const auto from =
                            padded.begin() + static_cast<std::ptrdiff_t>(rank * block + segment * length);
                        gathered.insert(gathered.end(), from, from + static_cast<std::ptrdiff_t>(length));
                    }
                    multiply(parts.parts[segment + 1], gathered.data(), q.data(), 0, q.size(), true);
                }
                for (std::size_t i = 0; i < q.size(); ++i)
                    ASSERT_NEAR(q[i], expected[static_cast<std::size_t>(partition.begin(me)) + i], 1e-13)
                        << ranks << " ranks, " << segments << " segments, rank " << me;
            }
        }
}

TEST(Rows, AddUpEntriesAtTheSamePlace) {
    const Rows rows = rows_of({{1, 2, 5}, {0, 1, 1}, {1, 0, 2}, {0, 1, 3}, {2, 2, 9}}, 0, 2);
    EXPECT_EQ(dense(rows, 3), (std::vector<double>{0, 4, 0, 2, 0, 5}));
    EXPECT_EQ(rows.entries(), 3u);
}

// ---- the checker

TEST(GradientChecker, AcceptsEqualAndRefusesDifferent) {
    EXPECT_EQ(judge({0, 0, 0}, 1e-9), "");
    EXPECT_EQ(judge({1e-10, 1e-10, 1e-10}, 1e-9), "");
    EXPECT_NE(judge({2e-9, 0, 0}, 1e-9).find("zeta"), std::string::npos);
    EXPECT_NE(judge({0, 2e-9, 0}, 1e-9).find("residual"), std::string::npos);
    EXPECT_NE(judge({0, 0, 2e-9}, 1e-9).find("solution"), std::string::npos);
    EXPECT_NE(judge({0, 0, std::numeric_limits<double>::quiet_NaN()}, 1e-9), "");
    EXPECT_NE(judge({std::numeric_limits<double>::infinity(), 0, 0}, 1e-9), "");
}

TEST(ConjugateGradient, BreaksDownVisibly) {
    // (p, A p) is zero for p = (1, 1).
    Solution solution;
    EXPECT_FALSE(solve_serial(rows_of({{0, 0, 1}, {1, 1, -1}}, 0, 2), {1, 25, 0}, solution));
    EXPECT_TRUE(broke_down(0));
    EXPECT_TRUE(broke_down(std::numeric_limits<double>::quiet_NaN()));
    EXPECT_FALSE(broke_down(-3));
}

// ---- Matrix Market

class MatrixMarket : public testing::Test {
  protected:
    MatrixMarket() {
        std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-apps-XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
    }
    ~MatrixMarket() override { std::filesystem::remove_all(folder_); }

    bool read(const std::string& text) {
        const auto path = folder_ / "matrix.mtx";
        std::ofstream(path) << text;
        n_ = 0;
        entries_.clear();
        why_.clear();
        return read_matrix_market(path.string(), n_, entries_, why_);
    }
    void refuses(const std::string& text, const std::string& because) {
        EXPECT_FALSE(read(text)) << text;
        EXPECT_NE(why_.find(because), std::string::npos) << why_;
        EXPECT_EQ(why_.find('\n'), std::string::npos);
        EXPECT_TRUE(entries_.empty());
    }

    std::filesystem::path folder_;
    std::int64_t n_ = 0;
    std::vector<Entry> entries_;
    std::string why_;
};

TEST_F(MatrixMarket, CompletesASymmetricMatrix) {
    ASSERT_TRUE(read(
        "%%MatrixMarket matrix coordinate real symmetric\n% by hand\n\n2 2 3\n1 1 4\n2 1 -1.5\n2 2 3e0\n"))
        << why_;
    EXPECT_EQ(n_, 2);
    EXPECT_EQ(dense(rows_of(entries_, 0, 2), 2), (std::vector<double>{4, -1.5, -1.5, 3}));
}

TEST_F(MatrixMarket, ReadsPatternsAndGeneralMatrices) {
    ASSERT_TRUE(read("%%matrixmarket MATRIX Coordinate Pattern General\n3 3 2\n1 3\n3 1\n")) << why_;
    EXPECT_EQ(dense(rows_of(entries_, 0, 3), 3), (std::vector<double>{0, 0, 1, 0, 0, 0, 1, 0, 0}));
}

TEST_F(MatrixMarket, SaysWhatIsWrong) {
    refuses("", "is not a Matrix Market matrix");
    refuses("1 1 1\n1 1 1\n", "is not a Matrix Market matrix");
    refuses("%%MatrixMarket matrix array real general\n1 1\n1\n", "coordinate");
    refuses("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "complex");
    refuses("%%MatrixMarket matrix coordinate real hermitian\n1 1 1\n1 1 1\n", "hermitian");
    refuses("%%MatrixMarket matrix coordinate real general\nno numbers\n", "line 2");
    refuses("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n", "square");
    refuses("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n", "ends after 1 of 2");
    refuses("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 one 1\n", "line 3");
    refuses("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1\n", "line 3");
    refuses("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n", "outside");
    refuses("%%MatrixMarket matrix coordinate real general\n2 2 1\n0 1 1\n", "outside");
    EXPECT_FALSE(read_matrix_market((folder_ / "missing").string(), n_, entries_, why_));
    EXPECT_NE(why_.find("cannot be opened"), std::string::npos);
}

}  // namespace
}  // namespace thalweg::apps
