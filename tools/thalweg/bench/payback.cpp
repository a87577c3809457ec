#include "bench/payback.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>

#include "bench/columns.h"
#include "bench/picture.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

enum class Baseline : std::uint8_t { native, best, window };

struct Comparison {
    std::string_view plan;
    Baseline baseline;
    std::string_view against, colour;
};
// In the order in which they are told.
constexpr Comparison comparisons[] = {
    {"rma_fence_barrier", Baseline::window, window_per_call, "#00798c"},
    {"rma_fence", Baseline::window, window_per_call, "#0b6fa4"},
    {automatic_plan, Baseline::window, window_per_call, "#3a7d44"},
    {automatic_plan, Baseline::native, "MPI_Alltoallv", "#d1495b"},
    {automatic_plan, Baseline::best, "the best native call", "#8a5fbf"},
    {native_plan, Baseline::native, "MPI_Alltoallv", "#c77700"},
};

constexpr std::string_view drawn_pattern = "dense";

// Null where the line has no N* against that.
const BreakEven* pays_of(const ExchangeLine& line, Baseline baseline) {
    switch (baseline) {
        case Baseline::native:
            return line.pays_native() ? &line.against_native : nullptr;
        case Baseline::best:
            return line.pays_best() ? &line.against_best : nullptr;
        case Baseline::window:
            return line.pays_window() ? &line.against_window : nullptr;
    }
    return nullptr;
}

std::string curve_name(const Payback& payback) { return payback.plan + " against " + payback.against; }

std::string place_of(const Payback& payback) {
    return payback.shape + (payback.rate.empty() ? "" : ", " + payback.rate);
}

std::string_view colour_of(const Payback& payback) {
    for (const Comparison& each : comparisons)
        if (each.plan == payback.plan && each.against == payback.against) return each.colour;
    return "#4a4a4a";
}

}  // namespace

std::string Payback::at_once_text(bool surely) const {
    const auto holds = [surely](const Point& point) {
        return (surely ? point.pays.high : point.pays.calls) <= immediate_payoff;
    };
    std::string text;
    for (std::size_t begin = 0, end = 0; begin < points.size(); begin = end) {
        end = begin + 1;
        if (!holds(points[begin])) continue;
        while (end < points.size() && holds(points[end])) ++end;
        text += (text.empty() ? "" : ", ") + bytes_text(points[begin].bytes);
        if (end - begin > 1) text += " to " + bytes_text(points[end - 1].bytes);
    }
    return text.empty() ? "never" : text;
}

std::vector<Payback> paybacks(const std::vector<ExchangeLine>& lines) {
    using Key = std::tuple<std::string, std::string, std::string, std::string, std::size_t>;
    std::map<Key, Payback> by_key;
    for (const ExchangeLine& line : lines)
        for (std::size_t i = 0; i < std::size(comparisons); ++i) {
            const Comparison& comparison = comparisons[i];
            const BreakEven* const pays = pays_of(line, comparison.baseline);
            if (line.column != comparison.plan || pays == nullptr) continue;
            Payback& payback = by_key[{line.mpi, line.shape, line.rate, line.pattern, i}];
            payback.mpi = line.mpi;
            payback.shape = line.shape;
            payback.rate = line.rate;
            payback.pattern = line.pattern;
            payback.plan = line.column;
            payback.against = comparison.against;
            payback.points.push_back({line.bytes, *pays});
        }
    std::vector<Payback> all;
    for (auto& [key, payback] : by_key) {
        std::sort(payback.points.begin(), payback.points.end(),
                  [](const Payback::Point& a, const Payback::Point& b) { return a.bytes < b.bytes; });
        all.push_back(std::move(payback));
    }
    return all;
}

std::string format_payback(const std::vector<Payback>& all, bool markdown) {
    if (all.empty()) return "";
    std::vector<std::vector<std::string>> cells{{"MPI", "hosts x ranks, rate", "pattern", "plan", "against",
                                                 "measured", "pays at once", "surely", "least N*"}};
    for (const Payback& each : all) {
        const auto least = std::min_element(
            each.points.begin(), each.points.end(),
            [](const Payback::Point& a, const Payback::Point& b) { return a.pays.calls < b.pays.calls; });
        const std::uint64_t first = each.points.front().bytes, last = each.points.back().bytes;
        cells.push_back(
            {each.mpi, place_of(each), each.pattern, each.plan, each.against,
             first == last ? bytes_text(first) : fmt::format("{} to {}", bytes_text(first), bytes_text(last)),
             each.at_once_text(false), each.at_once_text(true),
             least->pays.calls == never
                 ? "never"
                 : fmt::format("{} at {}", calls_text(least->pays.calls), bytes_text(least->bytes))});
    }
    return format_cells(cells, markdown);
}

std::string draw_payback(const std::vector<Payback>& all, const std::string& mpi) {
    std::vector<Panel> panels;
    for (const Payback& each : all) {
        if (each.mpi != mpi || each.pattern != drawn_pattern) continue;
        const std::string title = fmt::format("{}, {}", mpi, place_of(each));
        if (panels.empty() || panels.back().title != title) panels.push_back({title, {}});
        Curve curve{curve_name(each), colour_of(each), {}};
        for (const Payback::Point& point : each.points)
            curve.points.emplace_back(static_cast<double>(point.bytes), point.pays.calls);
        panels.back().curves.push_back(std::move(curve));
    }
    Axes axes;
    axes.across = "bytes of a pair";
    axes.up = "N*";
    axes.infinite = "never";
    axes.line = immediate_payoff;
    axes.line_text = fmt::format("pays at once: N* is at most {}", immediate_payoff);
    return draw_panels(panels, axes);
}

}  // namespace thalweg::bench
