#include "bench/halo_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "bench/columns.h"
#include "bench/halo_overlap.h"
#include "bench/halo_pairs.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

// Below it a ceiling is not told apart from noise.
constexpr double least_ceiling = 0.05;

// Grids of the same cells differ in how their ranks lie.
std::string ranks_text(const HaloGrid& grid) {
    return extents_text(grid.ranks) + (grid.periodic ? " round" : "") + (grid.upwind ? " upwind" : "");
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::uint64_t whole(double bytes) { return static_cast<std::uint64_t>(bytes); }

// The order in which columns stand: as they are measured; those with settings behind the same without.
std::tuple<std::size_t, std::string> place_of(const std::string& column) {
    static const std::vector<ColumnPlan> known = halo_columns({});
    const auto settings = column.find(setting_begins);
    const std::string name = column.substr(0, settings);
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const ColumnPlan& plan) { return plan.name == name; });
    if (found == known.end()) return {known.size(), column};  // an algorithm that was asked for
    return {static_cast<std::size_t>(found - known.begin()),
            settings == std::string::npos ? "" : column.substr(settings)};
}

// What took turns with this row under another name, the settings of the launch left out.
const Row* beside(const std::vector<const Row*>& rows, const Row& row, std::string_view column) {
    for (const Row* each : rows)
        if (each->launch == row.launch &&
            each->column.substr(0, each->column.find(setting_begins)) == column && !each->seconds.empty())
            return each;
    return nullptr;
}

HaloLine line_of(const Row& row, const std::vector<const Row*>& rows) {
    HaloLine line;
    line.mpi = row.context.value("mpi_name", "");
    line.shape = row.context.value("shape", "");
    line.rate = links_text(row);
    line.column = row.column;
    line.grid = halo_grid(row.halo);
    line.samples = row.seconds.size();
    line.late_samples = row.late_samples;
    line.wrong_words = row.wrong_words;
    line.stopped = row.stopped;
    line.seconds = median(row.seconds);
    line.make_seconds = median(row.halo.at("make_seconds").get<std::vector<double>>());
    line.limits = halo_limits_of(row);
    line.link_bytes = row.halo.at("link_bytes");
    line.inside_bytes = row.halo.at("inside_bytes");
    line.packed_bytes = row.halo.at("packed_bytes");
    line.largest_bytes = static_cast<double>(row.bytes);
    line.copied_bytes_per_s = row.halo.at("copied_bytes_per_s");
    line.tx_bytes = row.tx_bytes;
    if (row.column.starts_with(automatic))
        line.ran = !row.algorithm.empty() ? row.algorithm
                   : row.reason.empty()   ? "native"
                                          : "native: " + row.reason;
    if (row.seconds.empty()) return line;
    if (const Row* native = beside(rows, row, native_default); native != nullptr && native != &row)
        line.of_native = ratio_of_medians(row.seconds, native->seconds);
    if (const Row* native = beside(rows, row, native_halo_nonblocking);
        native != nullptr && row.column.starts_with(halo_nonblocking))
        line.of_nonblocking = ratio_of_medians(row.seconds, native->seconds);
    if (const Row* plan = beside(rows, row, native_plan);
        plan != nullptr && row.column.starts_with(automatic_plan))
        line.of_plan = ratio_of_medians(row.seconds, plan->seconds);
    if (const Row* again = beside(rows, row, native_again), *native = beside(rows, row, native_default);
        again != nullptr && native != nullptr)
        line.noise = median(again->seconds) / median(native->seconds);
    // Ours beside ours, everything else beside plain sends and receives.
    const bool ours = row.column.starts_with(automatic);
    if (const Row* parted = beside(rows, row, ours ? halo_parted : sends_parted))
        line.parted_seconds = median(parted->seconds);
    return line;
}

auto point_of(const HaloLine& line) {
    return std::make_tuple(line.mpi, line.shape, line.rate, line.grid.ranks, line.grid.corners,
                           line.grid.periodic, line.grid.upwind, line.grid.cells);
}

}  // namespace

