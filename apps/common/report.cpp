#include "common/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <sstream>

namespace thalweg::apps {
namespace {

std::string seconds_text(double seconds) {
    return std::abs(seconds) < 1 ? fmt::format("{:.2f} ms", 1e3 * seconds) : fmt::format("{:.3f} s", seconds);
}

std::string percent_text(double part, double whole) {
    return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

// "min(12.00 ms, 15.00 ms) + min(12.00 ms, 9.00 ms)".
std::string minima(const Series& gathers, const Series& windows) {
    const std::size_t stages = windows.samples.front().windows.size();
    const bool own_stages = gathers.samples.front().gathers.size() == stages;
    double whole = 0;
    for (std::size_t i = 0; i < gathers.samples.front().gathers.size(); ++i)
        whole += gathers.median_gather(i);
    std::string text;
    for (std::size_t i = 0; i < stages; ++i) {
        const double gather = own_stages ? gathers.median_gather(i) : whole / static_cast<double>(stages);
        text += fmt::format("{}min({}, {})", i > 0 ? " + " : "", seconds_text(gather),
                            seconds_text(windows.median_window(i)));
    }
    return text;
}

const Series* find(const Report& report, std::string_view version) {
    for (const auto& series : report.series)
        if (series.version == version && !series.samples.empty()) return &series;
    return nullptr;
}

// How far overlap can go, and with which numbers.
std::string arithmetic(const Report& report) {
    const Series* const blocking = find(report, "blocking");
    const Series* const waited = find(report, "waited");
    const Series* windows = waited;
    for (const auto& series : report.series)
        if (windows == nullptr && series.version != "blocking" && !series.samples.empty()) windows = &series;
    std::string text;
    if (blocking != nullptr && windows != nullptr) {
        const Comparison of = compare(*windows, report.series);
        text += fmt::format(
            "ceiling: the lesser of each allgather and the work that may go beside it, {}, is {}; that is {} "
            "of "
            "the blocking version's {}\n",
            minima(*blocking, *windows), seconds_text(of.ceiling),
            percent_text(of.ceiling, of.blocking_total), seconds_text(of.blocking_total));
    }
    if (waited != nullptr) {
        const Comparison of = compare(*waited, report.series);
        text += fmt::format("hideable: the same for the nonblocking allgather, waited for at once: {} = {}\n",
                            minima(*waited, *waited), seconds_text(of.hideable));
    }
    return text;
}

}  // namespace

bool Report::correct() const {
    return std::all_of(series.begin(), series.end(), [](const Series& each) { return each.wrong.empty(); });
}

std::string format_report(const Report& report) {
    std::vector<std::vector<std::string>> cells{{"version", "total", "communication", "visible", "compute",
                                                 "less than blocking", "of the ceiling", "hidden", "check"}};
    for (const auto& series : report.series) {
        const Comparison of = compare(series, report.series);
        const bool reference = series.version == "blocking";
        const bool overlaps = !reference && series.version != "waited";
        cells.push_back({series.version, seconds_text(series.median_of(&Sample::total)),
                         seconds_text(series.median_of(&Sample::communication)),
                         seconds_text(series.median_of(&Sample::visible)),
                         seconds_text(series.median_of(&Sample::compute)),
                         of.possible && !reference ? percent_text(of.saved, of.blocking_total) : "-",
                         of.possible && overlaps ? percent_text(of.saved, of.ceiling) : "-",
                         of.measured_hiding && overlaps ? percent_text(of.hidden, of.hideable) : "-",
                         series.wrong.empty() ? "right" : "WRONG"});
    }
    std::vector<std::size_t> widths(cells.front().size(), 0);
    for (const auto& row : cells)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string text = report.title + "\n";
    for (const auto& row : cells) {
        for (std::size_t i = 0; i < row.size(); ++i)
            text += i == 0 ? fmt::format("{:<{}}", row[i], widths[i])
                           : fmt::format("  {:>{}}", row[i], widths[i]);
        text += "\n";
    }
    text += arithmetic(report);
    for (const auto& series : report.series)
        if (!series.wrong.empty()) text += fmt::format("WRONG, {}: {}\n", series.version, series.wrong);
    if (report.correct()) text += "checked: " + report.checked + "\n";
    return text;
}

nlohmann::json to_json(const std::vector<Sample>& samples) {
    auto list = nlohmann::json::array();
    for (const auto& sample : samples)
        list.push_back({{"total", sample.total},
                        {"communication", sample.communication},
                        {"compute", sample.compute},
                        {"visible", sample.visible},
                        {"gathers", sample.gathers},
                        {"windows", sample.windows}});
    return list;
}

std::string json_lines(const Report& report) {
    std::string text;
    for (const auto& series : report.series) {
        nlohmann::json line{{"app", report.app},
                            {"parameters", report.parameters},
                            {"library", report.library},
                            {"version", series.version},
                            {"checked", report.checked},
                            {"wrong", series.wrong},
                            {"samples", to_json(series.samples)}};
        const Comparison of = compare(series, report.series);
        if (of.possible)
            line["against_blocking"] = {
                {"saved", of.saved}, {"ceiling", of.ceiling}, {"blocking_total", of.blocking_total}};
        if (of.measured_hiding) line["hiding"] = {{"hidden", of.hidden}, {"hideable", of.hideable}};
        // A matrix's file may have any name, in UTF-8 or not.
        text += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    }
    return text;
}

bool read_reports(const std::string& text, std::vector<Report>& reports, std::string& why) {
    std::istringstream lines(text);
    for (std::string each; std::getline(lines, each);) {
        if (each.empty()) continue;
        try {
            const auto line = nlohmann::json::parse(each);
            Series series;
            series.version = line.at("version");
            series.wrong = line.at("wrong");
            for (const auto& sample : line.at("samples"))
                series.samples.push_back({sample.at("total"), sample.at("communication"),
                                          sample.at("compute"), sample.at("visible"),
                                          sample.at("gathers").get<std::vector<double>>(),
                                          sample.at("windows").get<std::vector<double>>()});
            const std::string app = line.at("app");
            const auto same = [&](const Report& report) {
                return report.app == app && report.parameters == line.at("parameters");
            };
            auto report = std::find_if(reports.begin(), reports.end(), same);
            if (report == reports.end()) {
                reports.push_back(
                    {app, "", line.at("parameters"), {}, line.at("checked"), line.at("library")});
                report = reports.end() - 1;
            }
            report->series.push_back(std::move(series));
        } catch (const std::exception& error) {
            why = std::string("a line is not what an application writes: ") + error.what();
            return false;
        }
    }
    return true;
}

bool append_to(const std::string& path, const std::string& text, std::string& why) {
    std::ofstream file(path, std::ios::app);
    file << text;
    file.flush();
    if (!file) why = path + " cannot be written";
    return static_cast<bool>(file);
}

}  // namespace thalweg::apps
