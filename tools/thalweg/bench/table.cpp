#include "bench/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>

#include "bench/columns.h"
#include "bench/exchange.h"
#include "bench/halo.h"
#include "bench/halo_table.h"
#include "bench/overlap_table.h"
#include "bench/waiters.h"

namespace thalweg::bench {
namespace {

using Key = std::tuple<std::string, std::string, std::string, std::string, std::uint64_t>;

bool runs_choice(const Row& row, const std::string& choice) {
    return row.column.starts_with(ours_prefix) &&
           canonical(std::string_view(row.column).substr(ours_prefix.size())) == choice;
}

// Whether the kernel counted the same traffic: on the busiest link, and on all links together.
bool same_traffic(const Row& one, const Row& other) {
    const auto same = [](double a, double b) {
        return a > 0 && b > 0 && std::abs(a / b - 1) <= same_traffic_within;
    };
    return same(one.tx_bytes, other.tx_bytes) && same(one.all_tx_bytes, other.all_tx_bytes);
}

// A native that does what the default does, and the schedule of ours that does what both do.
struct Alike {
    const Row* native = nullptr;
    const Row* ours = nullptr;
    std::string choice;
};

// An MPI chooses by rules of its own, and may run one algorithm under several settings, or under a setting
// another one than its name says (by hosts, say). What ran is seen on the links: only a native and a schedule
// of ours whose traffic is the default's can be what it ran. Pieces of other sizes are the same bytes, so
// that the native must take a similar time too, and the nearest of several counts. Where no control asks for
// what the default runs, the schedule alone must do.
Alike alike_default(const std::vector<const Row*>& point) {
    const Row* the_default = nullptr;
    for (const Row* row : point)  // the screen's, which stands beside all others
        if (row->column == native_default && !row->seconds.empty() &&
            (the_default == nullptr || the_default->phase != "screen" || row->phase == "screen"))
            the_default = row;
    Alike alike;
    if (the_default == nullptr) return alike;
    double nearest = std::log(similar_time_ratio);
    for (const Row* native : point) {
        if (!is_native(native->column) || native->seconds.empty() || !same_traffic(*native, *the_default))
            continue;
        const std::string choice =
            same_as_ours(native->context.value("mpi_name", ""), native->collective, native->column);
        if (choice.empty()) continue;
        const double distance = std::abs(std::log(median(native->seconds) / median(the_default->seconds)));
        for (const Row* ours : point)
            if (distance <= nearest && runs_choice(*ours, choice) && !ours->seconds.empty() &&
                same_traffic(*ours, *the_default))
                nearest = distance, alike = {native, ours, choice};
    }
    if (alike.ours != nullptr) return alike;
    for (const std::string& choice :
         twins_of_default(the_default->context.value("mpi_name", ""), the_default->collective))
        for (const Row* ours : point)
            if (runs_choice(*ours, choice) && !ours->seconds.empty() && same_traffic(*ours, *the_default))
                alike = {the_default, ours, choice};
    return alike;
}

// The newest launch of each environment counts: a point that stayed undecided is measured again, with more
// pairs.
std::vector<const Row*> newest_of(const std::vector<const Row*>& rows, std::string_view phase) {
    const auto environment = [](const Row& row) { return row.context.value("environment", ""); };
    std::map<std::string, std::uint64_t> newest;
    for (const Row* row : rows)
        if (row->phase == phase) newest[environment(*row)] = std::max(newest[environment(*row)], row->launch);
    std::vector<const Row*> kept;
    for (const Row* row : rows)
        if (row->phase == phase && row->launch == newest[environment(*row)]) kept.push_back(row);
    return kept;
}

// Of a column that has launches of its own: quicker than the default by more than a tenth where both were
// decided, and at the first look, which were two launches each.
bool quicker_twice(const std::vector<const Row*>& rows, const Summary& line) {
    constexpr double clearly = 0.9;
    double theirs = 0, the_default = 0;
    for (const Row* row : rows) {
        if (row->phase != "screen" || row->seconds.empty()) continue;
        if (row->column == line.quicker_elsewhere) theirs = median(row->seconds);
        if (row->column == native_default) the_default = median(row->seconds);
    }
    return line.quicker_elsewhere.starts_with("native ") && theirs > 0 && theirs < clearly * the_default &&
           line.quicker_elsewhere_seconds < clearly * line.native_seconds;
}

Summary summarize_point(const std::vector<const Row*>& rows) {
    Summary line;
    const bool decided =
        std::any_of(rows.begin(), rows.end(), [](const Row* r) { return r->phase == "decide"; });
    line.screened_only = !decided;
    const std::vector<const Row*> counted = newest_of(rows, decided ? "decide" : "screen");
    for (const Row* row : rows) line.wrong_words += row->wrong_words;
    // Interleaved pairs only: each native column against the automatic column of its own launch.
    std::map<std::uint64_t, const Row*> automatic_of, default_of;
    for (const Row* row : counted) {
        if (row->column == automatic) automatic_of[row->launch] = row;
        if (row->column == native_default) default_of[row->launch] = row;
    }
    for (const Row* row : counted) {
        const double seconds = median(row->seconds);
        const auto ours = automatic_of.find(row->launch);
        if (!is_native(row->column) || ours == automatic_of.end()) continue;
        const Ratio ratio = ratio_of_medians(ours->second->seconds, row->seconds);
        if (row->column == native_default) {
            line.native_seconds = seconds;
            line.native_p99 = percentile(row->seconds, 0.99);
            line.native_back_to_back = median(row->back_to_back);
            line.against_default = ratio;
        }
        if (row->column == native_again && default_of.count(row->launch) != 0)
            line.noise = ratio_of_medians(row->seconds, default_of[row->launch]->seconds).value;
        // Where ours hands the call on it is the same call there, as that environment has it.
        if (ours->second->algorithm.empty() && !row->context.value("environment", "").empty() &&
            (line.quicker_elsewhere.empty() || seconds < line.quicker_elsewhere_seconds))
            line.quicker_elsewhere = row->column, line.quicker_elsewhere_seconds = seconds;
        if (row->column != native_again && is_worse(ratio, line.against_best)) {
            line.against_best = ratio;
            line.best_native = row->column;
            line.best_native_seconds = seconds;
        }
    }
    if (!quicker_twice(rows, line)) line.quicker_elsewhere.clear();
    if (!automatic_of.empty()) {
        // Beside the native default stands what took turns with it; launches may differ by more than columns
        // do.
        const auto beside =
            default_of.empty() ? automatic_of.end() : automatic_of.find(default_of.rbegin()->first);
        const Row& ours = *(beside == automatic_of.end() ? automatic_of.rbegin()->second : beside->second);
        line.collective = ours.collective;
        line.mpi = ours.context.value("mpi_name", "");
        line.shape = ours.context.value("shape", "");
        line.rate = links_text(ours);
        line.bytes = ours.bytes;
        line.ours_seconds = median(ours.seconds);
        line.ours_p99 = percentile(ours.seconds, 0.99);
        line.ours_back_to_back = median(ours.back_to_back);
        line.algorithm = ours.algorithm.empty() ? "native" : ours.algorithm;
        line.transport = ours.context.value("transport", "");
        line.limit_seconds = limit_seconds(ours);
        line.tx_bytes = ours.tx_bytes;
        line.decision = verdict(line.against_best);
        line.samples = ours.seconds.size() + ours.back_to_back.size();
        line.late_samples = ours.late_samples;
        int hosts = 1, ppn = 1;
        if (std::sscanf(line.shape.c_str(), "%dx%d", &hosts, &ppn) == 2) line.proof = prove(ours, hosts, ppn);
    }
    // Where the call was left to the MPI there is no gain to split.
    if (const Alike alike = alike_default(rows); alike.ours != nullptr && line.algorithm != "native") {
        line.twin = alike.choice;
        line.twin_seconds = median(alike.ours->seconds);
    }
    return line;
}

}  // namespace

std::vector<std::string> resembling_default(const std::vector<const Row*>& point) {
    const Alike alike = alike_default(point);
    if (alike.ours == nullptr) return {};
    return {alike.native->column, alike.ours->column};
}

std::string bytes_text(std::uint64_t bytes) {
    if (bytes >= (1u << 20) && bytes % (1u << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
    if (bytes >= 1024 && bytes % 1024 == 0) return fmt::format("{} KiB", bytes >> 10);
    return fmt::format("{} B", bytes);
}

std::string time_text(double seconds) {
    if (seconds <= 0) return "-";
    if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
    return seconds < 1 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.3f} s", seconds);
}

std::string links_text(const Row& row) {
    const std::string rate = row.context.value("rate", "");
    const int rails = row.context.value("rails", 1);
    return rails > 1 && !rate.empty() ? fmt::format("{} x {}", rails, rate) : rate;
}

std::string place_text(const std::string& shape, const std::string& links) {
    return links.find(" x ") == std::string::npos ? shape : shape + ", " + links;
}

double setting(const Row& row, const char* name) {
    const auto found = row.context.find("settings");
    if (found == row.context.end() || !found->contains(name)) return 0;
    const auto& value = (*found)[name];
    return value.is_number() ? value.get<double>() : std::stod(value.get<std::string>());
}

double necessary_link_bytes(const Row& row) {
    const double bytes = static_cast<double>(row.bytes), hosts = row.context.value("hosts", 1);
    if (hosts < 2) return 0;
    const double ranks = row.context.value("ranks", hosts);
    if (row.phase == halo_phase) return row.halo.value("link_bytes", 0.0);
    if (row.phase == exchange_phase) return row.exchange.value("link_bytes", 0.0);
    if (row.collective == "iallgather" || row.collective == "allgather")
        return bytes * (ranks - ranks / hosts);
    if (row.collective == "iallreduce" || row.collective == "allreduce")
        return 2 * bytes * (hosts - 1) / hosts;
    return bytes;  // a broadcast
}

double limit_seconds(const Row& row) {
    const double rate = setting(row, "THALWEG_LAB_RATE_BYTES_PER_S");
    // Whole programs have limits of their own.
    if (rate <= 0 || row.context.value("hosts", 1) < 2 || !row.app.is_null()) return 0;
    const double hops = row.collective == "iallreduce" || row.collective == "allreduce" ? 2 : 1;
    const double rails = row.context.value("rails", 1);  // each of that rate, with a bucket of its own
    return std::max(0.0, necessary_link_bytes(row) / rails - setting(row, "THALWEG_LAB_BURST_BYTES")) / rate +
           hops * setting(row, "THALWEG_LAB_LATENCY_S");
}

std::vector<Summary> summarize(const std::vector<Row>& rows) {
    std::map<Key, std::vector<const Row*>> points;
    for (const auto& row : rows)
        if (row.phase != overlap_phase && row.phase != waiters_phase && row.phase != exchange_phase &&
            row.phase != halo_phase)
            points[{row.collective, row.context.value("mpi_name", ""), row.context.value("shape", ""),
                    links_text(row), row.bytes}]
                .push_back(&row);
    std::vector<Summary> lines;
    for (const auto& [key, group] : points) {
        Summary line = summarize_point(group);
        if (line.ours_seconds > 0) lines.push_back(std::move(line));
    }
    return lines;
}

namespace {

// "1.25 ms (2.01)": ours, and how many times as long native takes.
std::string beside_native(double ours, double native) {
    return ours > 0 && native > 0 ? fmt::format("{} ({:.2f})", time_text(ours), native / ours) : "-";
}

}  // namespace

std::string format_table(const std::vector<Summary>& lines, bool markdown) {
    std::vector<std::vector<std::string>> cells{{"MPI", "hosts x ranks", "bytes", "native", "best native",
                                                 "Thalweg", "speed-up", "algorithm x waiting", "limit",
                                                 "time/limit", "back to back", "p99", "A/A",
                                                 "against best native", "link bytes", "late", "ran"}};
    for (const auto& line : lines) {
        const double gain = line.against_default.value > 0 ? 1 / line.against_default.value : 0;
        std::string factors = line.algorithm == "native" ? "-" : "no twin";
        if (line.twin_seconds > 0)
            factors = fmt::format("{:.2f} x {:.2f}", line.twin_seconds / line.ours_seconds,
                                  line.native_seconds / line.twin_seconds);
        cells.push_back(
            {line.mpi, place_text(line.shape, line.rate), bytes_text(line.bytes),
             time_text(line.native_seconds),
             fmt::format("{} ({})", time_text(line.best_native_seconds),
                         line.best_native == native_default ? "default" : line.best_native.substr(7)),
             time_text(line.ours_seconds), fmt::format("{:.2f}", gain), factors,
             time_text(line.limit_seconds),
             line.limit_seconds > 0 ? fmt::format("{:.2f}", line.ours_seconds / line.limit_seconds) : "-",
             beside_native(line.ours_back_to_back, line.native_back_to_back),
             beside_native(line.ours_p99, line.native_p99), fmt::format("{:.2f}", line.noise),
             fmt::format("{:.2f} [{:.2f}, {:.2f}] {}", line.against_best.value,
                         line.against_best.interval.low, line.against_best.interval.high,
                         line.screened_only ? "screened" : std::string(name_of(line.decision))),
             line.proof == Proof::not_counted ? "-"
             : line.proof == Proof::agrees    ? "agree"
                                              : "DIFFER",
             line.limit_seconds > 0 ? fmt::format("{} of {}", line.late_samples, line.samples) : "-",
             line.algorithm});
    }
    return format_cells(cells, markdown);
}

std::string quicker_elsewhere_text(const std::vector<Summary>& lines) {
    std::string points;
    for (const Summary& line : lines)
        if (!line.quicker_elsewhere.empty())
            points += fmt::format("{}{}, {}: {} ({}) beside {}", points.empty() ? "" : "; ", line.shape,
                                  bytes_text(line.bytes), time_text(line.quicker_elsewhere_seconds),
                                  line.quicker_elsewhere.substr(7), time_text(line.native_seconds));
    if (points.empty()) return "";
    return "Told by its environment to use another algorithm, the MPI was quicker, in launches of their own, "
           "than its "
           "default in another, where Thalweg hands the call on and so is as quick as either: " +
           points + ".\n";
}

std::string format_cells(const std::vector<std::vector<std::string>>& cells, bool markdown) {
    std::vector<std::size_t> widths(cells[0].size());
    for (const auto& row : cells)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string text;
    for (std::size_t r = 0; r < cells.size(); ++r) {
        for (std::size_t i = 0; i < widths.size(); ++i)
            text += fmt::format("{}{:<{}}", markdown ? (i == 0 ? "| " : " | ") : (i == 0 ? "" : "  "),
                                cells[r][i], widths[i]);
        text += markdown ? " |\n" : "\n";
        if (r == 0) {
            for (std::size_t i = 0; i < widths.size(); ++i)
                text +=
                    (markdown ? (i == 0 ? "| " : " | ") : (i == 0 ? "" : "  ")) + std::string(widths[i], '-');
            text += markdown ? " |\n" : "\n";
        }
    }
    return text;
}

std::string wrong_words_text(const std::vector<Row>& rows) {
    std::string text;
    for (const Row& row : rows)
        if (row.wrong_words != 0 && row.app.is_null())
            text += fmt::format("{} WRONG WORDS were received by {} in {} of {} on {} under {}\n",
                                row.wrong_words, row.column, row.collective, bytes_text(row.bytes),
                                place_text(row.context.value("shape", ""), links_text(row)),
                                row.context.value("mpi_name", ""));
    return text;
}

std::string below_limit_text(const std::vector<Row>& rows) {
    constexpr double shown_as_one = 0.995;  // of the limit
    std::size_t limited = 0, below = 0;
    double least = shown_as_one;
    const Row* lowest = nullptr;
    for (const Row& row : rows) {
        if (row.seconds.empty() || row.phase == halo_pairs_phase || row.phase == halo_changing_phase)
            continue;
        const bool of_grid = row.phase == halo_phase || row.phase == halo_overlap_phase;
        const double limit = of_grid ? halo_limits_of(row).largest() : limit_seconds(row);
        if (limit <= OverlapLine::least_limit_seconds) continue;
        ++limited;
        const double of_limit = median(row.seconds) / limit;
        below += of_limit < shown_as_one;
        if (of_limit < least) least = of_limit, lowest = &row;
    }
    if (lowest == nullptr) return "";
    return fmt::format(
        "A DEFECT OF THE LAB: {} of {} rows are below their limit, the lowest {:.2f} of it: {} in "
        "{} of {} on {} under {}\n",
        below, limited, least, lowest->column, lowest->collective, bytes_text(lowest->bytes),
        place_text(lowest->context.value("shape", ""), links_text(*lowest)),
        lowest->context.value("mpi_name", ""));
}

std::string format_columns(const std::vector<Row>& rows) {
    std::string text = fmt::format(
        "{:<12} {:<6} {:>10}  {:<8} {:<58} {:>10} {:>10} {:>10} {:>8} {:>7} {:>12}  {}\n", "MPI", "shape",
        "bytes", "phase", "column", "min", "median", "p99", "samples", "t/limit", "tx bytes", "race");
    for (const auto& row : rows) {
        const double limit = limit_seconds(row);
        text += fmt::format(
            "{:<12} {:<6} {:>10}  {:<8} {:<58} {:>10} {:>10} {:>10} {:>8} {:>7} {:>12}  {}\n",
            row.context.value("mpi_name", ""), row.context.value("shape", ""), bytes_text(row.bytes),
            row.phase, row.column, time_text(percentile(row.seconds, 0)), time_text(median(row.seconds)),
            time_text(percentile(row.seconds, 0.99)), row.seconds.size(),
            limit > 0 && !row.seconds.empty() ? fmt::format("{:.2f}", median(row.seconds) / limit) : "-",
            row.tx_bytes >= 0 ? fmt::format("{:.0f}", row.tx_bytes) : "-", row.stopped);
    }
    return text;
}

}  // namespace thalweg::bench