HaloLimits halo_limits_of(const Row& row) {
    HaloRates rates;
    if (row.context.value("hosts", 1) > 1) {
        const double rails = row.context.value("rails", 1);  // each of that rate, with a bucket of its own
        rates.wire_bytes_per_s = rails * setting(row, "THALWEG_LAB_RATE_BYTES_PER_S");
        rates.wire_latency_s = setting(row, "THALWEG_LAB_LATENCY_S");
        rates.free_bytes = rails * setting(row, "THALWEG_LAB_BURST_BYTES");
        rates.wire_cpu_s_per_byte = setting(row, "THALWEG_LAB_CPU_S_PER_BYTE");
    }
    rates.copied_bytes_per_s = row.halo.at("copied_bytes_per_s");
    rates.copiers = row.halo.at("copiers");
    rates.cores = row.halo.at("cores");
    const std::uint64_t inside = row.halo.at("inside_bytes"), packed = row.halo.at("packed_bytes");
    return halo_limits(row.halo.at("link_bytes"), row.halo.at("wire_bytes"), inside + packed, rates);
}

std::vector<HaloLine> summarize_halo(const std::vector<Row>& rows) {
    using Key = std::tuple<std::string, std::string, std::string, std::string>;
    std::map<Key, std::vector<const Row*>> points;
    for (const Row& row : rows)
        if (row.phase == halo_phase && !row.halo.is_null())
            points[{row.context.value("mpi_name", ""), row.context.value("shape", ""), links_text(row),
                    halo_grid(row.halo).text()}]
                .push_back(&row);
    std::vector<HaloLine> lines;
    for (const auto& [key, group] : points) {
        std::map<std::string, const Row*> newest;
        for (const Row* row : group) {
            const Row*& kept = newest[row->column];
            if (kept == nullptr || row->launch >= kept->launch) kept = row;
        }
        for (const auto& [column, row] : newest) lines.push_back(line_of(*row, group));
    }
    std::sort(lines.begin(), lines.end(), [](const HaloLine& a, const HaloLine& b) {
        const auto left = point_of(a), right = point_of(b);
        return left != right ? left < right : place_of(a.column) < place_of(b.column);
    });
    return lines;
}

bool any_undecided(const std::vector<HaloLine>& lines) {
    return std::any_of(lines.begin(), lines.end(), [](const HaloLine& line) {
        return line.column.starts_with(automatic) && !line.column.starts_with(halo_parted) &&
               line.column.find(setting_begins) == std::string::npos &&
               any_undecided({line.of_native, line.of_nonblocking, line.of_plan});
    });
}

std::vector<HaloJudgement> judge_halo(const std::vector<HaloLine>& lines) {
    std::vector<HaloJudgement> all;
    std::vector<std::vector<double>> gains, most;
    for (const HaloLine& line : lines) {
        if (!line.column.starts_with(automatic) || line.column.starts_with(halo_parted) || line.seconds <= 0)
            continue;
        const auto same = [&](const HaloJudgement& each) {
            return each.mpi == line.mpi && each.shape == line.shape && each.rate == line.rate &&
                   each.column == line.column;
        };
        auto found = std::find_if(all.begin(), all.end(), same);
        if (found == all.end()) {
            HaloJudgement fresh;
            fresh.mpi = line.mpi, fresh.shape = line.shape, fresh.rate = line.rate,
            fresh.column = line.column;
            found = all.insert(all.end(), std::move(fresh));
            gains.emplace_back(), most.emplace_back();
        }
        HaloJudgement& judged = *found;
        const bool balanced = mix_of(line.limits) == "balanced";
        ++judged.points;
        if (line.largest_bytes >= HaloJudgement::large_bytes) {
            const double target = balanced ? HaloJudgement::balanced_target : HaloJudgement::bound_target;
            ++judged.large;
            judged.within += line.of_limit() <= target;
        }
        if (balanced && line.parted_seconds > 0) {
            ++judged.balanced;
            judged.hidden += line.saved() >= HaloJudgement::saved_target ||
                             line.saved() >= HaloJudgement::ceiling_target * line.ceiling();
        }
        if (line.of_native.value <= 0) continue;
        const Verdict decision = verdict(line.of_native);
        judged.not_slower += decision == Verdict::not_slower;
        judged.undecided += decision == Verdict::undecided;
        judged.slower += decision == Verdict::slower;
        const auto at = static_cast<std::size_t>(found - all.begin());
        gains[at].push_back(1 / line.of_native.value);
        most[at].push_back(line.seconds / line.of_native.value / (1.05 * line.limits.largest()));
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].gain = geometric_mean(gains[i]);
        all[i].most_gain = geometric_mean(most[i]);
    }
    return all;
}

