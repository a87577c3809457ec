#include "bench/halo.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "bench/columns.h"
#include "bench/halo_overlap.h"
#include "bench/halo_pairs.h"
#include "bench/halo_table.h"
#include "bench/results.h"
#include "bench/resume.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

constexpr double large_seconds = 0.05;
// For predictions and time limits.
constexpr double launch_seconds = 15, shortest_call_seconds = 8e-3, copied_bytes_per_s = 1e9;
constexpr double filled_bytes_per_s = 3e8;  // cells filled and checked, all ranks together
constexpr double slowest_over_predicted = 10;
constexpr int further_calls = 4;  // of a column at a point, besides the timed ones

class HaloSweep {
  public:
    explicit HaloSweep(HaloRequest request) : request_(std::move(request)) {}
    int run();

  private:
    bool read_request(std::string& why);
    bool here(const Row& row) const;
    std::vector<ColumnPlan> all_columns() const;
    bool compares() const {
        return request_.phase == halo_pairs_phase || request_.phase == halo_changing_phase;
    }
    std::vector<Row> rows_here() const;
    bool undecided(const nlohmann::json& what) const;
    int launches_of(const nlohmann::json& what, const std::string& column) const;
    double sample_seconds(const HaloGrid& grid, double& call) const;
    double sample_seconds(const nlohmann::json& what, double& call) const;
    bool launch(const std::vector<ColumnPlan>& columns, int round, std::string& why);
    void print() const;

    int ranks() const { return std::max(1, request_.shape.hosts) * request_.shape.ppn; }

    HaloRequest request_;
    std::vector<nlohmann::json> whats_;  // of the points: a grid each, or the phases of a run
    std::vector<ColumnPlan> columns_;
    std::vector<Row> rows_;
};

std::vector<ColumnPlan> HaloSweep::all_columns() const {
    const std::vector<std::string> none;
    if (compares()) return halo_pair_columns(request_.shape.hosts > 1);
    const auto& settings = request_.apart ? request_.settings : none;
    return request_.phase == halo_overlap_phase ? halo_overlap_columns(settings)
                                                : halo_columns(settings, request_.ours);
}

bool HaloSweep::read_request(std::string& why) {
    std::vector<HaloGrid> grids;
    if (!read_grids(request_, ranks(), grids, why)) return false;
    if (request_.phase == halo_changing_phase)
        whats_.push_back(changing_run(request_.shape, request_.calls, request_.late_seconds));
    else
        for (const HaloGrid& grid : grids) whats_.push_back(to_json(grid));
    const std::vector<std::string>& styles = request_.styles;
    const std::vector<std::string>& ours = request_.ours;
    for (auto& column : all_columns()) {
        const std::string style = column.name.substr(0, column.name.find(setting_begins));
        if (styles.empty() || std::count(styles.begin(), styles.end(), style) ||
            std::count(ours.begin(), ours.end(), column.option))
            columns_.push_back(std::move(column));
    }
    for (const auto& style : styles)
        if (std::none_of(columns_.begin(), columns_.end(),
                         [&](const auto& each) { return each.name == style; })) {
            why = "--styles: there is no " + style + "; there are";
            for (const auto& column : all_columns())
                if (column.environment.empty()) why += " '" + column.name + "'";
            return false;
        }
    return read_rows_before(request_.out, rows_, why);
}

bool HaloSweep::here(const Row& row) const {
    return row.phase == request_.phase && measured_here(row, request_.shape);
}

std::vector<Row> HaloSweep::rows_here() const {
    std::vector<Row> rows;
    std::copy_if(rows_.begin(), rows_.end(), std::back_inserter(rows),
                 [this](const Row& row) { return here(row); });
    return rows;
}

// Whether a choice of Thalweg's is slower there than native calls.
bool HaloSweep::undecided(const nlohmann::json& what) const {
    if (request_.phase != halo_phase) return false;
    std::vector<Row> rows;
    for (const Row& row : rows_here())
        if (what_text(row.halo) == what_text(what)) rows.push_back(row);
    return any_undecided(summarize_halo(rows));
}

