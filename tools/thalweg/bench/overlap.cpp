#include "bench/overlap.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "bench/columns.h"
#include "bench/overlap_table.h"
#include "bench/results.h"
#include "bench/resume.h"
#include "bench/sizes.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

constexpr double large_seconds = 0.15;
// A launch of its own serves one column, beside columns that were measured with all samples.
constexpr int apart_share = 3;
// For predictions: a call that is left alone, one that a computation as long as it follows, and what natives
// that wait for the computation's end add; and what one that is far from its limit may take before its launch
// is ended.
constexpr double calls_per_sample = 3.5, slowest_over_predicted = 8, launch_seconds = 15;
constexpr double one_host_bytes_per_s = 1e9, shortest_call_seconds = 5e-3;  // agreeing on a start included
constexpr int warm_up_rounds = 5;

class OverlapSweep {
  public:
    explicit OverlapSweep(OverlapRequest request) : request_(std::move(request)) {}
    int run();

  private:
    bool read_request();
    bool record(const std::vector<Row>& rows);
    bool here(const Row& row) const;
    double call_seconds(std::uint64_t bytes) const;
    int samples_of(std::uint64_t bytes, bool apart) const;
    std::vector<PointPlan> missing_points(const std::vector<ColumnPlan>& columns, bool apart) const;
    double predicted_seconds(std::size_t columns, const std::vector<PointPlan>& points) const;
    bool launch(const std::vector<ColumnPlan>& columns, const std::vector<PointPlan>& points, double seconds);

    OverlapRequest request_;
    std::vector<std::uint64_t> sizes_;
    std::vector<Row> rows_;
};

bool OverlapSweep::read_request() {
    const int ranks = std::max(1, request_.shape.hosts) * request_.shape.ppn;
    if (request_.computes.empty()) {
        if (ranks <= sysconf(_SC_NPROCESSORS_ONLN))
            request_.computes = {"arithmetic", "memory"};
        else
            request_.computes = {"sleep"};
    }
    std::string why;
    if (read_sizes(request_.sizes, request_.collective, sizes_, why) &&
        read_rows_before(request_.out, rows_, why))
        return true;
    fmt::print(stderr, "thalweg bench: {}\n", why);
    return false;
}

bool OverlapSweep::record(const std::vector<Row>& rows) {
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    std::string why;
    if (request_.out.empty() || append_rows(request_.out, rows, why)) return true;
    fmt::print(stderr, "thalweg bench: {}\n", why);
    return false;
}

bool OverlapSweep::here(const Row& row) const {
    return row.phase == overlap_phase && row.collective == request_.collective &&
           measured_here(row, request_.shape);
}

// What the wire or the memory needs, before anything was measured.
double OverlapSweep::call_seconds(std::uint64_t bytes) const {
    const int hosts = std::max(1, request_.shape.hosts);
    Row row;
    row.collective = request_.collective;
    row.bytes = bytes;
    row.context = {{"hosts", hosts}, {"ranks", hosts * request_.shape.ppn}};
    const auto rate = parse_rate(request_.shape.rate);
    if (hosts < 2 || !rate)
        return hosts * request_.shape.ppn * static_cast<double>(bytes) / one_host_bytes_per_s;
    return necessary_link_bytes(row) / *rate;
}

int OverlapSweep::samples_of(std::uint64_t bytes, bool apart) const {
    const int samples = call_seconds(bytes) >= large_seconds ? request_.samples_large : request_.samples;
    return apart ? std::max(std::min(samples, request_.samples_large), samples / apart_share) : samples;
}

// Those that this file does not have for all of the columns.
std::vector<PointPlan> OverlapSweep::missing_points(const std::vector<ColumnPlan>& columns,
                                                    bool apart) const {
    std::set<std::pair<std::string, std::uint64_t>> seen;
    for (const auto& row : rows_)
        if (here(row)) seen.insert({row.column, row.bytes});
    std::vector<PointPlan> points;
    for (const auto bytes : sizes_) {
        const bool missing = std::any_of(columns.begin(), columns.end(), [&](const ColumnPlan& column) {
            return seen.count({column.name, bytes}) == 0;
        });
        if (!missing) continue;
        PointPlan point;
        point.bytes = bytes;
        point.samples = samples_of(bytes, apart);
        points.push_back(point);
    }
    return points;
}

