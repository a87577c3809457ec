#include "bench/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "bench/columns.h"
#include "bench/race.h"
#include "bench/results.h"
#include "bench/resume.h"
#include "bench/rings.h"
#include "bench/sizes.h"
#include "bench/small.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

constexpr std::uint64_t large_bytes = 4u << 20;  // from here one call takes so long that fewer pairs must do
constexpr int ring_samples = 30;
constexpr std::size_t natives_to_decide = 2;  // the best of the screen that are measured with many pairs
constexpr int decided_columns = 3 + static_cast<int>(natives_to_decide);
constexpr int warm_up_calls = 2;          // of the driver, per column
constexpr int back_to_back_per_call = 3;  // the driver adds such a run to every third sample
// In a lab the calls before the first sample of a race are at most this large: they open connections, and at
// the full size they would take as long as the race.
constexpr std::uint64_t race_warm_up_bytes = 256u << 10;

// For predictions before anything is measured: a good call on one host, and to bring up a lab and an MPI.
constexpr double one_host_bytes_per_s = 1e9, one_host_call_s = 5e-3, launch_s = 8;

// The exit status; says how many words were wrong, those of an earlier run in the same file among them. Of
// all phases, or of one.
int status_of(const std::vector<Row>& rows, std::string_view phase, bool good) {
    std::uint64_t wrong = 0;
    for (const auto& row : rows)
        if (phase.empty() || row.phase == phase) wrong += row.wrong_words;
    if (wrong != 0) fmt::print("{} WRONG WORDS were received\n", wrong);
    return good && wrong == 0 ? 0 : 1;
}

class Sweep {
  public:
    explicit Sweep(Request request) : request_(std::move(request)) {}
    int run();

  private:
    bool record(const std::vector<Row>& rows);
    bool launch(const std::string& phase, std::vector<ColumnPlan> columns, std::vector<PointPlan> points);
    bool screen(const std::vector<std::uint64_t>& sizes);
    bool screen_together(const std::vector<std::uint64_t>& sizes);
    bool leave_out(std::uint64_t bytes, std::vector<ColumnPlan>& columns);
    bool decide(const std::vector<std::uint64_t>& sizes);
    bool decide(std::uint64_t bytes, int pairs);
    int pairs_left(std::uint64_t bytes) const;
    bool measure_rings(const std::vector<std::uint64_t>& sizes);
    bool measure_small(const std::vector<std::uint64_t>& sizes);
    void predict(const std::vector<std::uint64_t>& sizes) const;
    std::vector<ColumnPlan> columns_for(std::uint64_t bytes) const;
    std::vector<Row> rows_here() const;
    std::vector<const Row*> screened(std::uint64_t bytes) const;
    double best_screened(std::uint64_t bytes) const;
    double good_call_seconds(std::uint64_t bytes) const;
    int samples_at(std::uint64_t bytes) const;

    Request request_;
    std::vector<Row> rows_;
};

std::vector<Row> Sweep::rows_here() const {
    std::vector<Row> here;
    for (const auto& row : rows_)
        if (row.collective == request_.collective && measured_here(row, request_.shape)) here.push_back(row);
    return here;
}

// The screen of one size, as far as it is there. Valid until the next launch.
std::vector<const Row*> Sweep::screened(std::uint64_t bytes) const {
    std::vector<const Row*> rows;
    for (const auto& row : rows_)
        if (row.phase == "screen" && row.bytes == bytes && row.collective == request_.collective &&
            measured_here(row, request_.shape))
            rows.push_back(&row);
    return rows;
}

double Sweep::best_screened(std::uint64_t bytes) const {
    double best = 0;
    for (const Row* row : screened(bytes))
        if (!row->seconds.empty() && (best <= 0 || median(row->seconds) < best)) best = median(row->seconds);
    return best;
}

// Measured where the screen has been there, else what the wire or the memory needs.
double Sweep::good_call_seconds(std::uint64_t bytes) const {
    if (const double best = best_screened(bytes); best > 0) return best;
    const int hosts = std::max(1, request_.shape.hosts), ranks = hosts * request_.shape.ppn;
    const double copies = one_host_call_s + ranks * static_cast<double>(bytes) / one_host_bytes_per_s;
    const auto rate = parse_rate(request_.shape.rate);
    Row row;
    row.collective = request_.collective;
    row.bytes = bytes;
    row.context = {{"hosts", hosts}, {"ranks", ranks}};
    return hosts < 2 || !rate ? copies : copies + necessary_link_bytes(row) / *rate;
}

