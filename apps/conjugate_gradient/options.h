// The options of the conjugate gradient.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/options.h"
#include "conjugate_gradient/solve.h"

namespace thalweg::apps {

struct GradientOptions {
    CommonOptions common;
    std::string nas_class, file;
    std::vector<std::int64_t> n;
    int nonzeros = 7, segments = 2, steps = 25, outer = 0;
    double shift = 10, tolerance = default_tolerance;

    void add_to(CLI::App& app);
};

}  // namespace thalweg::apps
