#include "bench/overlap_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "bench/columns.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

using Key = std::tuple<std::string, std::string, std::string, std::string, int, std::uint64_t>;
using Values = std::vector<double>;

Values values(const nlohmann::json& from, const char* name) {
    const auto found = from.find(name);
    return found == from.end() ? Values() : found->get<Values>();
}

// The part of a row that was measured with equal work of this kind; null where it was not.
const nlohmann::json* equal_part(const Row* row, const std::string& kind) {
    if (row == nullptr || row->overlap.is_null()) return nullptr;
    const auto& parts = row->overlap.at("equal");
    const auto found = parts.find(kind);
    return found == parts.end() ? nullptr : &*found;
}

// Of computation: pair by pair.
Ratio ratio_of(const Row* ours, const Row* theirs, const std::string& kind) {
    const auto *left = equal_part(ours, kind), *right = equal_part(theirs, kind);
    if (left == nullptr || right == nullptr) return {};
    return median_of_ratios(values(*left, "compute"), values(*right, "compute"));
}

// Of computation and communication together: what a verdict is given of, as of any other call.
Ratio ratio_of_totals(const Row* ours, const Row* theirs, const std::string& kind) {
    const auto *left = equal_part(ours, kind), *right = equal_part(theirs, kind);
    if (left == nullptr || right == nullptr) return {};
    return ratio_of_medians(values(*left, "total"), values(*right, "total"));
}

// The order in which columns stand.
int rank_of(const std::string& column) {
    const std::string_view order[] = {native_default,  native_again,     native_tested, native_async,
                                      native_blocking, socket_reference, no_traffic,    automatic};
    const auto found = std::find(std::begin(order), std::end(order), column);
    return static_cast<int>(found - std::begin(order));
}

// The rows of one point: newest of each column; of columns that several launches have, that of the main one.
std::vector<const Row*> newest(const std::vector<const Row*>& rows) {
    std::map<std::string, const Row*> by_column;
    for (const Row* row : rows) {
        const bool apart = !row->context.value("environment", "").empty();
        if (apart && (row->column == socket_reference || row->column == automatic)) continue;
        const Row*& kept = by_column[row->column];
        if (kept == nullptr || row->launch >= kept->launch) kept = row;
    }
    std::vector<const Row*> ordered;
    for (const auto& [column, row] : by_column) ordered.push_back(row);
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const Row* a, const Row* b) { return rank_of(a->column) < rank_of(b->column); });
    return ordered;
}

const Row* beside(const std::vector<const Row*>& rows, const Row& row, std::string_view column) {
    for (const Row* each : rows)
        if (each->launch == row.launch && each->column == column) return each;
    return nullptr;
}

void describe_run(const Row& row, OverlapLine& line) {
    if (!line.column.starts_with(automatic)) return;
    line.algorithm = !row.algorithm.empty() ? row.algorithm
                     : row.reason.empty()   ? "native"
                                            : "native: " + row.reason;
}

// Each blocking algorithm, as it was measured last, with what took turns with it.
void compare_with_blocking(const Row& row, const std::vector<const Row*>& rows, OverlapLine& line) {
    if (row.column != automatic) return;
    for (const Row* blocking : newest(rows)) {
        const Row* const ours = beside(rows, *blocking, automatic);
        if (!blocking->column.starts_with(native_blocking) || ours == nullptr) continue;
        const Ratio ratio = ratio_of_medians(ours->seconds, blocking->seconds);
        if (is_worse(ratio, line.of_blocking)) {
            line.of_blocking = ratio;
            line.best_blocking = blocking->column;
        }
    }
}

OverlapLine line_of(const Row& row, const std::vector<const Row*>& rows) {
    OverlapLine line;
    line.mpi = row.context.value("mpi_name", "");
    line.shape = row.context.value("shape", "");
    line.rate = row.context.value("rate", "");
    line.rails = row.context.value("rails", 1);
    line.collective = row.collective;
    line.element = element_of(row);
    line.column = row.column;
    line.bytes = row.bytes;
    line.launch = row.launch;
    line.wrong_words = row.wrong_words;
    line.stopped = row.stopped;
    line.moves = row.column != no_traffic;
    line.alone = row.column.starts_with(native_blocking) && row.column != native_blocking;
    if (row.overlap.is_null()) return line;
    const nlohmann::json& seen = row.overlap;
    line.compute = seen.at("compute");
    line.limit_seconds = limit_seconds(row);
    line.pure_seconds = median(row.seconds);
    line.samples = row.seconds.size();
    describe_run(row, line);
    if (line.moves && !line.alone) {
        line.osu = osu_overlap(median(values(seen, "pure_mean")), median(values(seen, "computed")),
                               median(values(seen, "total")));
        line.imb = imb_overlap(median(values(seen, "worst_pure")), median(values(seen, "worst_computed")),
                               median(values(seen, "worst_total")));
        line.visible_seconds = median(values(seen, "visible"));
        line.tests = seen.at("tests");
        line.agent_cpu_seconds = seen.at("agent_cpu_seconds");
        line.agent_wake_ups = seen.at("agent_wake_ups");
        line.other_cpu_seconds = seen.at("other_cpu_seconds");
        line.other_wake_ups = seen.at("other_wake_ups");
    }
    if (const auto* equal = equal_part(&row, line.compute)) {
        line.samples = values(*equal, "total").size();
        line.equal_seconds = median(values(*equal, "total"));
        line.work_seconds = median(values(*equal, "compute"));
        if (const auto* other = equal_part(beside(rows, row, native_blocking), line.compute))
            line.one_by_one_seconds = median(values(*other, "total"));
        line.crossed_meanwhile = equal->value("crossed_meanwhile", -1.0);
        line.delay_seconds = equal->at("delay_seconds");
        line.lost = equal->at("lost");
        line.softirq_seconds = equal->at("softirq_seconds");
    }
    line.of_native = ratio_of_totals(&row, beside(rows, row, native_default), line.compute);
    compare_with_blocking(row, rows, line);
    const Row* const reference = beside(rows, row, socket_reference);
    const Row* const alone = beside(rows, row, no_traffic);
    line.dilation_arithmetic = ratio_of(&row, reference, "arithmetic");
    line.dilation_memory = ratio_of(&row, reference, "memory");
    line.slowed_arithmetic = ratio_of(&row, alone, "arithmetic");
    line.slowed_memory = ratio_of(&row, alone, "memory");
    return line;
}

