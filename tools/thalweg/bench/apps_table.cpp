#include "bench/apps_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "bench/apps.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

using apps::Sample;
using apps::Series;

constexpr const char* heading = R"(
## Applications

A radix sort and a conjugate gradient in plain MPI ([applications](guide/applications.md)), each in versions that take
turns in one launch; launches native, with `thalweg run` and native again (**A/A**) take turns. Totals are medians of
the last rank's seconds. A slow-down, slept outside MPI, makes the mix of the papers: in the sort the work beside an
allgather takes 1.25 times what the wire needs for it, in the conjugate gradient the work of a product 68/32 of it.

**less than blocking**: of the native blocking version's total. **ceiling**: what overlap alone could save of it, the
lesser of each allgather and the work that may go beside it (seconds of the blocking allgather, in as many parts as
there are stages). **hidden**: total of the version that waits at once - total, over what could be hidden of that
version's allgather; it can exceed 100 % where waiting at once makes the allgather itself slower. Every result was
checked.
)";

Series* find(std::vector<Series>& all, const std::string& version) {
    for (auto& series : all)
        if (series.version == version) return &series;
    return nullptr;
}

const Series* find(const std::vector<Series>& all, const std::string& version) {
    for (const auto& series : all)
        if (series.version == version && !series.samples.empty()) return &series;
    return nullptr;
}

void add(const Row& row, const std::string& version, std::vector<Series>& side) {
    Series* series = find(side, version);
    if (series == nullptr) {
        side.push_back({version, {}, {}});
        series = &side.back();
    }
    for (const auto& sample : row.app.at("samples"))
        series->samples.push_back({sample.at("total"), sample.at("communication"), sample.at("compute"),
                                   sample.at("visible"), sample.at("gathers").get<std::vector<double>>(),
                                   sample.at("windows").get<std::vector<double>>()});
    const std::string wrong = row.app.value("wrong", "");
    if (series->wrong.empty()) series->wrong = wrong;
}

std::vector<double> totals(const Series* series) {
    std::vector<double> values;
    if (series != nullptr)
        for (const auto& sample : series->samples) values.push_back(sample.total);
    return values;
}

double total(const Series* series) { return series == nullptr ? 0 : series->median_of(&Sample::total); }

double hidden_part(const std::vector<Series>& side, const std::string& version) {
    const Series* series = find(side, version);
    if (series == nullptr) return 0;
    const apps::Comparison of = compare(*series, side);
    return of.measured_hiding ? of.hidden / of.hideable : 0;
}

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

std::string ratio_text(const Ratio& ratio) {
    if (ratio.value <= 0) return "-";
    return fmt::format("{:.2f} [{:.2f}, {:.2f}]", ratio.value, ratio.interval.low, ratio.interval.high);
}

bool overlaps(const std::string& version) { return version != "blocking" && version != "waited"; }

// "min(66.1 ms, 72.4 ms)", stage by stage of one run.
std::string minima(const std::vector<Series>& side) {
    const Series* const waited = find(side, "waited");
    if (waited == nullptr) return "-";
    std::string text;
    for (std::size_t stage = 0; stage < waited->samples.front().windows.size(); ++stage)
        text += fmt::format("{}min({}, {})", stage > 0 ? " + " : "", time_text(waited->median_gather(stage)),
                            time_text(waited->median_window(stage)));
    return text;
}

}  // namespace

std::string app_name(const std::string& app) {
    std::string text = app;
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
}

std::vector<VersionRatio> version_ratios(const AppLine& line) {
    std::vector<VersionRatio> ratios;
    for (const Series& native : line.native)
        if (const Series* ours = find(line.ours, native.version); ours != nullptr && !native.samples.empty())
            ratios.push_back({native.version, ratio_of_medians(totals(ours), totals(&native))});
    return ratios;
}

std::string app_column(const std::string& side, const std::string& version) { return side + "/" + version; }

std::vector<AppLine> summarize_apps(const std::vector<Row>& rows) {
    using Key = std::tuple<std::string, std::string, std::string, std::string>;
    std::map<Key, std::vector<const Row*>> groups;
    for (const auto& row : rows)
        if (row.phase == apps_phase && !row.app.is_null())
            groups[{row.collective, row.context.value("mpi_name", ""), row.context.value("shape", ""),
                    row.context.value("rate", "")}]
                .push_back(&row);
    std::vector<AppLine> lines;
    for (const auto& [key, group] : groups) {
        AppLine line;
        std::tie(line.app, line.mpi, line.shape, line.rate) = key;
        line.parameters = group.back()->app.at("parameters");
        std::set<int> rounds;
        for (const Row* row : group) {
            // What was asked for otherwise is another measurement.
            if (row->app.at("parameters") != line.parameters) continue;
            // Sides and versions may hold a slash themselves.
            for (const auto& [side, series] :
                 {std::pair{native_side, &line.native}, std::pair{again_side, &line.again},
                  std::pair{thalweg_side, &line.ours}}) {
                const std::string prefix = app_column(side, "");
                if (row->column.starts_with(prefix)) add(*row, row->column.substr(prefix.size()), *series);
            }
            rounds.insert(row->app.value("round", 0));
            line.wrong += row->wrong_words;
        }
        line.rounds = static_cast<int>(rounds.size());
        lines.push_back(std::move(line));
    }
    return lines;
}