int HaloSweep::launches_of(const nlohmann::json& what, const std::string& column) const {
    return static_cast<int>(std::count_if(rows_.begin(), rows_.end(), [&](const Row& row) {
        return here(row) && row.column == column && what_text(row.halo) == what_text(what);
    }));
}

// Of a column, before anything was measured; ranks lie in blocks.
double HaloSweep::sample_seconds(const HaloGrid& grid, double& call) const {
    std::vector<int> host_of;
    for (int rank = 0; rank < ranks(); ++rank) host_of.push_back(rank / request_.shape.ppn);
    const HaloBytes bytes = halo_bytes(grid, host_of);
    const auto rate = parse_rate(request_.shape.rate);
    HaloRates rates;
    rates.wire_bytes_per_s = request_.shape.hosts > 1 && rate ? *rate : 0;
    rates.copied_bytes_per_s = copied_bytes_per_s;
    call = halo_limits(bytes.link, bytes.wire, bytes.inside + bytes.packed, rates).largest();
    return call + shortest_call_seconds +
           2 * static_cast<double>(bytes.wire + bytes.inside) / filled_bytes_per_s;
}

// Of a grid, or of all phases of a run, which counts as one long call.
double HaloSweep::sample_seconds(const nlohmann::json& what, double& call) const {
    if (!what.contains("phases")) return sample_seconds(halo_grid(what), call);
    double all = 0;
    for (const auto& phase : what.at("phases")) {
        const double calls = phase.at("calls");
        const double one = sample_seconds(halo_grid(phase), call);
        all += calls * (one + call * (phase.value("slower", 1.0) - 1) + phase.value("late_seconds", 0.0));
    }
    call = all;
    return all;
}

// Columns of one environment, at all points where one of them has not been in so many launches before.
bool HaloSweep::launch(const std::vector<ColumnPlan>& columns, int round, std::string& why) {
    std::vector<PointPlan> points;
    double seconds = 0;
    for (const nlohmann::json& what : whats_) {
        const bool complete = std::all_of(columns.begin(), columns.end(), [&](const ColumnPlan& column) {
            return launches_of(what, column.name) > round;
        });
        const bool again = complete && request_.again && columns[0].environment.empty() && undecided(what);
        if (complete && !again) continue;
        PointPlan point;
        double call = 0;
        const double sample = sample_seconds(what, call);
        point.samples = (call >= large_seconds ? request_.samples_large : request_.samples) * (again ? 3 : 1);
        if (compares()) point.samples = std::max(1, point.samples / request_.rounds);
        point.halo = what;
        seconds += sample * static_cast<double>(columns.size()) * (point.samples + further_calls);
        points.push_back(std::move(point));
    }
    if (points.empty()) return true;
    fmt::print(stderr, "bench: {} columns, {} points on {} under {}{}; predicted: {:.0f} s\n", columns.size(),
               points.size(), request_.shape.text(), request_.shape.mpi,
               columns[0].environment.empty() ? "" : " with " + columns[0].environment,
               launch_seconds + seconds);
    Launch plan{request_.shape, "halo", request_.phase, columns, points, request_.force};
    if (request_.phase == halo_overlap_phase) plan.computes = {request_.compute};
    plan.timeout_seconds = slowest_over_predicted * (launch_seconds + seconds);
    std::vector<Row> fresh;
    const bool good = run_launch(plan, fresh, why);
    rows_.insert(rows_.end(), fresh.begin(), fresh.end());
    std::string not_written;
    if (request_.out.empty() || append_rows(request_.out, fresh, not_written)) return good;
    why = not_written;
    return false;
}

