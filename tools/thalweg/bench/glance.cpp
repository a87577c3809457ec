#include "bench/glance.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "bench/amr.h"
#include "bench/apps_table.h"
#include "bench/columns.h"
#include "bench/exchange_table.h"
#include "bench/halo_table.h"
#include "bench/overlap_table.h"
#include "bench/small.h"
#include "bench/table.h"
#include "bench/waiters.h"

namespace thalweg::bench {
namespace {

struct Library {
    std::string_view name, text;
};
constexpr Library libraries[] = {{"mpich", "MPICH"}, {"openmpi", "Open MPI"}, {"impi", "Intel MPI"}};

std::string library_text(const std::string& mpi) {
    for (const Library& library : libraries)
        if (library.name == mpi) return std::string(library.text);
    return mpi;
}

constexpr const char* its_default = "its default";

std::string capital(std::string_view collective) {  // "iallgather" -> "MPI_Iallgather"
    std::string text(collective);
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return "MPI_" + text;
}

std::string without(const std::string& text, std::string_view prefix) {
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

void add_collectives(const std::vector<Row>& rows, std::vector<GlancePoint>& points) {
    std::vector<Summary> lines = summarize(rows);
    // Broadcasts first, and what stays inside one host behind the lab.
    const auto order = [](const Summary& line) {
        return std::make_tuple(line.rate.empty(), line.collective != "bcast", line.collective);
    };
    std::stable_sort(lines.begin(), lines.end(),
                     [&](const Summary& a, const Summary& b) { return order(a) < order(b); });
    for (const Summary& line : lines) {
        if (line.against_default.value <= 0) continue;
        GlancePoint point;
        point.operation = capital(line.collective) + (line.rate.empty() ? " inside a host" : "");
        point.compared = its_default;
        point.mpi = line.mpi;
        point.shape = line.shape;
        point.where = bytes_text(line.bytes);
        point.ratio = line.against_default;
        if (line.limit_seconds > 0) point.of_limit = line.ours_seconds / line.limit_seconds;
        // A first look has too few samples.
        point.decision = line.screened_only ? Verdict::undecided : line.decision;
        if (line.best_native != native_default) {
            point.than = "its " + without(line.best_native, "native ");
            point.decided_by = line.against_best;
        }
        points.push_back(std::move(point));
    }
}

void add_short_calls(const std::vector<Row>& rows, std::vector<GlancePoint>& points) {
    for (const SmallLine& line : summarize_small(rows)) {
        if (line.native_ns <= 0) continue;
        const double ratio = line.ours_ns / line.native_ns;
        points.push_back({"MPI_Bcast inside a host, short calls",
                          its_default,
                          line.mpi,
                          line.shape,
                          bytes_text(line.bytes),
                          Ratio{ratio, {ratio, ratio}},
                          0,
                          line.decision,
                          "",
                          {}});
    }
}

void add_nonblocking(const std::vector<Row>& rows, std::vector<GlancePoint>& points) {
    const std::vector<OverlapLine> lines = summarize_overlap(rows);
    const auto add = [&](const std::string& suffix, const std::string& compared,
                         const Ratio& (*ratio)(const OverlapLine&), bool limited) {
        for (const OverlapLine& line : lines) {
            if (line.column != automatic || !line.stopped.empty() || ratio(line).value <= 0) continue;
            points.push_back({capital(line.collective) + suffix,
                              compared,
                              line.mpi,
                              line.shape,
                              bytes_text(line.bytes),
                              ratio(line),
                              limited ? line.of_limit() : 0,
                              verdict(ratio(line)),
                              "",
                              {}});
        }
    };
    add(
        ", computing meanwhile", "the same calls",
        [](const OverlapLine& line) -> const Ratio& { return line.of_native; }, false);
    add(
        ", waited for at once", "its fastest blocking form",
        [](const OverlapLine& line) -> const Ratio& { return line.of_blocking; }, true);
}

std::string subject(const ExchangeLine& line) { return line.pattern + " " + bytes_text(line.bytes); }
std::string subject(const HaloLine& line) {
    const HaloGrid& grid = line.grid;
    return extents_text(grid.ranks) + " ranks of " + extents_text(grid.cells) + " cells" +
           (grid.corners ? fmt::format(", {} points", grid.points()) : "") + (grid.upwind ? ", upwind" : "");
}

// The points of one column of exchanges or halos.
template <class Line>
void add_column(const std::vector<Line>& lines, std::string_view column, const char* operation,
                const char* beside, std::vector<GlancePoint>& points, Ratio Line::*ratio = &Line::of_native) {
    for (const Line& line : lines) {
        if (line.column != column || !line.stopped.empty() || (line.*ratio).value <= 0) continue;
        points.push_back({operation,
                          beside,
                          line.mpi,
                          line.shape,
                          subject(line),
                          line.*ratio,
                          line.of_limit(),
                          verdict(line.*ratio),
                          "",
                          {}});
    }
}

void add_exchanges(const std::vector<Row>& rows, std::vector<GlancePoint>& points) {
    const std::vector<ExchangeLine> lines = summarize_exchange(rows);
    const char* const beside = "its MPI_Alltoallv";
    add_column(lines, automatic, "MPI_Alltoallv, repeated", beside, points);
    add_column(lines, automatic_plan, "MPI_Alltoallv_init, started again and again", "its MPI_Alltoallv_init",
               points, &ExchangeLine::of_plan);
    add_column(lines, automatic_plan, "MPI_Alltoallv_init, in the place of repeated calls", beside, points);
}

void add_halos(const std::vector<Row>& rows, std::vector<GlancePoint>& points) {
    const std::vector<HaloLine> lines = summarize_halo(rows);
    const char* const beside = "its MPI_Neighbor_alltoallw";
    add_column(lines, automatic, "MPI_Neighbor_alltoallw, repeated", beside, points);
    add_column(lines, automatic_plan, "MPI_Neighbor_alltoallw_init, started again and again",
               "its MPI_Neighbor_alltoallw_init", points, &HaloLine::of_plan);
    add_column(lines, automatic_plan, "MPI_Neighbor_alltoallw_init, in the place of repeated calls", beside,
               points);
    add_column(lines, halo_nonblocking, "MPI_Ineighbor_alltoallw, waited for at once",
               "its MPI_Ineighbor_alltoallw", points, &HaloLine::of_nonblocking);
    add_column(lines, halo_nonblocking, "MPI_Ineighbor_alltoallw, in the place of one that blocks", beside,
               points);
}

void add_applications(const std::vector<Row>& rows, std::vector<GlancePoint>& points) {
    const std::vector<AppLine> lines = summarize_apps(rows);
    const auto add = [&](const char* suffix, bool nonblocking) {
        for (const AppLine& line : lines)
            for (const VersionRatio& version : version_ratios(line)) {
                if ((version.version == "nonblocking") != nonblocking) continue;
                points.push_back({app_name(line.app) + suffix,
                                  "the same program",
                                  line.mpi,
                                  line.shape,
                                  version.version,
                                  version.ratio,
                                  0,
                                  verdict(version.ratio),
                                  "",
                                  {}});
            }
    };
    add(" that computes meanwhile", true);
    add(", written otherwise", false);
}

void add_refined_mesh(const std::vector<Row>& rows, std::vector<GlancePoint>& points) {
    const std::vector<AmrLine> lines = summarize_amr(rows);
    const auto add = [&](const AmrLine& line, const char* operation, const char* beside,
                         const AmrVersion& version, const Ratio& ratio) {
        if (ratio.value > 0)
            points.push_back({operation,
                              beside,
                              line.mpi,
                              line.shape,
                              amr_faces_text(line) + " faces, " + version.name,
                              ratio,
                              outcome(line, version).of_limit,
                              verdict(ratio),
                              "",
                              {}});
    };
    for (const AmrLine& line : lines)
        if (const AmrVersion* ours = fastest_of_ours(line); ours != nullptr)
            add(line, "refined mesh, its neighbourhoods", "its fastest MPI_Isend and MPI_Irecv", *ours,
                outcome(line, *ours).of_sends);
    for (const AmrLine& line : lines)
        for (const AmrVersion& version : line.versions)
            if (!version.ours.empty() && !version.native.empty())
                add(line, "refined mesh, written in each way", "the same program", version,
                    ratio_of_medians(version.ours, version.native));
}

std::string gain_text(const std::vector<const GlancePoint*>& points) {
    if (points.empty()) return "-";
    std::vector<double> gains;
    for (const GlancePoint* point : points) gains.push_back(1 / point->ratio.value);
    const auto [least, most] = std::minmax_element(gains.begin(), gains.end());
    if (gains.size() == 1) return fmt::format("{:.2f}", gains[0]);
    return fmt::format("**{:.2f}** ({:.2f} to {:.2f})", geometric_mean(gains), *least, *most);
}

// Points by operation, in the order of the first of each.
using Group = std::pair<std::string, std::vector<const GlancePoint*>>;
std::vector<Group> by_operation(const std::vector<GlancePoint>& points) {
    std::vector<Group> groups;
    for (const GlancePoint& point : points) {
        auto found = std::find_if(groups.begin(), groups.end(),
                                  [&](const Group& group) { return group.first == point.operation; });
        if (found == groups.end()) found = groups.insert(groups.end(), Group{point.operation, {}});
        found->second.push_back(&point);
    }
    return groups;
}

std::vector<const GlancePoint*> under(const Group& group, std::string_view mpi) {
    std::vector<const GlancePoint*> own;
    for (const GlancePoint* point : group.second)
        if (point->mpi == mpi) own.push_back(point);
    return own;
}

std::vector<std::string> heading_with_libraries(std::vector<std::string> before,
                                                const std::vector<std::string>& after) {
    for (const Library& library : libraries) before.emplace_back(library.text);
    before.insert(before.end(), after.begin(), after.end());
    return before;
}

std::string gains_table(const std::vector<Group>& groups) {
    std::vector<std::vector<std::string>> cells{heading_with_libraries(
        {"operation", "beside"}, {"time/limit", "points", "not slower", "slower", "undecided"})};
    for (const Group& group : groups) {
        std::vector<std::string> row{group.first, group.second.front()->compared};
        for (const Library& library : libraries) row.push_back(gain_text(under(group, library.name)));
        std::vector<double> limits;
        int counts[3] = {};
        for (const GlancePoint* point : group.second) {
            if (point->of_limit > 0) limits.push_back(point->of_limit);
            ++counts[static_cast<int>(point->decision)];
        }
        row.push_back(limits.empty() ? "-"
                                     : fmt::format("{:.2f}, worst {:.2f}", median(limits),
                                                   *std::max_element(limits.begin(), limits.end())));
        row.push_back(fmt::format("{}", group.second.size()));
        for (const Verdict each : {Verdict::not_slower, Verdict::slower, Verdict::undecided})
            row.push_back(fmt::format("{}", counts[static_cast<int>(each)]));
        cells.push_back(std::move(row));
    }
    return format_cells(cells, true);
}

// Empty where nothing is.
std::string slower_table(const std::vector<GlancePoint>& points) {
    using Key = std::tuple<std::string, std::string, std::string>;
    std::vector<std::pair<Key, std::string>> lists;
    for (const GlancePoint& point : points) {
        if (point.decision == Verdict::not_slower) continue;
        const Key key(point.operation, library_text(point.mpi), point.shape);
        auto found =
            std::find_if(lists.begin(), lists.end(), [&](const auto& list) { return list.first == key; });
        if (found == lists.end()) found = lists.insert(lists.end(), {key, ""});
        const Ratio& ratio = point.than.empty() ? point.ratio : point.decided_by;
        found->second += fmt::format("{}{}: {:.3f}{}{}", found->second.empty() ? "" : "; ", point.where,
                                     ratio.value, point.than.empty() ? "" : " of " + point.than,
                                     point.decision == Verdict::undecided ? " (undecided)" : "");
    }
    if (lists.empty()) return "";
    std::vector<std::vector<std::string>> cells{{"operation", "MPI", "hosts x ranks", "Thalweg / native"}};
    for (const auto& [key, list] : lists)
        cells.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), list});
    return format_cells(cells, true);
}

