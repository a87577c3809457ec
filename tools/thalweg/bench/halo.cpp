#include "bench/halo.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "bench/columns.h"
#include "bench/halo_table.h"
#include "bench/results.h"

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
    bool measured(const HaloGrid& grid, const std::string& column) const;
    double sample_seconds(const HaloGrid& grid, double& call) const;
    bool launch(const std::vector<ColumnPlan>& columns, std::string& why);

    int ranks() const { return std::max(1, request_.shape.hosts) * request_.shape.ppn; }

    HaloRequest request_;
    std::vector<HaloGrid> grids_;
    std::vector<ColumnPlan> columns_;
    std::vector<Row> rows_;
};

bool HaloSweep::read_request(std::string& why) {
    if (!read_grids(request_, ranks(), grids_, why)) return false;
    const std::vector<std::string>& styles = request_.styles;
    const std::vector<std::string>& ours = request_.ours;
    for (auto& column : halo_columns(request_.apart ? request_.settings : std::vector<std::string>(), ours)) {
        const std::string style = column.name.substr(0, column.name.find(setting_begins));
        if (styles.empty() || std::count(styles.begin(), styles.end(), style) ||
            std::count(ours.begin(), ours.end(), column.option))
            columns_.push_back(std::move(column));
    }
    for (const auto& style : styles)
        if (std::none_of(columns_.begin(), columns_.end(),
                         [&](const auto& each) { return each.name == style; })) {
            why = "--styles: there is no " + style + "; there are";
            for (const auto& column : halo_columns({})) why += " '" + column.name + "'";
            return false;
        }
    return request_.out.empty() || read_rows({request_.out}, rows_, why);
}

bool HaloSweep::here(const Row& row) const {
    return row.phase == halo_phase && row.context.value("mpi_name", "") == request_.shape.mpi &&
           row.context.value("shape", "") == request_.shape.text() &&
           row.context.value("rate", "") == (request_.shape.hosts > 0 ? request_.shape.rate : "");
}

bool HaloSweep::measured(const HaloGrid& grid, const std::string& column) const {
    return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
        return here(row) && row.column == column && halo_grid(row.halo).text() == grid.text();
    });
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

// Columns of one environment, at all points that lack one of them.
bool HaloSweep::launch(const std::vector<ColumnPlan>& columns, std::string& why) {
    std::vector<PointPlan> points;
    double seconds = 0;
    for (const HaloGrid& grid : grids_) {
        if (std::all_of(columns.begin(), columns.end(),
                        [&](const ColumnPlan& column) { return measured(grid, column.name); }))
            continue;
        PointPlan point;
        double call = 0;
        const double sample = sample_seconds(grid, call);
        point.samples = call >= large_seconds ? request_.samples_large : request_.samples;
        point.halo = to_json(grid);
        seconds += sample * static_cast<double>(columns.size()) * (point.samples + further_calls);
        points.push_back(std::move(point));
    }
    if (points.empty()) return true;
    fmt::print(stderr, "bench: {} columns, {} points on {} under {}{}; predicted: {:.0f} s\n", columns.size(),
               points.size(), request_.shape.text(), request_.shape.mpi,
               columns[0].environment.empty() ? "" : " with " + columns[0].environment,
               launch_seconds + seconds);
    Launch plan{request_.shape, "halo", halo_phase, columns, points, request_.force};
    plan.timeout_seconds = slowest_over_predicted * (launch_seconds + seconds);
    std::vector<Row> fresh;
    const bool good = run_launch(plan, fresh, why);
    rows_.insert(rows_.end(), fresh.begin(), fresh.end());
    std::string not_written;
    if (request_.out.empty() || append_rows(request_.out, fresh, not_written)) return good;
    why = not_written;
    return false;
}

int HaloSweep::run() {
    std::string why;
    if (!read_request(why)) {
        fmt::print(stderr, "thalweg bench: {}\n", why);
        return 2;
    }
    bool good = true;
    for (std::size_t from = 0; from < columns_.size();) {
        std::size_t to = from;
        while (to < columns_.size() && columns_[to].environment == columns_[from].environment) ++to;
        if (!launch({columns_.begin() + static_cast<std::ptrdiff_t>(from),
                     columns_.begin() + static_cast<std::ptrdiff_t>(to)},
                    why)) {
            fmt::print(stderr, "thalweg bench: {}\n", why);
            good = false;
        }
        from = to;
    }
    std::vector<Row> rows;
    for (const auto& row : rows_)
        if (here(row)) rows.push_back(row);
    const auto lines = summarize_halo(rows);
    fmt::print("{}\n{}", format_halo_points(lines, false), format_halo(lines, false));
    for (const auto& line : lines)
        if (line.wrong_words != 0)
            fmt::print("{} WRONG WORDS were received by {} at {}\n", line.wrong_words, line.column,
                       line.grid.text());
    return good ? 0 : 1;
}

}  // namespace

bool read_grids(const HaloRequest& request, int ranks, std::vector<HaloGrid>& grids, std::string& why) {
    HaloGrid grid;
    if (request.dims < 1 || request.dims > most_halo_dimensions) {
        why = fmt::format("--dims {}: give 1 to {}", request.dims, most_halo_dimensions);
        return false;
    }
    grid.ranks = request.grid == "auto" ? even_grid(ranks, request.dims) : parse_extents(request.grid);
    grid.periodic = request.periodic;
    if (grid.ranks.size() != static_cast<std::size_t>(request.dims)) {
        why = fmt::format("--grid {}: give {} numbers like {}, or auto", request.grid, request.dims,
                          extents_text(even_grid(ranks, request.dims)));
        return false;
    }
    if (grid.size() != ranks) {
        why = fmt::format("--grid {} has {} ranks, there are {}", request.grid, grid.size(), ranks);
        return false;
    }
    const int faces = grid.points();
    grid.corners = true;
    const int all = grid.points();
    if (request.points != 0 && request.points != faces && request.points != all) {
        why = fmt::format("--points {}: in {} dimensions there are {} and {}", request.points, request.dims,
                          faces, all);
        return false;
    }
    grid.corners = request.points == all && all != faces;
    grids.clear();
    for (const auto& text : request.cells) {
        grid.cells = parse_extents(text);
        if (grid.cells.size() == 1) grid.cells.resize(grid.ranks.size(), grid.cells[0]);
        const std::string refused = grid.cells.empty() ? "give numbers like 64 or 128x128x16" : refuse(grid);
        if (!refused.empty()) {
            why = "--cells " + text + ": " + refused;
            return false;
        }
        grids.push_back(grid);
    }
    return true;
}

nlohmann::json to_json(const HaloGrid& grid) {
    return {
        {"grid", grid.ranks}, {"cells", grid.cells}, {"corners", grid.corners}, {"periodic", grid.periodic}};
}

HaloGrid halo_grid(const nlohmann::json& json) {
    HaloGrid grid;
    grid.ranks = json.at("grid").get<std::vector<int>>();
    grid.cells = json.at("cells").get<std::vector<int>>();
    grid.corners = json.at("corners");
    grid.periodic = json.at("periodic");
    return grid;
}

int run_halo(HaloRequest request) { return HaloSweep(std::move(request)).run(); }

}  // namespace thalweg::bench
