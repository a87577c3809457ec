// The problem that is solved, its serial solution, and how a distributed one is checked against it. No MPI
// here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conjugate_gradient/matrix.h"

namespace thalweg::apps {

// The inverse power method: from x = (1, …, 1), `outer` times solve A z = x by `steps` steps of the conjugate
// gradient, take zeta = shift + 1 / (x, z), and go on with x = z / |z|.
struct Method {
    int outer = 1, steps = 25;
    double shift = 0;
};

// The conjugate gradient has nothing left to do when the squared residual has fallen by this factor; going on
// would only divide what rounding left.
constexpr double exhausted = 1e-30;

struct Solution {
    double zeta = 0;
    double residual = 0;    // |x - A z| of the last solve
    double x_norm = 0;      // |x| of the last solve
    std::vector<double> z;  // of the last solve; of a rank: its part
};

// Breakdown: a step's (p, A p) was zero or no number, so there is no next one.
bool broke_down(double p_times_q);

// One process, the whole matrix. False where the method breaks down.
bool solve_serial(const Rows& matrix, const Method& method, Solution& solution);

// What of a distributed solution is held against the serial one.
struct Difference {
    double zeta = 0;      // relative
    double residual = 0;  // of the norm of x
    double z = 0;         // the largest of any element, of the largest element of the serial z
};

// Empty, or one sentence: the difference that is larger than `tolerance` (or no number).
std::string judge(const Difference& difference, double tolerance);

// The serial sums are added up in another order: that far apart two correct results may be.
constexpr double default_tolerance = 1e-9;
// What the benchmark allows for its published zeta.
constexpr double zeta_tolerance = 1e-10;

}  // namespace thalweg::apps
