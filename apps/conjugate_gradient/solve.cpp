#include "conjugate_gradient/solve.h"

#include <fmt/format.h>

#include <cmath>

namespace thalweg::apps {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

}  // namespace

bool broke_down(double p_times_q) { return !(std::abs(p_times_q) > 0) || !std::isfinite(p_times_q); }

bool solve_serial(const Rows& matrix, const Method& method, Solution& solution) {
    const std::size_t n = matrix.count();
    std::vector<double> x(n, 1.0), z(n), r(n), p(n), q(n);
    for (int outer = 0; outer < method.outer; ++outer) {
        std::fill(z.begin(), z.end(), 0.0);
        r = p = x;
        double rho = dot(r, r);
        const double first = rho;
        for (int step = 0; step < method.steps && rho > exhausted * first; ++step) {
            multiply(matrix, p.data(), q.data(), 0, n, false);
            const double d = dot(p, q);
            if (broke_down(d)) return false;
            const double alpha = rho / d;
            for (std::size_t i = 0; i < n; ++i) {
                z[i] += alpha * p[i];
                r[i] -= alpha * q[i];
            }
            const double next = dot(r, r);
            for (std::size_t i = 0; i < n; ++i) p[i] = r[i] + next / rho * p[i];
            rho = next;
        }
        multiply(matrix, z.data(), q.data(), 0, n, false);
        double sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += (x[i] - q[i]) * (x[i] - q[i]);
        solution.residual = std::sqrt(sum);
        solution.x_norm = std::sqrt(first);
        solution.zeta = method.shift + 1 / dot(x, z);
        const double norm = std::sqrt(dot(z, z));
        for (std::size_t i = 0; i < n; ++i) x[i] = z[i] / norm;
    }
    solution.z = std::move(z);
    return true;
}

std::string judge(const Difference& difference, double tolerance) {
    const auto complain = [&](const char* what, double value) {
        // Not "value > tolerance": a difference that is no number is one.
        return value <= tolerance
                   ? std::string()
                   : fmt::format("{} differs from the serial solve's by {:.2g}, more than {:.2g}", what,
                                 value, tolerance);
    };
    for (const auto& sentence : {complain("the residual", difference.residual),
                                 complain("the solution", difference.z), complain("zeta", difference.zeta)})
        if (!sentence.empty()) return sentence;
    return "";
}

}  // namespace thalweg::apps