int Sweep::samples_at(std::uint64_t bytes) const {
    return bytes >= large_bytes ? std::max(3, request_.screen_samples / 2) : request_.screen_samples;
}

// How many pairs are to be measured now: 0 where it is decided. From 4 MiB on fewer will do, unless native
// against itself shows that they tell 3 % from nothing no more.
int Sweep::pairs_left(std::uint64_t bytes) const {
    const Done done(rows_, request_.collective, request_.shape);
    const int all = request_.decide_samples;
    const int first = bytes >= large_bytes ? request_.decide_samples_large : all;
    const bool more = bytes >= large_bytes && done.wants_more_pairs(bytes, static_cast<std::size_t>(all));
    if (request_.again) return 3 * (more ? all : first);
    return more ? all : done.decided(bytes) ? 0 : first;
}

// Says how long the sweep will take, as far as it is not done.
void Sweep::predict(const std::vector<std::uint64_t>& sizes) const {
    const Done done(rows_, request_.collective, request_.shape);
    const auto columns = all_columns(request_.shape.mpi, request_.collective, request_.ours);
    double screening = 0, deciding = 0;
    for (const auto bytes : sizes) {
        std::set<std::string> launches;  // environments
        const auto missing = done.missing("screen", columns, bytes);
        for (const auto& column : missing) launches.insert(column.environment);
        const int left = static_cast<int>(missing.size()), starts = static_cast<int>(launches.size());
        const double call = good_call_seconds(bytes);
        const int always = std::min(left, 3);
        if (left > 0)
            screening +=
                predicted_screen_seconds({bytes, left, always, samples_at(bytes), call}) +
                launch_s * starts / (bytes >= left_out_from_bytes ? 1.0 : static_cast<double>(sizes.size()));
        if (request_.screen_only || pairs_left(bytes) == 0) continue;
        const bool large = bytes >= large_bytes;
        const int samples = pairs_left(bytes);
        const int calls = warm_up_calls + samples + samples / back_to_back_per_call * (large ? 2 : 4);
        const bool apart = std::any_of(columns.begin(), columns.end(),
                                       [](const auto& column) { return !column.environment.empty(); });
        const int paired_apart = apart ? static_cast<int>(natives_to_decide) : 0;
        deciding += predicted_decide_seconds(decided_columns + paired_apart, calls, call) +
                    launch_s * (1 + paired_apart);
    }
    fmt::print(stderr, "bench: predicted: {:.0f} min of screening, {:.0f} min of deciding\n",
               std::max(screening > 0 ? 1.0 : 0.0, screening / 60),
               std::max(deciding > 0 ? 1.0 : 0.0, deciding / 60));
}

bool Sweep::record(const std::vector<Row>& rows) {
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    std::string why;
    if (request_.out.empty() || append_rows(request_.out, rows, why)) return true;
    fmt::print(stderr, "thalweg bench: {}\n", why);
    return false;
}

bool Sweep::launch(const std::string& phase, std::vector<ColumnPlan> columns, std::vector<PointPlan> points) {
    std::vector<Row> fresh;
    std::string why;
    const bool good = run_launch(
        {request_.shape, request_.collective, phase, std::move(columns), std::move(points), request_.force},
        fresh, why);
    if (!record(fresh)) return false;
    if (!good) fmt::print(stderr, "thalweg bench: {}\n", why);
    return good;
}

// What a size leaves out follows from the size before, so from there on each has launches of its own.
bool Sweep::screen(const std::vector<std::uint64_t>& sizes) {
    std::vector<std::uint64_t> together;
    bool good = true;
    for (const auto bytes : sizes)
        if (bytes < left_out_from_bytes) together.push_back(bytes);
    if (!together.empty()) good = screen_together(together);
    for (const auto bytes : sizes)
        if (bytes >= left_out_from_bytes) good = screen_together({bytes}) && good;
    return good;
}

