#include "bench/small.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "bench/columns.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

constexpr double allowed_share = 0.03, allowed_ns = 150;
constexpr int resamples = 2000;

// Parts of a run are resampled in pairs: what slows one part down slows both sides of it.
Interval difference_interval_ns(const std::vector<double>& ours, const std::vector<double>& native) {
    const std::size_t parts = std::min(ours.size(), native.size());
    if (parts == 0) return {};
    std::mt19937_64 random(12345);
    std::uniform_int_distribution<std::size_t> any(0, parts - 1);
    std::vector<double> differences(resamples), drawn(parts);
    for (auto& difference : differences) {
        for (auto& value : drawn) {
            const std::size_t part = any(random);
            value = 1e9 * (ours[part] - native[part]);
        }
        difference = median(drawn);
    }
    return {percentile(differences, 0.025), percentile(differences, 0.975)};
}

std::string ns_text(double ns) { return fmt::format("{:.0f} ns", ns); }

std::string p99_text(double ns, const SmallLine& line) {
    return line.last_ns > 0 && ns >= line.last_ns ? "> " + time_text(1e-9 * line.last_ns) : ns_text(ns);
}

}  // namespace

std::vector<std::string> small_sizes() { return {"1", "8", "512", "4K", "32K"}; }

double small_allowance_ns(double native_ns) { return std::max(allowed_ns, allowed_share * native_ns); }

std::vector<SmallLine> summarize_small(const std::vector<Row>& rows) {
    struct Sides {
        const Row* native = nullptr;
        const Row* again = nullptr;
        const Row* ours = nullptr;
    };
    std::map<std::tuple<std::string, std::string, std::uint64_t>, Sides> points;
    for (const auto& row : rows) {
        if (row.phase != small_phase || row.calls.is_null()) continue;
        Sides& sides = points[{row.context.value("mpi_name", ""), row.context.value("shape", ""), row.bytes}];
        if (row.column == native_default) sides.native = &row;
        if (row.column == native_again) sides.again = &row;
        if (row.column == automatic) sides.ours = &row;
    }
    std::vector<SmallLine> lines;
    for (const auto& [key, sides] : points) {
        const auto& [native, again, ours] = sides;
        // Only what was measured in turns is compared.
        if (native == nullptr || ours == nullptr || native->launch != ours->launch) continue;
        SmallLine line;
        std::tie(line.mpi, line.shape, line.bytes) = key;
        line.calls = ours->calls.at("count");
        line.native_ns = native->calls.at("median_ns");
        line.ours_ns = ours->calls.at("median_ns");
        line.again_ns = again != nullptr ? again->calls.at("median_ns").get<double>() : 0.0;
        line.native_p99_ns = native->calls.at("p99_ns");
        line.ours_p99_ns = ours->calls.at("p99_ns");
        line.clock_ns = ours->calls.value("clock_ns", 0.0);
        line.clock_step_ns = ours->calls.value("clock_step_ns", 0.0);
        line.last_ns = ours->calls.value("last_ns", 0.0);
        line.difference_ns = difference_interval_ns(ours->seconds, native->seconds);
        line.algorithm = ours->algorithm.empty() ? "native" : ours->algorithm;
        line.wrong_words = native->wrong_words + ours->wrong_words;
        line.decision = line.ours_ns - line.native_ns <= small_allowance_ns(line.native_ns)
                            ? Verdict::not_slower
                            : Verdict::slower;
        lines.push_back(std::move(line));
    }
    return lines;
}

std::string format_small(const std::vector<Row>& rows, bool markdown) {
    const auto lines = summarize_small(rows);
    if (lines.empty()) return "";
    std::vector<std::vector<std::string>> cells{{"MPI", "hosts x ranks", "bytes", "calls", "native",
                                                 "Thalweg", "difference [95 %]", "allowed", "verdict", "A/A",
                                                 "native p99", "Thalweg p99", "clock", "ran"}};
    for (const auto& line : lines) {
        const double difference = line.ours_ns - line.native_ns;
        cells.push_back(
            {line.mpi, line.shape, bytes_text(line.bytes), fmt::format("{}", line.calls),
             ns_text(line.native_ns), ns_text(line.ours_ns),
             fmt::format("{:+.0f} ns [{:+.0f}, {:+.0f}] ({:+.1f} %)", difference, line.difference_ns.low,
                         line.difference_ns.high, 100 * difference / line.native_ns),
             ns_text(small_allowance_ns(line.native_ns)), std::string(name_of(line.decision)),
             line.again_ns > 0 ? fmt::format("{:+.0f} ns", line.again_ns - line.native_ns) : "-",
             p99_text(line.native_p99_ns, line), p99_text(line.ours_p99_ns, line),
             fmt::format("{:.0f} ns by {:.0f}", line.clock_ns, line.clock_step_ns), line.algorithm});
    }
    return format_cells(cells, markdown);
}

}  // namespace thalweg::bench
