#include "conjugate_gradient/options.h"

#include <CLI/CLI.hpp>
#include <limits>

#include "common/number_within.h"

namespace thalweg::apps {

void GradientOptions::add_to(CLI::App& app) {
    auto* by_class =
        app.add_option("--class", nas_class, "a problem of the NAS benchmark CG: S, W, A, B or C");
    auto* by_file = app.add_option("--matrix", file, "a Matrix Market file: square, symmetric, definite");
    auto* by_size =
        app.add_option("--n", n, "rows of a random matrix like NAS CG's; several make several problems")
            ->delimiter(',')
            ->check(CLI::Range(std::int64_t{1}, std::int64_t{std::numeric_limits<std::int32_t>::max()}));
    by_class->excludes(by_file)->excludes(by_size);
    by_file->excludes(by_size);
    app.add_option("--nonzeros", nonzeros, "of each random vector the matrix is made of; with --n")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--shift", shift, "of the diagonal; with --n")
        ->check(number_within(-1e15, 1e15))
        ->capture_default_str();
    app.add_option("--segments", segments, "the vector is gathered in so many, but in one when blocking")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--steps", steps, "of the conjugate gradient in each solve")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--outer", outer, "solves; 0: as many as the class has, otherwise 1")
        ->check(CLI::Range(0, 1000000))
        ->capture_default_str();
    app.add_option("--tolerance", tolerance, "how far from the serial solve a result may be")
        ->check(number_within(0, 1))
        ->capture_default_str();
    common.add_to(app, "nonzero that is multiplied");
}

}  // namespace thalweg::apps
