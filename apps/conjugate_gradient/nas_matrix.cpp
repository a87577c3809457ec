// The matrix of NAS CG, written from its description in RNR-94-007.
#include <algorithm>
#include <cmath>

#include "conjugate_gradient/matrix.h"

namespace thalweg::apps {
namespace {

// x(k + 1) = 5^13 x(k) mod 2^46, from 314159265; numbers are x / 2^46.
class NasRandom {
  public:
    double next() {
        constexpr std::uint64_t multiplier = 1220703125, mask = (std::uint64_t{1} << 46) - 1;
        state_ = (state_ * multiplier) & mask;  // what overflows is a multiple of 2^64
        return static_cast<double>(state_) * 0x1p-46;
    }

  private:
    std::uint64_t state_ = 314159265;
};

struct Element {
    std::int32_t place;
    double value;
};

// `nonzeros` random places among n, all different, with random values.
void random_vector(NasRandom& random, std::int64_t n, int nonzeros, std::vector<Element>& vector) {
    std::int64_t power = 1;  // places are drawn below the next power of two, those from n on discarded
    while (power < n) power *= 2;
    vector.clear();
    while (vector.size() < static_cast<std::size_t>(nonzeros)) {
        const double value = random.next();
        const auto place = static_cast<std::int64_t>(static_cast<double>(power) * random.next());
        if (place >= n) continue;
        const bool taken = std::any_of(vector.begin(), vector.end(),
                                       [&](const Element& element) { return element.place == place; });
        if (!taken) vector.push_back({static_cast<std::int32_t>(place), value});
    }
}

constexpr struct {
    const char* name;
    NasProblem problem;
} classes[] = {
    // The results are those that the benchmark publishes for its own check.
    {"S", {1400, 7, 10, 15, 8.5971775078648}},     {"W", {7000, 8, 12, 15, 10.362595087124}},
    {"A", {14000, 11, 20, 15, 17.130235054029}},   {"B", {75000, 13, 60, 75, 22.712745482631}},
    {"C", {150000, 15, 110, 75, 28.973605592845}},
};

}  // namespace

bool find_nas_class(const std::string& name, NasProblem& problem) {
    for (const auto& each : classes)
        if (name == each.name) {
            problem = each.problem;
            return true;
        }
    return false;
}

Rows nas_rows(const NasProblem& problem, std::int64_t begin, std::int64_t end) {
    NasRandom random;
    random.next();  // the benchmark draws one number before it makes the matrix
    const double ratio = std::pow(nas_rcond, 1.0 / static_cast<double>(problem.n));
    double size = 1;
    std::vector<Element> vector;
    std::vector<Entry> entries;
    for (std::int64_t i = 0; i < problem.n; ++i, size *= ratio) {
        random_vector(random, problem.n, problem.nonzeros, vector);
        const auto diagonal = std::find_if(vector.begin(), vector.end(),
                                           [&](const Element& element) { return element.place == i; });
        if (diagonal != vector.end()) {
            diagonal->value = 0.5;
        } else {
            vector.push_back({static_cast<std::int32_t>(i), 0.5});
        }
        for (const Element& row : vector) {
            if (row.place < begin || row.place >= end) continue;
            for (const Element& column : vector) {
                double value = column.value * (size * row.value);
                // rcond keeps the smallest eigenvalue of the sum from zero.
                if (row.place == i && column.place == i) value += nas_rcond - problem.shift;
                entries.push_back({row.place, column.place, value});
            }
        }
    }
    return rows_of(std::move(entries), begin, end);
}

}  // namespace thalweg::apps