void HaloSweep::print() const {
    const std::vector<Row> rows = rows_here();
    if (compares()) {
        fmt::print("{}", format_pairs(compare_pairs(rows), false));
    } else if (request_.phase == halo_overlap_phase) {
        fmt::print("{}", format_halo_hidden(summarize_halo_hidden(rows), false));
    } else {
        const auto lines = summarize_halo(rows);
        fmt::print("{}\n{}", format_halo_points(lines, false), format_halo(lines, false));
    }
    fmt::print("{}", below_limit_text(rows));
    for (const auto& row : rows)
        if (row.wrong_words != 0)
            fmt::print("{} WRONG WORDS were received by {} at {}\n", row.wrong_words, row.column,
                       what_text(row.halo));
}

int HaloSweep::run() {
    std::string why;
    if (!read_request(why)) {
        fmt::print(stderr, "thalweg bench: {}\n", why);
        return 2;
    }
    bool good = true;
    for (int round = 0; round < (compares() ? request_.rounds : 1); ++round)
        for (std::size_t from = 0; from < columns_.size();) {
            std::size_t to = from;
            while (to < columns_.size() && columns_[to].environment == columns_[from].environment) ++to;
            if (!launch({columns_.begin() + static_cast<std::ptrdiff_t>(from),
                         columns_.begin() + static_cast<std::ptrdiff_t>(to)},
                        round, why)) {
                fmt::print(stderr, "thalweg bench: {}\n", why);
                good = false;
            }
            from = to;
        }
    print();
    return good ? 0 : 1;
}

}  // namespace

bool read_grids(const HaloRequest& request, int ranks, std::vector<HaloGrid>& grids, std::string& why) {
    grids.clear();
    for (const auto& cells : request.cells) {
        HaloGrid grid;
        why = read_grid({request.grid, cells, request.dims, request.points, request.periodic, request.upwind},
                        ranks, grid);
        if (!why.empty()) return false;
        grids.push_back(std::move(grid));
    }
    return true;
}

nlohmann::json to_json(const HaloGrid& grid) {
    return {{"grid", grid.ranks},
            {"cells", grid.cells},
            {"corners", grid.corners},
            {"periodic", grid.periodic},
            {"upwind", grid.upwind}};
}

HaloGrid halo_grid(const nlohmann::json& json) {
    HaloGrid grid;
    grid.ranks = json.at("grid").get<std::vector<int>>();
    grid.cells = json.at("cells").get<std::vector<int>>();
    grid.corners = json.at("corners");
    grid.periodic = json.at("periodic");
    grid.upwind = json.value("upwind", false);
    return grid;
}

// Ranks of a host are each other's neighbours in the second dimension, hosts in the first.
nlohmann::json changing_run(const Shape& shape, int calls, double late_seconds) {
    const int hosts = std::max(1, shape.hosts);
    HaloGrid grid;
    grid.ranks = {hosts, shape.ppn, 1};
    const auto phase = [&](const char* name, std::vector<int> cells) {
        grid.cells = std::move(cells);
        nlohmann::json made = to_json(grid);
        made["name"] = name;
        made["calls"] = calls;
        return made;
    };
    nlohmann::json phases = nlohmann::json::array();
    phases.push_back(phase("copies", {1024, 4, 256}));
    phases.push_back(phase("small faces", {16, 4, 256}));
    if (hosts > 1) phases.push_back(phase("wire", {64, 64, 256}));
    phases.push_back(phase("both", {512, 32, 256}));
    phases.push_back(phase("late rank", {1024, 4, 256}));
    phases.back()["late_seconds"] = late_seconds;
    grid.upwind = true;
    phases.push_back(phase("upwind", {1024, 4, 256}));
    grid.upwind = false;
    grid.ranks = {hosts * shape.ppn, 1, 1};
    phases.push_back(phase("other grid", {16, 128, 256}));
    if (hosts > 1) {
        grid.ranks = {hosts, shape.ppn, 1};
        phases.push_back(phase("slow link", {512, 16, 256}));
        phases.back()["slower"] = 4;
    }
    return {{"phases", phases}};
}

int run_halo(HaloRequest request) { return HaloSweep(std::move(request)).run(); }

}  // namespace thalweg::bench