std::string places_table(const std::vector<Group>& groups) {
    std::vector<std::vector<std::string>> cells{heading_with_libraries({"operation"}, {})};
    for (const Group& group : groups) {
        std::vector<std::string> row{group.first};
        for (const Library& library : libraries) {
            std::map<std::string, int> shapes;
            for (const GlancePoint* point : under(group, library.name)) ++shapes[point->shape];
            std::string text;
            for (const auto& [shape, count] : shapes)
                text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", shape, count);
            row.push_back(text.empty() ? "**not measured**" : text);
        }
        cells.push_back(std::move(row));
    }
    return format_cells(cells, true);
}

constexpr const char* not_exercised_text =
    R"(- **Real networks**: InfiniBand, Omni-Path, Slingshot, RoCE, whatever has hardware of its own. All that crosses
  hosts here is TCP over links of one machine, shaped to {}; their latency is that machine's.
- **Size**: more than {} hosts or {} ranks. [Simulations](simulation.md) say what the same schedules do on larger
  machines.
- **Libucp over InfiniBand**: how it was chosen and asked is tested over TCP and inside a host; over verbs nothing ran.
- **Other libraries**: Cray MPICH and MVAPICH, which have MPICH's binary interface.
- **Fortran**: the module of Intel MPI's `mpi_f08`, which needs Intel's compiler; a program in C calls its procedures as
  that does. Over the standard ABI of MPI 5 (`libmpifort_abi`) Fortran is passed by, not accelerated. Plans asked for in
  Fortran under Open MPI: Debian's 4.1 has no persistent collectives, and the wheel of 5.0 no Fortran.
