#include "bench/exchange_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "bench/columns.h"
#include "bench/exchange_targets.h"
#include "bench/table.h"
#include "model/exchange.h"

namespace thalweg::bench {
namespace {

using Key = std::tuple<std::string, std::string, std::string, std::string, std::uint64_t>;
using Points = std::map<Key, std::vector<const Row*>>;

// The plan of the paper's comparison; the same with the paper's further meeting stands beside it.
constexpr std::string_view fence_plans[] = {"rma_fence", "rma_fence_barrier"};

// Packets are counted, rather than bytes, in exchanges of which so much crosses a link.
constexpr double fewest_packets_bytes = 64 << 10;

// Below it a ceiling is not told apart from noise.
constexpr double least_ceiling = 0.10;

std::vector<double> values(const Row& row, const char* name) {
    const auto found = row.exchange.find(name);
    return found == row.exchange.end() ? std::vector<double>() : found->get<std::vector<double>>();
}

Points points_of(const std::vector<Row>& rows) {
    Points points;
    for (const Row& row : rows)
        if (row.phase == exchange_phase && !row.exchange.is_null())
            points[{row.context.value("mpi_name", ""), row.context.value("shape", ""),
                    row.context.value("rate", ""), row.exchange.value("pattern", ""), row.bytes}]
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

// Making and freeing a plan, pair by pair.
std::vector<double> plan_seconds_once(const Row& row) {
    std::vector<double> sums = values(row, "init_seconds");
    const std::vector<double> frees = values(row, "free_seconds");
    for (std::size_t i = 0; i < std::min(sums.size(), frees.size()); ++i) sums[i] += frees[i];
    return sums;
}

// What a plan's N* is predicted from. Bytes take no time in an exchange of messages up to this.
constexpr std::uint64_t largest_small_bytes = 4096;

// The median call of the A/A column at the smallest size of each MPI, shape, rate and pattern.
using SmallCalls = std::map<std::tuple<std::string, std::string, std::string, std::string>, double>;
SmallCalls small_calls(const Points& points) {
    SmallCalls small;
    for (const auto& [key, group] : points) {  // by size, at last
        const auto& [mpi, shape, rate, pattern, bytes] = key;
        if (bytes > largest_small_bytes) continue;
        for (const Row* row : newest(group))
            if (row->column == native_again && !row->seconds.empty())
                small.try_emplace({mpi, shape, rate, pattern}, median(row->seconds));
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
    seen.bytes_per_second = setting(row, "THALWEG_LAB_RATE_BYTES_PER_S");
    seen.burst_bytes = setting(row, "THALWEG_LAB_BURST_BYTES");
    const auto forecast = forecast_plan(way_of(row), seen);
    if (!forecast) return;
    line.predicted_calls = forecast->calls;
    constexpr double near = 2;
    const double measured = line.against_native.calls;
    const bool same = measured == never || forecast->calls == never
                          ? measured == forecast->calls
                          : forecast->calls <= near * measured && measured <= near * forecast->calls;
    line.foresight = !line.against_native.decided() ? Foresight::undecided
                     : same                         ? Foresight::agrees
                                                    : Foresight::differs;
}

ExchangeLine line_of(const Row& row, const std::vector<const Row*>& rows, double small_seconds) {
    ExchangeLine line;
    line.mpi = row.context.value("mpi_name", "");
    line.shape = row.context.value("shape", "");
    line.rate = row.context.value("rate", "");
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
    if (row.column.starts_with(automatic_plan))  // of a repeated call nothing is told
        line.ran = !row.algorithm.empty() ? row.algorithm
                   : row.reason.empty()   ? "native"
                                          : "native: " + row.reason;
    const std::vector<double> inits = plan_seconds_once(row);
    line.init_seconds = median(inits);
    if (const Row* native = beside(rows, row, native_default); native != nullptr && !row.seconds.empty()) {
        line.of_native = ratio_of_medians(row.seconds, native->seconds);
        if (!inits.empty()) line.against_native = pays_after(inits, native->seconds, row.seconds);
    }
    const Row* best = nullptr;
    for (const std::string_view name : {native_default, native_plan})
        if (const Row* each = beside(rows, row, name);
            each != nullptr && (best == nullptr || median(each->seconds) < median(best->seconds)))
            best = each;
    if (best != nullptr && !row.seconds.empty()) {
        line.best_native = best->column;
        line.of_best = ratio_of_medians(row.seconds, best->seconds);
    }
    if (const Row* window = beside(rows, row, window_per_call); window != nullptr && !inits.empty())
        line.against_window = pays_after(inits, window->seconds, row.seconds);
    if (line.of_native.value > 0) predict(line, row, rows, small_seconds);
    return line;
}

std::string interval_text(const BreakEven& pays) {
    if (pays.calls == never && pays.low == never) return "never";
    return fmt::format("{} [{}, {}]", calls_text(pays.calls), calls_text(pays.low), calls_text(pays.high));
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace

std::set<std::pair<std::string, std::uint64_t>> undecided_points(const std::vector<ExchangeLine>& lines) {
    std::set<std::pair<std::string, std::uint64_t>> points;
    for (const ExchangeLine& line : lines)
        if ((line.column == automatic || line.column == automatic_plan) && line.of_best.value > 0 &&
            verdict(line.of_best) == Verdict::undecided)
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
        case Foresight::agrees:
            return "agrees";
        case Foresight::differs:
            return "DIFFERS";
    }
    return "";
}

std::array<std::size_t, 4> count_foresight(const std::vector<ExchangeLine>& lines) {
    std::array<std::size_t, 4> counts{};
    for (const ExchangeLine& line : lines) ++counts[static_cast<std::size_t>(line.foresight)];
    return counts;
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

std::string format_exchange(const std::vector<ExchangeLine>& lines, bool markdown) {
    if (lines.empty()) return "";
    std::vector<std::vector<std::string>> cells{{"pattern", "hosts x ranks", "bytes", "column", "time",
                                                 "time/limit", "of native", "plan", "N* (native)",
                                                 "predicted", "verdict", "N* (window per call)", "link bytes",
                                                 "packets", "samples", "ran"}};
    for (const auto& line : lines) {
        std::vector<std::string> row{line.pattern, line.shape, bytes_text(line.bytes), line.column};
        if (!line.stopped.empty()) {
            row.resize(cells[0].size() - 1, "-");
            row.push_back(line.stopped);
            cells.push_back(row);
            continue;
        }
        const bool crosses = line.link_bytes > 0 && line.tx_bytes > 0;
        for (std::string& text : std::vector<std::string>{
                 time_text(line.seconds), line.of_limit() > 0 ? fmt::format("{:.2f}", line.of_limit()) : "-",
                 line.of_native.value > 0 ? fmt::format("{:.2f}", line.of_native.value) : "-",
                 line.is_plan() ? time_text(line.init_seconds) : "-",
                 line.is_plan() ? interval_text(line.against_native) : "-",
                 line.foresight != Foresight::unknown ? calls_text(line.predicted_calls) : "-",
                 name_of(line.foresight), line.is_plan() ? interval_text(line.against_window) : "-",
                 crosses ? fmt::format("{:.2f} x", line.tx_bytes / line.link_bytes) : "-",
                 crosses && line.link_bytes <= fewest_packets_bytes && line.tx_packets >= 0
                     ? fmt::format("{:.1f}", line.tx_packets)
                     : "-",
                 fmt::format("{}", line.samples), line.ran})
            row.push_back(std::move(text));
        cells.push_back(std::move(row));
    }
    return format_cells(cells, markdown);
}

std::string format_windows(const std::vector<WindowLine>& lines, bool markdown) {
    if (lines.empty()) return "";
    std::vector<std::vector<std::string>> cells{
        {"MPI", "hosts x ranks", "pattern", "bytes", "plan", "window per call", "of it set-up",
         "Start + Wait", "reduction", "set-up's share", "a kept window saves", "of ceiling", "N*", "at once",
         "window kept", "MPI_Alltoallv"}};
    for (const auto& line : lines)
        cells.push_back({line.mpi, line.shape, line.pattern, bytes_text(line.bytes), line.plan,
                         time_text(line.once_seconds), time_text(line.set_up_seconds),
                         time_text(line.plan_seconds), percent(line.reduction), percent(line.set_up),
                         percent(line.kept_saves),
                         line.ceiling() > least_ceiling ? percent(line.of_ceiling()) : "-",
                         interval_text(line.pays), line.pays.calls <= immediate_payoff ? "yes" : "no",
                         time_text(line.kept_seconds), time_text(line.native_seconds)});
    return format_cells(cells, markdown);
}

namespace {

constexpr const char* exchange_text = R"(
## Alltoallv, planned

What a plan saves in each call, what it costs once, and after how many calls it has paid for itself
([measuring](guide/measuring.md)). All columns of a point take turns; the receive buffers are poisoned before every
call, the data are different in every call, and every byte was checked.

**N\*** = (making and freeing the plan) / (a call without it - a call with it), not rounded, of medians, with its 95 %
bootstrap interval; *never*: a call with the plan is not faster. It is given against MPI_Alltoallv and against the
baseline of arXiv 2604.05099, which makes a window in every call.

**Predicted**: N\* against MPI_Alltoallv before the plan is made, from what a program has seen by then: the native
call's time (here that of the A/A column, which takes no part in the measured N\*), its time at the smallest size, and
the link's rate (`forecast_plan` in src/model/exchange.h). It *agrees* where both are never, or within a factor of 2; a
point whose measured gain has zero in its 95 % interval is *undecided*.

**packets**: what left the busiest host in a call, acknowledgements too, by the kernel's interface counters, less what
leaves it around a call that does nothing; of exchanges of which at most 64 KiB cross a link. What the kernel hands to
the interface in one piece counts once.

)";

constexpr const char* targets_text = R"(
### Targets of planned exchanges

Of repeated calls (*thalweg*) and of plans (*thalweg init*) as they are chosen, over all patterns. *Not slower*: the
ratio of medians is at most 1.03, or its 95 % interval includes 1.00 and ends at or below 1.10. The **ceiling** is 1 -
limit / native, where a link limits. **Aggregation**: what goes from one host to another is one message (*node_leader*),
beside the same messages straight to their ranks on the same engine (*spread*), which is what the natives do.

)";

constexpr const char* window_text = R"(
### Fences: a plan against a window made in every call

The comparison of arXiv 2604.05099, whose abstract reports up to 44 % less time and pay-off at once from 32 KiB on
another machine. **Set-up** is what the baseline does in every call and a plan does once: exchanging displacements,
agreeing whether a window is needed, freeing the old one and making a new one. A library may put some of that off
until the new window is first used: *window kept* is the same call over a window that is made once, and what it saves
has that in it. The **ceiling** is the larger of the two shares: the most that planning the window can save; what is
saved of it is told where it exceeds 10 %. A plan can save more, because it also puts the own block by a copy, begins
with another rank on every rank, and meets less often: *rma_fence_barrier* meets before its first fence as the
paper's code does, *rma_fence* leaves that out, because MPI promises that nothing reaches a window before its rank's
fence. **At once**: N\* is at most 1.1.

)";

}  // namespace

std::string foresight_text(const std::vector<ExchangeLine>& lines) {
    const auto [unknown, undecided, agree, differ] = count_foresight(lines);
    const std::size_t decided = agree + differ;
    if (decided == 0) return fmt::format("Predicted N*: {} plans undecided.", undecided);
    return fmt::format("Predicted N* agrees with the measured one for {} of {} plans ({}); {} are undecided.",
                       agree, decided, percent(static_cast<double>(agree) / static_cast<double>(decided)),
                       undecided);
}

std::string exchange_section(const std::vector<Row>& rows,
                             std::string (*provenance)(const std::vector<Row>&)) {
    std::map<std::string, std::vector<Row>> by_mpi;
    std::uint64_t wrong = 0;
    for (const Row& row : rows) {
        if (row.phase != exchange_phase) continue;
        by_mpi[row.context.value("mpi_name", "")].push_back(row);
        wrong += row.wrong_words;
    }
    if (by_mpi.empty()) return "";
    const std::vector<ExchangeLine> lines = summarize_exchange(rows);
    const std::vector<WindowLine> windows = compare_windows(rows);
    std::string text = exchange_text;
    text += fmt::format("Wrong words received: {}. {}\n", wrong, foresight_text(lines));
    if (const std::string table = format_exchange_targets(judge_exchange(lines, windows), true);
        !table.empty())
        text += targets_text + table;
    if (const std::string table = format_windows(windows, true); !table.empty()) text += window_text + table;
    for (const auto& [mpi, own] : by_mpi)
        text += fmt::format("\n### {}, alltoallv\n\n{}{}", mpi, provenance(own),
                            format_exchange(lines_of(lines, mpi), true));
    return text;
}

}  // namespace thalweg::bench
