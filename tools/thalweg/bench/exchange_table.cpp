#include "bench/exchange_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "bench/columns.h"
#include "bench/exchange_twin.h"
#include "bench/table.h"
#include "model/exchange.h"

namespace thalweg::bench {
namespace {

using Key = std::tuple<std::string, std::string, std::string, std::string, std::uint64_t>;
using Points = std::map<Key, std::vector<const Row*>>;

// The plan of the paper's comparison; the same with the paper's further meeting stands beside it.
constexpr std::string_view fence_plans[] = {"rma_fence", "rma_fence_barrier"};

std::vector<double> values(const Row& row, const char* name) {
    const auto found = row.exchange.find(name);
    return found == row.exchange.end() ? std::vector<double>() : found->get<std::vector<double>>();
}

Points points_of(const std::vector<Row>& rows) {
    Points points;
    for (const Row& row : rows)
        if (row.phase == exchange_phase && !row.exchange.is_null())
            points[{row.context.value("mpi_name", ""), row.context.value("shape", ""), links_text(row),
                    row.exchange.value("pattern", ""), row.bytes}]
                .push_back(&row);
    return points;
}

// The order in which columns stand: as they are measured, and after them what the user asked for.
std::size_t rank_of(const std::string& column) {
    static const std::vector<ColumnPlan> known = exchange_columns({});
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const ColumnPlan& plan) { return plan.name == column; });
    return static_cast<std::size_t>(found - known.begin());
}

std::vector<const Row*> newest(const std::vector<const Row*>& rows) {
    std::map<std::string, const Row*> by_column;
    for (const Row* row : rows) {
        const Row*& kept = by_column[row->column];
        if (kept == nullptr || row->launch >= kept->launch) kept = row;
    }
    std::vector<const Row*> ordered;
    for (const auto& [column, row] : by_column) ordered.push_back(row);
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const Row* a, const Row* b) { return rank_of(a->column) < rank_of(b->column); });
    return ordered;
}

// What took turns with this row under another column.
const Row* beside(const std::vector<const Row*>& rows, const Row& row, std::string_view column) {
    for (const Row* each : rows)
        if (each->launch == row.launch && each->column == column && !each->seconds.empty()) return each;
    return nullptr;
}

// The fastest of the MPI's own that took turns with this row; null where none did. A/A is its default again.
const Row* best_beside(const std::vector<const Row*>& rows, const Row& row) {
    const Row* best = nullptr;
    for (const Row* each : rows)
        if (each->launch == row.launch && is_native(each->column) && each->column != native_again &&
            !each->seconds.empty() && (best == nullptr || median(each->seconds) < median(best->seconds)))
            best = each;
    return best;
}

// Making and freeing a plan, pair by pair.
std::vector<double> plan_seconds_once(const Row& row) {
    std::vector<double> sums = values(row, "init_seconds");
    const std::vector<double> frees = values(row, "free_seconds");
    for (std::size_t i = 0; i < std::min(sums.size(), frees.size()); ++i) sums[i] += frees[i];
    return sums;
}

// A plan's N* is predicted from an exchange of messages up to this, of which most of the time is not the
// bytes'. What remains of a call without those is a tenth at least: neither figure is exact.
constexpr std::uint64_t largest_small_bytes = 4096;
constexpr double least_small_share = 0.1;

// Of the links beside each other that a host has, each of that rate and with a bucket of its own.
struct LabLink {
    double bytes_per_second, burst_bytes;
};
LabLink link_of(const Row& row) {
    const double rails = row.context.value("rails", 1);
    return {rails * setting(row, "THALWEG_LAB_RATE_BYTES_PER_S"),
            rails * setting(row, "THALWEG_LAB_BURST_BYTES")};
}

double without_bytes(const Row& row) {
    const double seconds = median(row.seconds);
    const LabLink link = link_of(row);
    if (link.bytes_per_second <= 0) return seconds;
    const double wire = wire_seconds(necessary_link_bytes(row), link.bytes_per_second, link.burst_bytes);
    return std::max(seconds - wire, least_small_share * seconds);
}

// The median call of the A/A column at the smallest size of each MPI, shape, rate and pattern, without what
// its bytes take: 4 KiB between all pairs of 8 ranks are nine tenths of it.
using SmallCalls = std::map<std::tuple<std::string, std::string, std::string, std::string>, double>;
SmallCalls small_calls(const Points& points) {
    SmallCalls small;
    for (const auto& [key, group] : points) {  // by size, at last
        const auto& [mpi, shape, rate, pattern, bytes] = key;
        if (bytes > largest_small_bytes) continue;
        for (const Row* row : newest(group))
            if (row->column == native_again && !row->seconds.empty())
                small.try_emplace({mpi, shape, rate, pattern}, without_bytes(*row));
    }
    return small;
}