- **Memory of GPUs**: tests copy it by CUDA's driver (run on one GPU that up to four ranks share) and by stand-ins, and
  nothing here was measured with it.
- **Siblings**: an agent on the second hardware thread of a core. The cores here show one thread each, so that rows with
  `agent=sibling` are of an agent that sleeps where its rank runs.
)";

// What no row can be about, with the figures that the rows have.
std::string not_exercised(const std::vector<Row>& rows) {
    int ranks = 0, hosts = 0;
    std::set<std::string> rates;
    for (const Row& row : rows) {
        ranks = std::max(ranks, row.context.value("ranks", 0));
        hosts = std::max(hosts, row.context.value("hosts", 0));
        if (const std::string rate = row.context.value("rate", ""); !rate.empty()) rates.insert(rate);
    }
    std::string rate_list;
    for (const std::string& rate : rates) rate_list += (rate_list.empty() ? "" : ", ") + rate;
    std::string text =
        fmt::format(not_exercised_text, rate_list.empty() ? "no rate" : rate_list, hosts, ranks);
    if (const std::string ways = ways_not_exercised(rows); !ways.empty())
        text += "- **Ways to sleep**: " + ways + ".\n";
    return text;
}

constexpr const char* glance_text = R"(
## At a glance

How many times as fast a call is with Thalweg as with the MPI alone, both in turns in one launch: **the geometric
mean** over all points, and in brackets the least and the most of any; `-`: not measured. *beside* says what it is
compared with. *time/limit*: Thalweg's time over what the wire (or memory, or the cores) needs at least, the median
and the worst. *not slower*, *slower*, *undecided*: as [below](#how-to-read-the-tables). Broadcasts, allgathers and
allreduces that block are judged by the best of all that the MPI can be told to use, everything else by what *beside*
names. All allreduces are of 64-bit integers: of doubles, nonblocking ones and blocking ones below 1 MiB are declined by
default ([decision 55](decisions/0055-sums-keep-their-bits.md)).

)";

constexpr const char* slower_text = R"(
### Where it is slower

Every point that is slower, or undecided: Thalweg's time over that of what it was judged by.

)";

constexpr const char* places_text = R"(
### What was measured where

Shapes as hosts x ranks per host, and in brackets the number of points.

)";

}  // namespace

std::vector<GlancePoint> glance(const std::vector<Row>& rows) {
    std::vector<GlancePoint> points;
    add_collectives(rows, points);
    add_short_calls(rows, points);
    add_nonblocking(rows, points);
    add_exchanges(rows, points);
    add_halos(rows, points);
    add_applications(rows, points);
    add_refined_mesh(rows, points);
    return points;
}

std::string glance_section(const std::vector<Row>& rows) {
    const std::vector<GlancePoint> points = glance(rows);
    if (points.empty()) return "";
    const std::vector<Group> groups = by_operation(points);
    std::string text = glance_text + gains_table(groups);
    if (const std::string slower = slower_table(points); !slower.empty()) text += slower_text + slower;
    return text + places_text + places_table(groups) + "\n### What was not exercised\n\n" +
           not_exercised(rows);
}

}  // namespace thalweg::bench