std::string format_halo_judgements(const std::vector<HaloJudgement>& judgements, bool markdown) {
    if (judgements.empty()) return "";
    std::vector<std::vector<std::string>> cells{{"MPI", "hosts x ranks", "column", "points", "near the limit",
                                                 "balanced: hidden", "not slower", "undecided", "slower",
                                                 "native / Thalweg", "at most"}};
    const auto part = [](int some, int all) { return all > 0 ? fmt::format("{} of {}", some, all) : "-"; };
    for (const HaloJudgement& each : judgements)
        cells.push_back({each.mpi, place_text(each.shape, each.rate), each.column,
                         fmt::format("{}", each.points), part(each.within, each.large),
                         part(each.hidden, each.balanced), fmt::format("{}", each.not_slower),
                         fmt::format("{}", each.undecided), fmt::format("{}", each.slower),
                         fmt::format("{:.2f}", each.gain), fmt::format("{:.2f}", each.most_gain)});
    return format_cells(cells, markdown);
}

std::string format_halo_points(const std::vector<HaloLine>& lines, bool markdown) {
    if (lines.empty()) return "";
    std::vector<std::vector<std::string>> cells{{"MPI", "hosts x ranks", "grid", "cells", "points", "largest",
                                                 "link bytes", "inside", "packed", "copied per s", "wire",
                                                 "copies", "CPU", "bound by", "A/A"}};
    const HaloLine* last = nullptr;
    for (const auto& line : lines) {
        if (last != nullptr && point_of(*last) == point_of(line)) continue;
        last = &line;
        cells.push_back({line.mpi, place_text(line.shape, line.rate), ranks_text(line.grid),
                         extents_text(line.grid.cells), fmt::format("{}", line.grid.points()),
                         bytes_text(whole(line.largest_bytes)), bytes_text(whole(line.link_bytes)),
                         bytes_text(whole(line.inside_bytes)), bytes_text(whole(line.packed_bytes)),
                         fmt::format("{:.1f} GB", line.copied_bytes_per_s / 1e9),
                         time_text(line.limits.wire_s), time_text(line.limits.copies_s),
                         time_text(line.limits.cpu_s), std::string(mix_of(line.limits)),
                         line.noise > 0 ? fmt::format("{:.2f}", line.noise) : "-"});
    }
    return format_cells(cells, markdown);
}

std::string format_halo(const std::vector<HaloLine>& lines, bool markdown) {
    if (lines.empty()) return "";
    std::vector<std::vector<std::string>> cells{{"hosts x ranks", "grid", "cells", "points", "column", "time",
                                                 "time/limit", "of native", "without overlap", "saved",
                                                 "ceiling", "of ceiling", "made in", "link bytes", "samples",
                                                 "late", "ran"}};
    for (const auto& line : lines) {
        std::vector<std::string> row{place_text(line.shape, line.rate), ranks_text(line.grid),
                                     extents_text(line.grid.cells), fmt::format("{}", line.grid.points()),
                                     line.column};
        if (!line.stopped.empty()) {
            row.resize(cells[0].size() - 1, "-");
            row.push_back(line.stopped);
            cells.push_back(row);
            continue;
        }
        const bool crosses = line.link_bytes > 0 && line.tx_bytes > 0;
        const bool ours = line.column.starts_with(automatic);
        const Ratio& ratio = line.of_native;
        std::string native = "-";
        if (ratio.value > 0) native = fmt::format("{:.2f}", ratio.value);
        if (ratio.value > 0 && ours)
            native += fmt::format(" [{:.2f}, {:.2f}] {}", ratio.interval.low, ratio.interval.high,
                                  name_of(verdict(ratio)));
        const bool parted = line.parted_seconds > 0;
        for (std::string& text : std::vector<std::string>{
                 time_text(line.seconds), line.of_limit() > 0 ? fmt::format("{:.2f}", line.of_limit()) : "-",
                 native, parted ? time_text(line.parted_seconds) : "-", parted ? percent(line.saved()) : "-",
                 parted ? percent(line.ceiling()) : "-",
                 line.ceiling() > least_ceiling ? percent(line.saved() / line.ceiling()) : "-",
                 time_text(line.make_seconds),
                 crosses ? fmt::format("{:.2f} x", line.tx_bytes / line.link_bytes) : "-",
                 fmt::format("{}", line.samples), fmt::format("{}", line.late_samples), line.ran})
            row.push_back(std::move(text));
        cells.push_back(std::move(row));
    }
    return format_cells(cells, markdown);
}