// Takes the columns away that do not start at this size, and records that they did not.
bool Sweep::leave_out(std::uint64_t bytes, std::vector<ColumnPlan>& columns) {
    const auto before = screened(bytes / 4);
    const double best = best_screened(bytes / 4);
    const auto alike = resembling_default(before);
    std::vector<Row> left_out;
    const auto goes = [&](const ColumnPlan& column) {
        if (always_measured(column.name) || std::find(alike.begin(), alike.end(), column.name) != alike.end())
            return false;
        std::string why;
        for (const Row* row : before) {
            if (row->column != column.name) continue;
            why = row->seconds.empty() ? row->stopped : race_left_out(bytes, median(row->seconds), best);
        }
        if (why.empty()) return false;
        Row row;
        row.context = session_context(request_.shape);
        row.collective = request_.collective;
        row.column = column.name;
        row.phase = "screen";
        row.bytes = bytes;
        row.stopped = why;
        left_out.push_back(std::move(row));
        return true;
    };
    columns.erase(std::remove_if(columns.begin(), columns.end(), goes), columns.end());
    if (left_out.empty()) return true;
    fmt::print(stderr, "bench: {}: {} column(s) left out, over {:g}x the best at {}\n", bytes_text(bytes),
               left_out.size(), left_out_ratio, bytes_text(bytes / 4));
    return record(left_out);
}

// One launch for everything that can be switched within it, one more for each native that needs its own.
// Columns that came to be after a screen are screened beside those that are always measured.
bool Sweep::screen_together(const std::vector<std::uint64_t>& sizes) {
    const Done done(rows_, request_.collective, request_.shape);
    std::map<std::string, std::vector<ColumnPlan>> by_environment;
    for (auto& column : all_columns(request_.shape.mpi, request_.collective, request_.ours))
        by_environment[column.environment].push_back(column);
    bool good = true;
    for (auto& [environment, columns] : by_environment) {
        std::vector<PointPlan> points;
        for (const auto bytes : sizes) {
            std::vector<ColumnPlan> missing = done.missing("screen", columns, bytes);
            if (sizes.size() == 1 && !missing.empty() && !leave_out(sizes[0], missing)) return false;
            if (missing.empty()) continue;
            points.push_back({bytes, samples_at(bytes), 0, true, best_screened(bytes),
                              request_.shape.hosts > 0 ? race_warm_up_bytes : 0, 0});
            for (const auto& column : missing) points.back().columns.insert(column.name);
            for (const auto& column : columns)
                if (always_measured(column.name)) points.back().columns.insert(column.name);
        }
        if (points.empty()) continue;
        std::erase_if(columns, [&points](const ColumnPlan& column) {
            return std::none_of(points.begin(), points.end(), [&column](const PointPlan& point) {
                return point.columns.count(column.name) != 0;
            });
        });
        fmt::print(stderr, "bench: screening {} column(s) on {} under {}{}\n", columns.size(),
                   request_.shape.text(), request_.shape.mpi,
                   environment.empty() ? "" : " with " + environment);
        // A native that fails to run an algorithm is one column less, not the end of the sweep.
        const bool launched = launch("screen", columns, points);
        if (environment.empty()) good = launched;
    }
    return good;
}

// Default, A/A, the automatic choice, and the two natives that the screen found fastest.
std::vector<ColumnPlan> Sweep::columns_for(std::uint64_t bytes) const {
    std::vector<std::pair<double, std::string>> natives;
    for (const Row* row : screened(bytes))
        if (row->column.starts_with("native ") && row->column != native_again && !row->seconds.empty())
            natives.emplace_back(median(row->seconds), row->column);
    std::sort(natives.begin(), natives.end());
    std::set<std::string> wanted{std::string(native_default), std::string(native_again),
                                 std::string(automatic)};
    for (std::size_t i = 0; i < std::min(natives.size(), natives_to_decide); ++i)
        wanted.insert(natives[i].second);
    std::vector<ColumnPlan> columns;
    for (auto& column : all_columns(request_.shape.mpi, request_.collective, request_.ours))
        if (wanted.count(column.name) != 0) columns.push_back(column);
    return columns;
}

bool Sweep::decide(const std::vector<std::uint64_t>& sizes) {
    bool good = true;
    for (const auto bytes : sizes) {
        if (const int pairs = pairs_left(bytes); pairs > 0) good = decide(bytes, pairs) && good;
        if (const int pairs = pairs_left(bytes); pairs > 0 && !request_.again && good) {
            fmt::print(stderr, "bench: {}: native against itself does not resolve 3 %: {} pairs more\n",
                       bytes_text(bytes), pairs);
            good = decide(bytes, pairs);
        }
    }
    return good;
}

