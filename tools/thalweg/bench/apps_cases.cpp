// The applications' rows: what each is started with, and the arithmetic of its slow-down.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "bench/apps.h"

namespace thalweg::bench {
namespace {

constexpr const char* manual_pieces = "16,64,256";

// Three digits: a figure that a reader can type.
double rounded(double value) { return std::stod(fmt::format("{:.2e}", value)); }

}  // namespace

double bytes_per_second(const std::string& rate) {
    char* end = nullptr;
    const double value = std::strtod(rate.c_str(), &end);
    const std::string unit = end;
    const double bits = unit == "kbit" ? 1e3 : unit == "mbit" ? 1e6 : unit == "gbit" ? 1e9 : 0;
    return std::isfinite(value) && value > 0 ? value * bits / 8 : 0;
}

bool find_app(const std::string& app, const Shape& shape, double rate_bytes_per_second, AppCase& found) {
    const int hosts = std::max(1, shape.hosts), ranks = hosts * shape.ppn;
    const double wire = static_cast<double>(app_bytes) * (ranks - shape.ppn) / rate_bytes_per_second;
    if (app == "radix_sort") {
        // 2^16 counters of 4 bytes. Few keys: their exchange cannot be hidden.
        constexpr int digit_bits = 16, keys_per_rank = 32768;
        constexpr double work_per_allgather = 1.25;
        found = {app, "radix-sort", {}, 6, rounded(work_per_allgather * wire / keys_per_rank), 0.40};
        found.options = {"--keys", std::to_string(keys_per_rank * ranks), "--digit-bits",
                         std::to_string(digit_bits)};
    } else if (app == "conjugate_gradient") {
        constexpr int rows_per_rank = app_bytes / sizeof(double), nonzeros = 5, steps = 2, segments = 2;
        // Of an outer product of nonzeros + 1 elements, less the diagonal entries that fall together.
        constexpr double entries_per_row = (nonzeros + 1) * nonzeros + 1;
        constexpr double work_per_allgather = 0.68 / 0.32;
        found = {app,
                 "conjugate-gradient",
                 {},
                 3,
                 rounded(work_per_allgather * wire / (rows_per_rank * entries_per_row)),
                 0.32};
        found.options = {"--n",        std::to_string(rows_per_rank * ranks),
                         "--nonzeros", std::to_string(nonzeros),
                         "--steps",    std::to_string(steps),
                         "--segments", std::to_string(segments)};
    } else {
        return false;
    }
    found.known["slowdown"] = found.slowdown;
    found.options.insert(found.options.end(),
                         {"--slowdown", fmt::format("{:g}", found.slowdown), "--pieces", manual_pieces});
    return true;
}

}  // namespace thalweg::bench