// What a column's plan does, as forecast_plan() calls it.
std::string way_of(const Row& row) {
    if (row.column == native_plan) return "native";
    if (!row.column.starts_with(automatic_plan)) return row.column;
    return row.algorithm.empty() ? "native" : row.algorithm;
}

void predict(ExchangeLine& line, const Row& row, const std::vector<const Row*>& rows, double small_seconds) {
    const Row* const again = beside(rows, row, native_again);
    if (again == nullptr || !line.is_plan() || line.link_bytes <= 0) return;
    ExchangeSeen seen;
    seen.once_seconds = median(again->seconds);
    seen.small_seconds = small_seconds;
    seen.message_bytes = row.bytes;
    seen.link_bytes = line.link_bytes;
    const LabLink link = link_of(row);
    seen.bytes_per_second = link.bytes_per_second;
    seen.burst_bytes = link.burst_bytes;
    const auto forecast = forecast_plan(way_of(row), seen);
    if (!forecast) return;
    line.predicted_calls = forecast->calls;
    line.foresight = foresight_of(forecast->calls, line.against_native);
}

// Where the call was left to the MPI there is no gain to split.
void split_gain(ExchangeLine& line, const Row& row, const std::vector<const Row*>& rows) {
    if (row.column != automatic_plan || row.algorithm.empty() || line.of_native.value <= 0) return;
    const std::string column = twin_column(line.mpi, row.context.value("ranks", 0));
    const Row* twin = nullptr;
    for (const Row* each : rows)
        if (each->column == column && !each->algorithm.empty() && !each->seconds.empty() &&
            (twin == nullptr || each->launch >= twin->launch))
            twin = each;
    const Row* const native = twin == nullptr ? nullptr : beside(rows, *twin, native_default);
    if (native == nullptr) return;
    line.twin = column;
    line.waiting = median(native->seconds) / median(twin->seconds);
}

// What a column of ours ran, or why the MPI did. Rows of repeated calls may lack it.
std::string ran_of(const Row& row) {
    const bool is_repeated = row.column == automatic;
    if (!is_repeated && !row.column.starts_with(automatic_plan)) return "";
    if (is_repeated) {
        const int taken = row.exchange.value("taken_calls", -1),
                  samples = static_cast<int>(row.seconds.size());
        if (taken < 0) return "";
        if (taken > 0 && taken < samples) return fmt::format("ours in {} of {} calls", taken, samples);
    }
    if (!row.algorithm.empty()) return row.algorithm;
    return row.reason.empty() ? "native" : "native: " + row.reason;
}

ExchangeLine line_of(const Row& row, const std::vector<const Row*>& rows, double small_seconds) {
    ExchangeLine line;
    line.mpi = row.context.value("mpi_name", "");
    line.shape = row.context.value("shape", "");
    line.rate = links_text(row);
    line.pattern = row.exchange.value("pattern", "");
    line.column = row.column;
    line.bytes = row.bytes;
    line.neighbours = row.exchange.value("neighbours", 0);
    line.samples = row.seconds.size();
    line.launch = row.launch;
    line.wrong_words = row.wrong_words;
    line.stopped = row.stopped;
    line.seconds = median(row.seconds);
    line.limit_seconds = limit_seconds(row);
    line.link_bytes = necessary_link_bytes(row);
    line.tx_bytes = row.tx_bytes;
    const double idle_packets = row.exchange.value("idle_packets", -1.0);
    if (idle_packets >= 0 && row.tx_packets >= 0) line.tx_packets = row.tx_packets - idle_packets;
    line.ran = ran_of(row);
    const std::vector<double> inits = plan_seconds_once(row);
    line.init_seconds = median(inits);
    if (const Row* native = beside(rows, row, native_default); native != nullptr && !row.seconds.empty()) {
        line.of_native = ratio_of_medians(row.seconds, native->seconds);
        if (!inits.empty()) line.against_native = pays_after(inits, native->seconds, row.seconds);
    }
    if (const Row* plan = beside(rows, row, native_plan);
        plan != nullptr && row.column.starts_with(automatic_plan) && !row.seconds.empty())
        line.of_plan = ratio_of_medians(row.seconds, plan->seconds);
    if (const Row* best = best_beside(rows, row); best != nullptr && !row.seconds.empty()) {
        line.best_native = best->column;
        line.of_best = ratio_of_medians(row.seconds, best->seconds);
        if (best->column == native_default)
            line.against_best = line.against_native;
        else if (!inits.empty() && best != &row)
            line.against_best = pays_after(inits, best->seconds, row.seconds);
    }
    if (const Row* window = beside(rows, row, window_per_call); window != nullptr && !row.seconds.empty()) {
        line.window_seconds = median(window->seconds);
        if (!inits.empty()) line.against_window = pays_after(inits, window->seconds, row.seconds);
    }
    if (line.of_native.value > 0) predict(line, row, rows, small_seconds);
    split_gain(line, row, rows);
    return line;
}

}  // namespace

