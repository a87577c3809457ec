#include "bench/halo_overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "bench/columns.h"
#include "bench/halo_pairs.h"
#include "bench/halo_table.h"
#include "bench/overlap_table.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

HaloHidden hidden_of(const Row& row) {
    HaloHidden line;
    line.mpi = row.context.value("mpi_name", "");
    line.shape = row.context.value("shape", "");
    line.rate = links_text(row);
    line.what = what_text(row.halo);
    line.column = row.column;
    line.stopped = row.stopped;
    line.samples = row.seconds.size();
    line.wrong_words = row.wrong_words;
    if (row.column.starts_with(automatic))
        line.ran = !row.algorithm.empty() ? row.algorithm : "native: " + row.reason;
    if (row.seconds.empty()) return line;
    const auto middle = [&](const char* name) {
        return median(row.overlap.at(name).get<std::vector<double>>());
    };
    line.seconds = median(row.seconds);
    const HaloLimits limits = halo_limits_of(row);
    line.limit_seconds = limits.largest();
    line.target_of_limit =
        mix_of(limits) == "balanced" ? HaloJudgement::balanced_target : HaloJudgement::bound_target;
    line.compute = row.overlap.at("compute");
    line.osu = osu_overlap(middle("pure_mean"), middle("computed"), middle("total"));
    line.imb = imb_overlap(middle("worst_pure"), middle("worst_computed"), middle("worst_total"));
    return line;
}

}  // namespace

std::vector<HaloHidden> summarize_halo_hidden(const std::vector<Row>& rows) {
    std::map<std::tuple<std::string, std::string, std::string, std::string, std::string>, const Row*> newest;
    for (const Row& row : rows)
        if (row.phase == halo_overlap_phase) {
            const Row*& kept = newest[{row.context.value("mpi_name", ""), row.context.value("shape", ""),
                                       links_text(row), what_text(row.halo), row.column}];
            if (kept == nullptr || row.launch >= kept->launch) kept = &row;
        }
    std::vector<HaloHidden> lines;
    for (const Row& row : rows)
        if (std::any_of(newest.begin(), newest.end(), [&](const auto& each) { return each.second == &row; }))
            lines.push_back(hidden_of(row));
    std::stable_sort(lines.begin(), lines.end(), [](const HaloHidden& a, const HaloHidden& b) {
        return std::tie(a.mpi, a.shape, a.rate, a.what) < std::tie(b.mpi, b.shape, b.rate, b.what);
    });
    return lines;
}

namespace {

// A slow call hides easily: what does counts only where its time alone reaches its own target.
std::string verdict_of(const HaloHidden& line, double of_limit) {
    if (!line.column.starts_with(automatic)) return "-";
    if (line.osu < HaloHidden::target) return "missed";
    return of_limit <= line.target_of_limit ? "reached" : "reached (does not count)";
}

}  // namespace

std::string format_halo_hidden(const std::vector<HaloHidden>& lines, bool markdown) {
    if (lines.empty()) return "";
    std::vector<std::vector<std::string>> cells{{"MPI", "hosts x ranks", "grid", "column", "compute", "time",
                                                 "time/limit", "hidden (OSU)", "hidden (IMB)", "90 %",
                                                 "samples", "ran"}};
    for (const HaloHidden& line : lines) {
        std::vector<std::string> row{line.mpi, place_text(line.shape, line.rate), line.what, line.column};
        if (line.samples == 0) {
            row.resize(cells[0].size() - 1, "-");
            row.push_back(line.stopped);
            cells.push_back(row);
            continue;
        }
        const double of_limit = line.limit_seconds > 0 ? line.seconds / line.limit_seconds : 0;
        for (std::string& text : std::vector<std::string>{
                 line.compute, time_text(line.seconds), of_limit > 0 ? fmt::format("{:.2f}", of_limit) : "-",
                 fmt::format("{:.1f} %", line.osu), fmt::format("{:.1f} %", line.imb),
                 verdict_of(line, of_limit), fmt::format("{}", line.samples), line.ran})
            row.push_back(std::move(text));
        cells.push_back(row);
    }
    return format_cells(cells, markdown);
}

}  // namespace thalweg::bench