bool Sweep::decide(std::uint64_t bytes, int pairs) {
    bool good = true;
    PointPlan point;
    point.bytes = bytes;
    point.samples = pairs;
    point.back_to_back = bytes >= large_bytes ? 2 : 4;
    std::map<std::string, std::vector<ColumnPlan>> by_environment;
    for (auto& column : columns_for(bytes)) by_environment[column.environment].push_back(column);
    for (auto& [environment, columns] : by_environment) {
        // A native with an environment of its own is paired with the automatic choice under that
        // environment.
        if (!environment.empty())
            columns.push_back({std::string(automatic), false, nlohmann::json::object(), "auto", environment});
        good = launch("decide", columns, {point}) && good;
    }
    return good;
}

// Both rings and the closed one again, interleaved.
bool Sweep::measure_rings(const std::vector<std::uint64_t>& sizes) {
    const Done done(rows_, request_.collective, request_.shape);
    std::vector<PointPlan> points;
    for (const auto bytes : sizes)
        if (!done.has(rings_phase, trimmed_ring, bytes))
            points.push_back({bytes, ring_samples, 4, false, 0, race_warm_up_bytes, 0});
    if (points.empty()) return true;
    std::vector<ColumnPlan> columns;
    const std::string closed = std::string(closed_ring).substr(ours_prefix.size());
    columns.push_back({closed_ring, false, nlohmann::json::object(), closed, ""});
    columns.push_back({closed_ring_again, false, nlohmann::json::object(), closed, ""});
    columns.push_back({trimmed_ring, false, nlohmann::json::object(),
                       std::string(trimmed_ring).substr(ours_prefix.size()), ""});
    return launch(rings_phase, columns, points);
}

// Three columns in turns on this host: native, native again, and the automatic choice.
bool Sweep::measure_small(const std::vector<std::uint64_t>& sizes) {
    const Done done(rows_, request_.collective, request_.shape);
    std::vector<PointPlan> points;
    for (const auto bytes : sizes)
        if (!done.has(small_phase, std::string(automatic), bytes)) {
            PointPlan point;
            point.bytes = bytes;
            point.small_calls = request_.small_calls;
            points.push_back(point);
        }
    if (points.empty()) return true;
    auto columns = all_columns(request_.shape.mpi, request_.collective, {});
    columns.resize(3);
    return launch(small_phase, columns, points);
}

int Sweep::run() {
    std::string why;
    std::vector<std::uint64_t> sizes;
    if (!read_sizes(request_.sizes, request_.collective, sizes, why) ||
        !read_rows_before(request_.out, rows_, why)) {
        fmt::print(stderr, "thalweg bench: {}\n", why);
        return 2;
    }
    if (request_.rings) {
        const bool measured = measure_rings(sizes);
        fmt::print("{}", format_rings(rows_, false));
        return status_of(rows_here(), rings_phase, measured);
    }
    if (request_.small) {
        const bool measured = measure_small(sizes);
        fmt::print("{}", format_small(rows_here(), false));
        return status_of(rows_here(), small_phase, measured);
    }
    predict(sizes);
    bool good = screen(sizes);
    if (good && !request_.screen_only) {
        if (!request_.demo) predict(sizes);
        good = decide(sizes);
    }
    const auto here = rows_here();
    if (!request_.demo) fmt::print("{}\n", format_columns(here));
    fmt::print("{}{}", format_table(summarize(here), false), below_limit_text(here));
    return status_of(here, {}, good);
}

}  // namespace

Request standard_request(const std::string& collective) {
    Request request;
    request.collective = collective;
    if (collective == "allgather") {
        request.sizes = {"16K", "64K", "256K", "1M"};
        request.ours = {"ring", "ring:chunk_bytes=32K", "spread", "bruck",
                        "node_leader(intra=linear,inter=ring:chunk_bytes=64K)"};
    } else if (collective == "allreduce") {
        request.sizes = {"64K", "256K", "1M", "4M"};
        request.ours = {"ring:chunk_bytes=32K", "rabenseifner", "recursive_doubling",
                        "node_leader(intra=linear,inter=ring:chunk_bytes=32K)"};
    }
    return request;
}

int run_sweep(Request request) { return Sweep(std::move(request)).run(); }

}  // namespace thalweg::bench
