// Sparse matrices by rows: where they come from, and their products. No MPI here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/partition.h"

namespace thalweg::apps {

// Rows of a sparse matrix. Row i holds entries start[i] … start[i + 1] - 1, by rising columns, none twice.
struct Rows {
    std::vector<std::int64_t> start{0};
    std::vector<std::int32_t> column;
    std::vector<double> value;

    std::size_t count() const { return start.size() - 1; }
    std::size_t entries() const { return column.size(); }
    void reserve(std::size_t rows, std::size_t entries);
    void end_row() { start.push_back(static_cast<std::int64_t>(column.size())); }
};

// y = A x, or y += A x, for rows begin … end - 1.
void multiply(const Rows& rows, const double* x, double* y, std::size_t begin, std::size_t end, bool add);

struct Entry {
    std::int32_t row = 0, column = 0;
    double value = 0;
};

// Rows begin … end - 1 out of entries in any order; entries at the same place are added up, in their order.
Rows rows_of(std::vector<Entry> entries, std::int64_t begin, std::int64_t end);

// The random sparse matrix of the NAS parallel benchmark CG (Bailey and others, RNR-94-007, section 2.2.1):
// a sum of n outer products of sparse random vectors, their weights falling from 1 to rcond, minus a shift of
// the diagonal. nonzeros: of each vector, besides its diagonal one.
struct NasProblem {
    std::int64_t n = 1400;
    int nonzeros = 7;
    double shift = 10;
    int outer = 15;   // steps of the inverse power method
    double zeta = 0;  // the published result of 25 CG steps in each; 0: none is known
};

constexpr double nas_rcond = 0.1;

// Classes S, W, A, B, C; false where there is none of that name.
bool find_nas_class(const std::string& name, NasProblem& problem);

// Rows begin … end - 1. nonzeros may not exceed n.
Rows nas_rows(const NasProblem& problem, std::int64_t begin, std::int64_t end);

// A rank's rows, cut by columns so that each part can be multiplied as soon as its piece of the vector is
// here. Part 0 takes the rank's own columns, counted from its own first; part s + 1 those of segment s of the
// other ranks, counted in the gathered segment. The vector's blocks are padded to `segments` segments of
// `segment_length`: element t of segment s of rank r is at r * segment_length + t of that gathered segment.
struct SplitRows {
    int segments = 1;
    std::int64_t segment_length = 1;
    std::vector<Rows> parts;
};
SplitRows split(const Rows& rows, Partition partition, int me, int segments);

// The entries of a Matrix Market file (coordinate; real, integer or pattern; general or symmetric), the
// symmetric ones completed. False with one sentence in `why`.
bool read_matrix_market(const std::string& path, std::int64_t& n, std::vector<Entry>& entries,
                        std::string& why);

}  // namespace thalweg::apps
