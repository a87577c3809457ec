#include "base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace thalweg {

std::string bytes_text(std::uint64_t bytes) {
    static constexpr std::array<const char*, 5> units = {"", "K", "M", "G", "T"};
    std::size_t unit = 0;
    while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < units.size()) {
        bytes /= 1024;
        ++unit;
    }
    return std::to_string(bytes) + units[unit];
}

std::string number_text(double value) {
    const auto millionths = static_cast<std::uint64_t>(std::llround(value * 1e6));
    std::string text = std::to_string(millionths / 1'000'000);
    std::string decimals = std::to_string(1'000'000 + millionths % 1'000'000).substr(1);
    decimals.erase(decimals.find_last_not_of('0') + 1);
    return decimals.empty() ? text : text + "." + decimals;
}

std::string rate_text(double bytes_per_second) {
    static constexpr std::array<const char*, 5> units = {"bit", "kbit", "mbit", "gbit", "tbit"};
    double bits = bytes_per_second * 8;
    std::size_t unit = 0;
    while (bits >= 1000 && unit + 1 < units.size()) {
        bits /= 1000;
        ++unit;
    }
    return number_text(bits) + units[unit];
}

namespace {

// Letters to insert, drop, change or swap with their neighbour (restricted Damerau-Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, above);
        std::swap(above, row);
    }
    return above[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names) {
    std::string_view best;
    std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
    for (std::string_view candidate : names) {
        const std::size_t d = distance(name, candidate);
        if (d < best_distance) {
            best = candidate;
            best_distance = d;
        }
    }
    return best;
}

}  // namespace thalweg
