#include "bench/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "algorithms/algorithm.h"
#include "base/text.h"
#include "bench/columns.h"
#include "bench/exchange_page.h"
#include "bench/results.h"
#include "bench/resume.h"
#include "bench/table.h"
#include "common/patterns.h"
#include "json_text.h"
#include "model/trial.h"

namespace thalweg::bench {
namespace {

constexpr double large_seconds = 0.05;
// For predictions and time limits.
constexpr double launch_seconds = 15, shortest_call_seconds = 8e-3, one_host_bytes_per_s = 1e9;
constexpr double calls_per_sample = 1.6, slowest_over_predicted = 10;
constexpr int trial_samples = static_cast<int>(TrialTurns::calls_before) + trial_calls + 2;

// What a library cannot run beside the other columns in one launch; --columns asks for it all the same. Intel
// MPI 2021.18 crashes where fetches over windows and persistent alltoalls are in one process, whichever came
// first; each of them without the other runs.
struct LeftOut {
    std::string_view mpi, column, why;
};
constexpr LeftOut left_out[] = {{"impi", "rma_get", "crashes beside MPI_Alltoallv_init"}};

class ExchangeSweep {
  public:
    explicit ExchangeSweep(ExchangeRequest request) : request_(std::move(request)) {}
    int run();

  private:
    bool read_request(std::string& why);
    bool here(const Row& row) const;
    std::vector<Row> rows_here() const;
    double call_seconds(const std::vector<std::uint64_t>& matrix) const;
    bool plan_points(std::vector<PointPlan>& points, double& seconds, std::string& why) const;

    int ranks() const { return std::max(1, request_.shape.hosts) * request_.shape.ppn; }