AppFigures figures(const AppLine& line) {
    AppFigures result;
    const Series* const blocking = find(line.native, "blocking");
    const Series* const ours = find(line.ours, "nonblocking");
    result.native_blocking = total(blocking);
    result.ours_nonblocking = total(ours);
    if (const double again = total(find(line.again, "blocking")); result.native_blocking > 0)
        result.noise = again / result.native_blocking;
    if (result.native_blocking > 0 && ours != nullptr) {
        result.saved = 1 - result.ours_nonblocking / result.native_blocking;
        result.against_blocking = ratio_of_medians(totals(ours), totals(blocking));
    }
    if (const Series* native = find(line.native, "nonblocking"); native != nullptr && blocking != nullptr)
        result.ceiling = compare(*native, line.native).ceiling / result.native_blocking;
    result.native_hidden = hidden_part(line.native, "nonblocking");
    result.ours_hidden = hidden_part(line.ours, "nonblocking");
    if (ours != nullptr) result.ours_hideable = compare(*ours, line.ours).hideable;
    const Series* best = nullptr;
    const auto consider = [&](const std::vector<Series>& side, const char* name) {
        for (const auto& series : side) {
            if (!series.version.starts_with("manual") || series.samples.empty()) continue;
            if (best != nullptr && total(best) <= total(&series)) continue;
            best = &series;
            result.best_manual = app_column(name, series.version);
        }
    };
    consider(line.native, native_side);
    consider(line.ours, thalweg_side);
    if (best != nullptr && ours != nullptr)
        result.against_manual = ratio_of_medians(totals(ours), totals(best));
    return result;
}

std::string format_app_versions(const std::vector<AppLine>& lines, bool markdown) {
    std::vector<std::vector<std::string>> cells{
        {"application", "MPI", "hosts x ranks", "version", "runs", "native", "visible", "less than blocking",
         "hidden", "Thalweg", "visible", "less than native blocking", "hidden", "Thalweg / native [95 %]"}};
    for (const auto& line : lines) {
        const double blocking = total(find(line.native, "blocking"));
        const auto saved = [&](const Series* series) {
            return series == nullptr || blocking <= 0 ? std::string("-")
                                                      : percent(1 - total(series) / blocking);
        };
        for (const auto& native : line.native) {
            const Series* const ours = find(line.ours, native.version);
            const bool hides = overlaps(native.version);
            cells.push_back(
                {app_name(line.app), line.mpi, line.shape, native.version,
                 fmt::format("{}", native.samples.size()), time_text(total(&native)),
                 time_text(native.median_of(&Sample::visible)),
                 native.version == "blocking" ? "-" : saved(&native),
                 hides ? percent(hidden_part(line.native, native.version)) : "-",
                 ours == nullptr ? "-" : time_text(total(ours)),
                 ours == nullptr ? "-" : time_text(ours->median_of(&Sample::visible)), saved(ours),
                 hides && ours != nullptr ? percent(hidden_part(line.ours, native.version)) : "-",
                 ours == nullptr ? "-" : ratio_text(ratio_of_medians(totals(ours), totals(&native)))});
        }
    }
    return cells.size() > 1 ? format_cells(cells, markdown) : "";
}

std::string format_app_figures(const std::vector<AppLine>& lines, bool markdown) {
    std::vector<std::vector<std::string>> cells{
        {"application", "MPI", "hosts x ranks", "gathered per rank", "slow-down", "native blocking", "A/A",
         "Thalweg nonblocking", "less", "ceiling", "paper", "hideable, Thalweg's waited allgather and work",
         "hidden", "90 % hidden", "against the best manual progress", "wrong"}};
    for (const auto& line : lines) {
        const AppFigures of = figures(line);
        AppCase app;
        find_app(line.app, {}, 1, app);
        cells.push_back({app_name(line.app), line.mpi, line.shape,
                         bytes_text(line.parameters.value("bytes", std::uint64_t{0})),
                         fmt::format("{:g} s", line.parameters.value("slowdown", 0.0)),
                         time_text(of.native_blocking), fmt::format("{:.2f}", of.noise),
                         time_text(of.ours_nonblocking), percent(of.saved), percent(of.ceiling),
                         percent(app.saved_by_paper),
                         fmt::format("{} = {}", minima(line.ours), time_text(of.ours_hideable)),
                         percent(of.ours_hidden), of.ours_hidden >= hidden_target ? "yes" : "no",
                         of.against_manual.value > 0
                             ? fmt::format("{} {}, {}", of.best_manual, ratio_text(of.against_manual),
                                           name_of(verdict(of.against_manual)))
                             : "-",
                         fmt::format("{}", line.wrong)});
    }
    return cells.size() > 1 ? format_cells(cells, markdown) : "";
}

std::string apps_section(const std::vector<Row>& rows, const std::string& provenance) {
    const auto lines = summarize_apps(rows);
    if (lines.empty()) return "";
    return heading + ("\n" + provenance) + format_app_figures(lines, true) + "\n" +
           format_app_versions(lines, true);
}

}  // namespace thalweg::bench