namespace {

constexpr const char* targets_text = R"(
### Targets of halo exchanges

**Near the limit**: of the points with a message of 64 KiB or more, those within 1.10 times the limit, or 1.20 times
where wire and copies are balanced. **Balanced: hidden**: at balanced points, 48 % of the time without overlap is saved,
or 90 % of the ceiling. *Not slower*, *undecided*, *slower*: than MPI_Neighbor_alltoallw. **native / Thalweg**: the
geometric mean over the points; **at most**: were every point at 1.05 times its limit.

)";

constexpr const char* halo_text = R"(
## Halo exchange

Each rank sends the outermost cells of its part of a grid to its neighbours, some on its own host, some on others
([measuring](guide/measuring.md)). Cells are 8 bytes; faces are subarrays, and packing them is part of the time. All
columns of a launch take turns on the same cells; along the faces the cells are new in every call, the halo is poisoned
before it, and every cell of both was checked after it, before the timed calls every cell there is.

**wire** is the time that the busiest link needs for its bytes at least; **copies** what every byte inside hosts and
every strided byte between them, once at either end, takes to be copied by all ranks at once (**copied per s**, measured
in the same run); **CPU** those copies and the kernel's work for the wire, over all cores of the machine. The **limit**
is the largest of the three; *balanced*: wire and copies differ by less than 1.5 times. **Without overlap** are the same
messages in two parts, those inside the host first, and when they are done the others (*parted*); **saved** is what a
column saves of that, the **ceiling** 1 - limit / that. **Made in**: communicator, datatypes and plan, once. **Late**:
samples in which a rank began half a millisecond or more behind the instant from which all are timed, because others
used its core; that is part of the time of every column. Columns in brackets ran in a launch of their own with these
settings, beside its native column.

)";

constexpr const char* pairs_text = R"(
### The choice of protocols beside fixed pairs

**chosen** is what runs by itself with `THALWEG_TRANSPORT=shm`; the others ask for one protocol inside hosts
and, but for *auto*, for one between them ([options](options.md)). The choice may be 5 % behind the best pair of
one grid, and must be ahead of every pair in the run whose phases differ ([measuring](guide/measuring.md)).
Samples of all rounds count together.

)";

constexpr const char* hidden_text = R"(
### Halo exchanges behind computation

Computation between the two parts of a call, for as long as the call takes alone: what of it is hidden, by
OSU's count of means over the ranks and by IMB's of the slowest rank. It counts only where the call alone takes no more
than 1.10 times its limit (1.20 where wire and copies are balanced).

)";

}  // namespace

bool is_halo(const Row& row) {
    return row.phase == halo_phase || row.phase == halo_pairs_phase || row.phase == halo_changing_phase ||
           row.phase == halo_overlap_phase;
}

std::string halo_section(const std::vector<Row>& rows, std::string (*provenance)(const std::vector<Row>&)) {
    std::map<std::string, std::vector<Row>> by_mpi;
    std::uint64_t wrong_native = 0, wrong = 0;
    for (const Row& row : rows) {
        if (row.phase != halo_phase) continue;
        by_mpi[row.context.value("mpi_name", "")].push_back(row);
        (row.column.starts_with(native_default) ? wrong_native : wrong) += row.wrong_words;
    }
    std::vector<Row> paired, hiding;
    for (const Row& row : rows) {
        if (row.phase == halo_pairs_phase || row.phase == halo_changing_phase) paired.push_back(row);
        if (row.phase == halo_overlap_phase) hiding.push_back(row);
    }
    std::string further;
    if (!paired.empty())
        further += pairs_text + provenance(paired) + format_pairs(compare_pairs(paired), true);
    if (!hiding.empty())
        further += hidden_text + provenance(hiding) + format_halo_hidden(summarize_halo_hidden(hiding), true);
    if (by_mpi.empty()) return further;
    const std::vector<HaloLine> lines = summarize_halo(rows);
    std::string text = halo_text;
    text += fmt::format("Wrong words received: {}; by native neighbourhood collectives: {}.\n", wrong,
                        wrong_native);
    text += targets_text + format_halo_judgements(judge_halo(lines), true);
    for (const auto& [mpi, own] : by_mpi) {
        const auto own_lines = lines_of(lines, mpi);
        text += fmt::format("\n### {}, halo exchange\n\n{}{}\n{}", mpi, provenance(own),
                            format_halo_points(own_lines, true), format_halo(own_lines, true));
    }
    return text + further;
}

}  // namespace thalweg::bench