std::set<std::pair<std::string, std::uint64_t>> undecided_points(const std::vector<ExchangeLine>& lines) {
    std::set<std::pair<std::string, std::uint64_t>> points;
    for (const ExchangeLine& line : lines)
        if ((line.column == automatic || line.column == automatic_plan) &&
            any_undecided({line.of_best, line.of_native, line.of_plan}))
            points.insert({line.pattern, line.bytes});
    return points;
}

std::vector<ExchangeLine> summarize_exchange(const std::vector<Row>& rows) {
    std::vector<ExchangeLine> lines;
    const Points points = points_of(rows);
    const SmallCalls small = small_calls(points);
    for (const auto& [key, group] : points) {
        const auto& [mpi, shape, rate, pattern, bytes] = key;
        const auto known = small.find({mpi, shape, rate, pattern});
        for (const Row* row : newest(group))
            lines.push_back(line_of(*row, group, known == small.end() ? 0 : known->second));
    }
    return lines;
}

const char* name_of(Foresight foresight) {
    switch (foresight) {
        case Foresight::unknown:
            return "-";
        case Foresight::undecided:
            return "undecided";
        case Foresight::both_never:
            return "both never";
        case Foresight::within_two:
            return "within a factor of 2";
        case Foresight::differs:
            return "NOT";
    }
    return "";
}

Foresight foresight_of(double predicted_calls, const BreakEven& measured) {
    constexpr double near = 2;
    if (!measured.decided()) return Foresight::undecided;
    if (measured.calls == never && predicted_calls == never) return Foresight::both_never;
    if (measured.calls == never || predicted_calls == never) return Foresight::differs;
    const bool close = predicted_calls <= near * measured.calls && measured.calls <= near * predicted_calls;
    return close ? Foresight::within_two : Foresight::differs;
}

ForesightCount count_foresight(const std::vector<ExchangeLine>& lines) {
    ForesightCount count;
    for (const ExchangeLine& line : lines) {
        count.undecided += line.foresight == Foresight::undecided;
        count.both_never += line.foresight == Foresight::both_never;
        count.within_two += line.foresight == Foresight::within_two;
        count.differ += line.foresight == Foresight::differs;
    }
    return count;
}

std::vector<WindowLine> compare_windows(const std::vector<Row>& rows) {
    std::vector<WindowLine> lines;
    for (const auto& [key, group] : points_of(rows))
        for (const Row* row : newest(group)) {
            if (std::find(std::begin(fence_plans), std::end(fence_plans), row->column) ==
                std::end(fence_plans))
                continue;
            const Row* const once = beside(group, *row, window_per_call);
            if (once == nullptr || row->seconds.empty()) continue;
            WindowLine line;
            std::tie(line.mpi, line.shape, line.rate, line.pattern, line.bytes) = key;
            line.plan = row->column;
            line.once_seconds = median(once->seconds);
            line.set_up_seconds = median(values(*once, "set_up_seconds"));
            line.plan_seconds = median(row->seconds);
            if (const Row* kept = beside(group, *row, window_kept)) line.kept_seconds = median(kept->seconds);
            if (const Row* native = beside(group, *row, native_default))
                line.native_seconds = median(native->seconds);
            line.reduction = 1 - line.plan_seconds / line.once_seconds;
            line.set_up = line.set_up_seconds / line.once_seconds;
            if (line.kept_seconds > 0) line.kept_saves = 1 - line.kept_seconds / line.once_seconds;
            line.pays = pays_after(plan_seconds_once(*row), once->seconds, row->seconds);
            lines.push_back(std::move(line));
        }
    return lines;
}

}  // namespace thalweg::bench
