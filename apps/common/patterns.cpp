#include "common/patterns.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>
#include <set>

#include "common/partition.h"
#include "conjugate_gradient/matrix.h"

namespace thalweg::apps {
namespace {

constexpr unsigned seed = 20260406;
constexpr int near_share = 8;  // banded: a rank's neighbours on one side, as a share of all ranks

// Not a distribution of the standard library: those differ between libraries.
double random_share(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

bool read_pattern(const std::string& path, int ranks, std::uint64_t bytes, std::vector<std::uint64_t>& matrix,
                  std::string& why) {
    std::int64_t n = 0;
    std::vector<Entry> entries;
    if (!read_matrix_market(path, n, entries, why)) return false;
    const Partition partition{n, ranks};
    std::set<std::pair<int, std::int32_t>> needed;  // (rank, column)
    for (const Entry& entry : entries) needed.insert({partition.owner(entry.row), entry.column});
    for (const auto& [rank, column] : needed) {
        const int owner = partition.owner(column);
        std::uint64_t& message = matrix[static_cast<std::size_t>(owner * ranks + rank)];
        if (owner != rank && __builtin_add_overflow(message, bytes, &message)) {
            why = path + ": a message has more bytes than 64 bits can count";
            return false;
        }
    }
    return true;
}

}  // namespace

bool make_pattern(const std::string& name, int ranks, std::uint64_t bytes, std::vector<std::uint64_t>& matrix,
                  std::string& why) {
    const auto size = static_cast<std::size_t>(ranks);
    matrix.assign(size * size, 0);
    if (name.ends_with(".mtx")) return read_pattern(name, ranks, bytes, matrix, why);
    std::mt19937_64 random(seed);
    const int reach = std::max(1, ranks / near_share), groups = std::clamp(ranks / 2, 1, ranks >= 8 ? 4 : 2);
    const auto exact = static_cast<double>(bytes);
    std::vector<double> shares(size);
    for (int from = 0; from < ranks; ++from) {
        if (name == "powerlaw") {
            double sum = 0;
            for (std::size_t k = 0; k < size; ++k) sum += shares[k] = 1 / static_cast<double>(k + 1);
            for (double& share : shares) share *= static_cast<double>(size) / sum;
            for (std::size_t k = size - 1; k > 0; --k) std::swap(shares[k], shares[random() % (k + 1)]);
        }
        for (int to = 0; to < ranks; ++to) {
            std::uint64_t& value = matrix[static_cast<std::size_t>(from * ranks + to)];
            if (name == "dense") {
                value = bytes;
            } else if (name == "uniform") {
                value = static_cast<std::uint64_t>(std::llround(exact * (0.9 + 0.2 * random_share(random))));
            } else if (name == "powerlaw") {
                value =
                    static_cast<std::uint64_t>(std::llround(exact * shares[static_cast<std::size_t>(to)]));
            } else if (name == "banded") {
                value = from != to && std::abs(from - to) <= reach ? bytes : 0;
            } else if (name == "block") {
                value = from % groups == to % groups ? bytes : 0;
            } else if (name == "one_to_many") {
                value = from == 0 && to != 0 ? bytes : 0;
            } else {
                why = "there is no pattern " + name + "; there are " + pattern_names;
                return false;
            }
        }
    }
    return true;
}

}  // namespace thalweg::apps