    ExchangeRequest request_;
    std::vector<ColumnPlan> columns_;
    std::vector<std::uint64_t> sizes_;
    std::vector<Row> rows_;
};

bool ExchangeSweep::read_request(std::string& why) {
    for (const auto& text : request_.sizes) {
        const auto bytes = parse_bytes(text);
        if (!bytes || *bytes == 0 || *bytes > 0x7fffffff) {
            why = "--sizes " + text + ": give sizes from 1 to 2147483647, like 64K or 1M";
            return false;
        }
        sizes_.push_back(*bytes);
    }
    std::sort(sizes_.begin(), sizes_.end());
    sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
    if (request_.ours.empty())
        for (const Algorithm& algorithm : algorithms())
            if (algorithm.collective == Collective::alltoallv) request_.ours.emplace_back(algorithm.name);
    std::vector<ColumnPlan> all = exchange_columns(request_.ours);
    for (const auto& name : request_.columns)
        if (std::none_of(all.begin(), all.end(), [&](const auto& each) { return each.name == name; })) {
            why = "--columns: there is no " + name + "; there are";
            for (const auto& column : all)
                if (column.name.find(',') == std::string::npos) why += " '" + column.name + "'";
            return false;
        }
    for (auto& column : all) {
        if (request_.columns.empty()) {
            const auto found =
                std::find_if(std::begin(left_out), std::end(left_out), [&](const LeftOut& each) {
                    return each.mpi == request_.shape.mpi && each.column == column.name;
                });
            if (found == std::end(left_out))
                columns_.push_back(std::move(column));
            else
                fmt::print(stderr, "bench: without the column {}, which {} under {}\n", found->column,
                           found->why, found->mpi);
        } else if (std::count(request_.columns.begin(), request_.columns.end(), column.name)) {
            columns_.push_back(std::move(column));
        }
    }
    return read_rows_before(request_.out, rows_, why);
}

bool ExchangeSweep::here(const Row& row) const {
    return row.phase == exchange_phase && measured_here(row, request_.shape);
}

std::vector<Row> ExchangeSweep::rows_here() const {
    std::vector<Row> rows;
    std::copy_if(rows_.begin(), rows_.end(), std::back_inserter(rows),
                 [this](const Row& row) { return here(row); });
    return rows;
}

// What the wire or the memory needs, with ranks in blocks, before anything was measured.
double ExchangeSweep::call_seconds(const std::vector<std::uint64_t>& matrix) const {
    const auto size = static_cast<std::size_t>(ranks()), ppn = static_cast<std::size_t>(request_.shape.ppn);
    const auto rate = parse_rate(request_.shape.rate);
    std::vector<double> leaves(size), enters(size);
    double all = 0, most = 0;
    for (std::size_t from = 0; from < size; ++from)
        for (std::size_t to = 0; to < size; ++to) {
            const auto bytes = static_cast<double>(matrix[from * size + to]);
            all += bytes;
            if (from / ppn == to / ppn) continue;
            most = std::max({most, leaves[from / ppn] += bytes, enters[to / ppn] += bytes});
        }
    return request_.shape.hosts > 1 && rate ? most / *rate : all / one_host_bytes_per_s;
}

// Those that the file does not have for all columns.
bool ExchangeSweep::plan_points(std::vector<PointPlan>& points, double& seconds, std::string& why) const {
    std::set<std::tuple<std::string, std::uint64_t, std::string>> seen;
    for (const auto& row : rows_)
        if (here(row)) seen.insert({row.exchange.value("pattern", ""), row.bytes, row.column});
    std::set<std::pair<std::string, std::uint64_t>> undecided;
    if (request_.again) undecided = undecided_points(summarize_exchange(rows_here()));
    seconds = 0;
    for (const auto& pattern : request_.patterns)
        for (const auto bytes : sizes_) {
            PointPlan point;
            point.bytes = bytes;
            // Of a file only its name, as rows have it: where it lies says nothing to others.
            point.pattern = tool::utf8_text(pattern.substr(pattern.rfind('/') + 1));
            if (!apps::make_pattern(pattern, ranks(), bytes, point.matrix, why)) return false;
            const bool missing = std::any_of(columns_.begin(), columns_.end(), [&](const ColumnPlan& column) {
                return seen.count({point.pattern, bytes, column.name}) == 0;
            });
            const bool again = !missing && undecided.count({point.pattern, bytes}) != 0;
            if (!missing && !again) continue;
            const double call = call_seconds(point.matrix);
            point.samples =
                (call >= large_seconds ? request_.samples_large : request_.samples) * (again ? 3 : 1);
            for (const ColumnPlan& column : columns_)
                seconds += (call + shortest_call_seconds) * (calls_per_sample * point.samples +
                                                             (column.name == automatic ? trial_samples : 3));
            points.push_back(std::move(point));
        }
    return true;
}

int ExchangeSweep::run() {
    std::string why;
    std::vector<PointPlan> points;
    double seconds = 0;
    if (!read_request(why) || !plan_points(points, seconds, why)) {
        fmt::print(stderr, "thalweg bench: {}\n", why);
        return 2;
    }
    bool good = true;
    if (!points.empty()) {
        fmt::print(stderr, "bench: {} columns, {} points on {} under {}; predicted: {:.0f} s\n",
                   columns_.size(), points.size(), request_.shape.text(), request_.shape.mpi,
                   launch_seconds + seconds);
        Launch plan{request_.shape, "alltoallv", exchange_phase, columns_, points, request_.force};
        plan.timeout_seconds = launch_seconds + slowest_over_predicted * (launch_seconds + seconds);
        std::vector<Row> fresh;
        good = run_launch(plan, fresh, why);
        if (!good) fmt::print(stderr, "thalweg bench: {}\n", why);
        rows_.insert(rows_.end(), fresh.begin(), fresh.end());
        if (!request_.out.empty() && !append_rows(request_.out, fresh, why)) {
            fmt::print(stderr, "thalweg bench: {}\n", why);
            good = false;
        }
    }
    const std::vector<Row> rows = rows_here();
    std::uint64_t wrong = 0;
    for (const auto& row : rows) wrong += row.wrong_words;
    const std::vector<ExchangeLine> lines = summarize_exchange(rows);
    fmt::print("{}\n{}\n\n{}{}", format_exchange(lines, false), foresight_text(lines),
               format_windows(compare_windows(rows), false), below_limit_text(rows));
    if (wrong != 0) fmt::print("{} WRONG WORDS were received\n", wrong);
    return good && wrong == 0 ? 0 : 1;
}

}  // namespace

int run_exchange(ExchangeRequest request) { return ExchangeSweep(std::move(request)).run(); }

}  // namespace thalweg::bench