std::string percent(double value) { return fmt::format("{:.0f} %", value); }

std::string ratio_text(const Ratio& ratio) {
    return ratio.value > 0 ? fmt::format("{:.2f}", ratio.value) : "-";
}

std::string interval_text(const Ratio& ratio) {
    return ratio.value > 0
               ? fmt::format("{:.3f} [{:.3f}, {:.3f}]", ratio.value, ratio.interval.low, ratio.interval.high)
               : "-";
}

}  // namespace

double osu_overlap(double pure, double computed, double total) {
    return pure > 0 ? std::clamp(100 * (1 - (total - computed) / pure), 0.0, 100.0) : 0;
}

double imb_overlap(double pure, double computed, double total) {
    const double longer = std::max(pure, computed);
    return longer > 0 ? std::clamp(100 * (pure + computed - total) / longer, 0.0, 100.0) : 0;
}

std::vector<OverlapLine> summarize_overlap(const std::vector<Row>& rows) {
    std::map<Key, std::vector<const Row*>> points;
    for (const auto& row : rows)
        if (row.phase == overlap_phase)
            points[{row.collective, row.context.value("mpi_name", ""), row.context.value("shape", ""),
                    row.context.value("rate", ""), row.context.value("rails", 1), row.bytes}]
                .push_back(&row);
    std::vector<OverlapLine> lines;
    for (const auto& [key, group] : points)
        for (const Row* row : newest(group)) lines.push_back(line_of(*row, group));
    return lines;
}

std::string format_hidden(const std::vector<OverlapLine>& lines, bool markdown) {
    if (lines.empty()) return "";
    std::vector<std::vector<std::string>> cells{
        {"collective", "hosts x ranks, rate", "bytes", "column", "pure", "time/limit", "OSU", "IMB",
         "visible", "with equal work", "of native", "crossed meanwhile", "samples", "ran"}};
    for (const auto& line : lines) {
        if (!line.moves) continue;
        std::vector<std::string> row{line.operation(), line.place(), bytes_text(line.bytes), line.column};
        if (!line.stopped.empty()) {
            row.resize(cells[0].size() - 1, "-");
            row.push_back(line.stopped);
            cells.push_back(row);
            continue;
        }
        std::string ran = line.algorithm;
        if (line.tests > 0) ran = fmt::format("{:.0f} tests", line.tests);
        for (std::string& text : std::vector<std::string>{
                 time_text(line.pure_seconds),
                 line.of_limit() > 0 ? fmt::format("{:.2f}", line.of_limit()) : "-",
                 line.alone ? "-" : percent(line.osu), line.alone ? "-" : percent(line.imb),
                 time_text(line.visible_seconds), time_text(line.equal_seconds), ratio_text(line.of_native),
                 line.crossed_meanwhile >= 0 ? percent(100 * line.crossed_meanwhile) : "-",
                 fmt::format("{}", line.samples), ran})
            row.push_back(std::move(text));
        cells.push_back(std::move(row));
    }
    return format_cells(cells, markdown);
}

std::string format_saved(const std::vector<OverlapLine>& lines, bool markdown) {
    std::vector<std::vector<std::string>> cells{{"collective", "MPI", "hosts x ranks, rate", "bytes", "work",
                                                 "limit", "native blocking, then work", "thalweg", "less",
                                                 "at most", "of that"}};
    for (const auto& line : lines) {
        if (line.column != automatic || line.one_by_one_seconds <= 0 || line.equal_seconds <= 0) continue;
        const double least = std::max(line.work_seconds, line.limit_seconds);
        const double less = 1 - line.equal_seconds / line.one_by_one_seconds;
        const double most = 1 - least / line.one_by_one_seconds;
        if (most <= 0) continue;
        cells.push_back({line.operation(), line.mpi, line.place(), bytes_text(line.bytes),
                         time_text(line.work_seconds), time_text(line.limit_seconds),
                         time_text(line.one_by_one_seconds), time_text(line.equal_seconds),
                         percent(100 * less), percent(100 * most), percent(100 * less / most)});
    }
    return cells.size() == 1 ? "" : format_cells(cells, markdown);
}