double OverlapSweep::predicted_seconds(std::size_t columns, const std::vector<PointPlan>& points) const {
    const double kinds = static_cast<double>(request_.computes.size());
    double seconds = launch_seconds;
    for (const auto& point : points)
        seconds += static_cast<double>(columns) * (call_seconds(point.bytes) + shortest_call_seconds) *
                   (point.samples * (calls_per_sample + 1.5 * (kinds - 1)) + warm_up_rounds);
    return seconds;
}

bool OverlapSweep::launch(const std::vector<ColumnPlan>& columns, const std::vector<PointPlan>& points,
                          double seconds) {
    Launch plan{request_.shape, request_.collective, overlap_phase, columns, points, request_.force};
    plan.computes = request_.computes;
    plan.timeout_seconds = launch_seconds + slowest_over_predicted * seconds;
    std::vector<Row> fresh;
    std::string why;
    const bool good = run_launch(plan, fresh, why);
    if (!good) fmt::print(stderr, "thalweg bench: {}\n", why);
    // A column that hangs or fails is a result too; one that was interrupted is to be measured.
    const nlohmann::json context = session_context(request_.shape);
    for (const auto& column : columns)
        for (const auto& point : points) {
            if (good || interrupted() || column.environment.empty() ||
                std::any_of(fresh.begin(), fresh.end(), [&](const Row& row) {
                    return row.column == column.name && row.bytes == point.bytes;
                }))
                continue;
            Row row;
            row.context = context;
            row.context["environment"] = column.environment;
            row.collective = request_.collective;
            row.column = column.name;
            row.phase = overlap_phase;
            row.bytes = point.bytes;
            row.stopped = why;
            fresh.push_back(std::move(row));
        }
    return record(fresh) && good;
}

int OverlapSweep::run() {
    if (!read_request()) return 2;
    std::map<std::string, std::vector<ColumnPlan>> by_environment;
    ColumnPlan reference, ours;
    for (auto& column : overlap_columns(request_.shape.mpi, request_.collective, request_.ours,
                                        request_.agents, request_.shape.rails)) {
        if (column.name == socket_reference) reference = column;
        if (column.name == automatic) ours = column;
        by_environment[column.environment].push_back(column);
    }
    if (!request_.apart) std::erase_if(by_environment, [](const auto& each) { return !each.first.empty(); });
    double predicted = 0;
    for (const auto& [environment, columns] : by_environment)
        if (const auto points = missing_points(columns, !environment.empty()); !points.empty())
            predicted += predicted_seconds(columns.size() + !environment.empty(), points);
    fmt::print(stderr, "bench: predicted: {:.0f} min\n", std::ceil(predicted / 60));
    bool good = true;
    for (auto& [environment, columns] : by_environment) {
        const auto points = missing_points(columns, !environment.empty());
        if (points.empty()) continue;
        // Dilation is told against the reference of the same launch, a blocking call beside ours.
        if (!environment.empty()) {
            columns.push_back(columns[0].way == "alone" ? ours : reference);
            columns.back().environment = environment;
        }
        fmt::print(stderr, "bench: {} column(s) of {} on {} under {}{}\n", columns.size(),
                   request_.collective, request_.shape.text(), request_.shape.mpi,
                   environment.empty() ? "" : " with " + environment);
        const bool launched = launch(columns, points, predicted_seconds(columns.size(), points));
        if (environment.empty()) good = launched;
    }
    std::vector<Row> rows;
    std::uint64_t wrong = 0;
    for (const auto& row : rows_)
        if (here(row)) rows.push_back(row), wrong += row.wrong_words;
    const auto lines = summarize_overlap(rows);
    fmt::print("{}\n{}\n{}{}{}", format_hidden(lines, false), format_cost(lines, false),
               format_targets(judge(lines), false), format_ports(lines, false), below_limit_text(rows));
    if (wrong != 0) fmt::print("{} WRONG WORDS were received\n", wrong);
    return good && wrong == 0 ? 0 : 1;
}

}  // namespace

int run_overlap(OverlapRequest request) { return OverlapSweep(std::move(request)).run(); }

}  // namespace thalweg::bench