std::string format_rails(const std::vector<OverlapLine>& lines, bool markdown) {
    std::vector<std::vector<std::string>> cells{{"collective", "MPI", "hosts x ranks, rate of a link",
                                                 "bytes", "links", "one link", "with them", "times as fast",
                                                 "time/limit", "ran"}};
    for (const auto& line : lines) {
        if (line.rails < 2 || line.column != automatic || !line.stopped.empty()) continue;
        for (const auto& one : lines) {
            if (one.rails != 1 || one.column != automatic || !one.stopped.empty() || one.mpi != line.mpi ||
                one.shape != line.shape || one.rate != line.rate || one.collective != line.collective ||
                one.bytes != line.bytes)
                continue;
            cells.push_back(
                {line.operation(), line.mpi, one.place(), bytes_text(line.bytes),
                 fmt::format("{}", line.rails), time_text(one.pure_seconds), time_text(line.pure_seconds),
                 fmt::format("{:.2f}", one.pure_seconds / line.pure_seconds),
                 line.of_limit() > 0 ? fmt::format("{:.2f}", line.of_limit()) : "-", line.algorithm});
        }
    }
    return cells.size() == 1 ? "" : format_cells(cells, markdown);
}

std::string format_ports(const std::vector<OverlapLine>& lines, bool markdown) {
    std::vector<std::vector<std::string>> cells{
        {"collective", "MPI", "hosts x ranks, rate of a link", "bytes", "one port", "time/limit",
         "several ports", "time/limit", "times as fast", "thalweg", "time/limit", "ran"}};
    const auto limit_text = [](const OverlapLine& line) {
        return line.of_limit() > 0 ? fmt::format("{:.2f}", line.of_limit()) : "-";
    };
    for (const auto& line : lines) {
        if (line.rails < 2 || line.column != automatic || !line.stopped.empty()) continue;
        const PortRings rings = port_rings(line.rails);
        const auto beside = [&](const std::string& choice) -> const OverlapLine* {
            for (const auto& each : lines)
                if (each.launch == line.launch && each.collective == line.collective &&
                    each.mpi == line.mpi && each.bytes == line.bytes &&
                    each.column == std::string(ours_prefix) + choice && each.place() == line.place() &&
                    each.pure_seconds > 0)
                    return &each;
            return nullptr;
        };
        const OverlapLine *const one = beside(rings.single), *const several = beside(rings.several);
        if (one == nullptr || several == nullptr) continue;
        cells.push_back({line.operation(), line.mpi, line.place(), bytes_text(line.bytes),
                         time_text(one->pure_seconds), limit_text(*one), time_text(several->pure_seconds),
                         limit_text(*several),
                         fmt::format("{:.2f}", one->pure_seconds / several->pure_seconds),
                         time_text(line.pure_seconds), limit_text(line), line.algorithm});
    }
    return cells.size() == 1 ? "" : format_cells(cells, markdown);
}

std::string format_cost(const std::vector<OverlapLine>& lines, bool markdown) {
    std::vector<std::vector<std::string>> cells{
        {"collective", "hosts x ranks, rate", "bytes", "column", "dilation, arithmetic", "dilation, memory",
         "against no traffic", "agent CPU", "of pure", "agent wake-ups", "other threads' CPU",
         "their wake-ups", "run-queue delay", "cores lost", "softirq"}};
    for (const auto& line : lines) {
        if (!line.stopped.empty() || line.alone) continue;
        const bool agent = line.column.starts_with(automatic);
        const auto helper = [&](double seconds) {
            return line.moves ? time_text(seconds) : std::string("-");
        };
        cells.push_back(
            {line.operation(), line.place(), bytes_text(line.bytes), line.column,
             interval_text(line.dilation_arithmetic), interval_text(line.dilation_memory),
             line.slowed_arithmetic.value > 0
                 ? fmt::format("{}, {}", ratio_text(line.slowed_arithmetic), ratio_text(line.slowed_memory))
                 : "-",
             agent ? time_text(line.agent_cpu_seconds) : "-",
             agent && line.pure_seconds > 0
                 ? fmt::format("{:.1f} %", 100 * line.agent_cpu_seconds / line.pure_seconds)
                 : "-",
             agent ? fmt::format("{:.1f}", line.agent_wake_ups) : "-", helper(line.other_cpu_seconds),
             line.moves ? fmt::format("{:.1f}", line.other_wake_ups) : "-", time_text(line.delay_seconds),
             fmt::format("{:.1f}", line.lost), time_text(line.softirq_seconds)});
    }
    return cells.size() > 1 ? format_cells(cells, markdown) : "";
}

}  // namespace thalweg::bench
