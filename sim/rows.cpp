#include "sim/rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "model/cost.h"
#include "select/exchanges.h"
#include "select/neighbours.h"
#include "select/pieces.h"
#include "select/select.h"
#include "select/sleeps.h"
#include "sim/json_line.h"
#include "sim/mapping.h"
#include "sim/natives.h"

namespace thalweg::sim {
namespace {

constexpr double picoseconds_per_second = 1e12;
constexpr const char* no_model = "no model of this native operation";

// Empty: there is no model of it.
std::string native_text(const Request& request, std::string_view family, std::uint64_t bytes,
                        const Topology& topology) {
    if (!request.halo) return native_choice(family, request.collective, bytes, topology);
    return std::string(native_model(family) != nullptr ? native_faces : std::string_view());
}

// Of a large broadcast, as its pieces are decided.
Decision decision_of(const Selector& selector, Collective collective, std::uint64_t bytes) {
    const Pieces pieces = collective == Collective::bcast ? pieces_of(bytes) : Pieces{bytes, 1};
    Decision decision = selector.decide(pieces.bytes);
    if (pieces.count > 1 && decision.choice)
        decision.reason +=
            fmt::format(", for each of {} pieces of up to {}", pieces.count, bytes_text(pieces.bytes));
    return decision;
}

// Of a plan of such an exchange.
Decision planned(const Selector& selector, const NeighbourSelector& neighbours, const Pattern& pattern,
                 const Topology& topology) {
    const bool sparse = is_sparse(pattern.traits, pattern.ranks);
    return decide_planned(selector.decide(deciding_bytes(pattern.traits, topology)), pattern.traits, selector,
                          sparse ? &neighbours : nullptr, topology)
        .decision;
}

Decision planned(const NeighbourSelector& neighbours, const Faces& faces, const Topology& topology) {
    Decision decision = neighbours.decide(faces.bytes);
    settle_neighbours(decision, faces.traits, topology);
    return decision;
}

// What a column runs: a text that parse_choice reads, or why nothing can. `decision`: what Thalweg would run,
// of the column "auto".
void choose(const Request& request, const Decision& decision, const Topology& topology, Row& row) {
    if (native_model(row.column) != nullptr) {
        row.family = row.column;
        row.algorithm = native_text(request, row.column, row.bytes, topology);
        row.reason = row.algorithm.empty() ? no_model : "the native default";
    } else if (row.column != "auto") {
        row.algorithm = row.column;
        row.reason = "asked for";
    } else if (decision.choice) {
        row.algorithm = to_text(*decision.choice);
        row.reason = decision.reason;
    } else {
        row.family = request.family;
        row.algorithm = native_text(request, row.family, row.bytes, topology);
        row.reason = "left to " + request.family + ": " + decision.reason;
        if (row.algorithm.empty()) row.reason += std::string("; ") + no_model;
    }
}

// Of a row that has been simulated by itself, in the history that `point` has.
void hide(Point point, const Topology& topology, const SimMachine& machine, Row& row) {
    point.options.trace_path.clear();
    // One operation goes on beside computation. Of several in a row each takes less time than one by itself.
    Outcome alone = row.result.outcome;
    if (std::exchange(point.repeat, 1) > 1) alone = simulate(point, topology, machine).outcome;
    // Each rank for as long as it was in the operation itself: a root may be done long before the others.
    point.options.compute_by_rank = alone.by_rank;
    const auto beside = [&](Progress progress) {
        point.options.progress = progress;
        return simulate(point, topology, machine).outcome;
    };
    const Outcome by_caller = beside(Progress::caller), by_agent = beside(Progress::agent);
    row.hidden = hidden_behind(alone.mean_seconds, by_caller, by_agent);
    if (!row.hidden)
        row.reason += "; beside computation it " + (by_caller.why.empty() ? by_agent.why : by_caller.why);
}

// The least of as many operations as were asked for, or the first that cannot be simulated. `point` ends with
// its history.
PointResult least_of(unsigned samples, std::uint64_t seed, Point& point, const Topology& topology,
                     const SimMachine& machine, std::vector<double>& seconds) {
    PointResult least;
    double least_own = 0;
    std::uint64_t history = 0;
    // Nothing else differs between samples.
    if ((!point.options.credits || !machine.kernel_sends()) && machine.shared_cores == 0) samples = 1;
    for (unsigned i = 1; i <= samples; ++i) {
        if (samples > 1) point.options.history = seed << 16 | i;
        PointResult one = simulate(point, topology, machine);
        if (samples < 2 || !one.outcome.why.empty()) return one;
        least_own = seconds.empty() ? one.outcome.own_seconds : std::min(least_own, one.outcome.own_seconds);
        if (seconds.empty() || one.outcome.seconds < least.outcome.seconds) {
            least = one;
            history = point.options.history;
        }
        seconds.insert(std::upper_bound(seconds.begin(), seconds.end(), one.outcome.seconds),
                       one.outcome.seconds);
    }
    point.options.history = history;
    least.outcome.own_seconds = least_own;
    return least;
}

// Who exchanges what, where pairs differ; one of them, or none.
struct Differing {
    std::optional<Faces> faces;
    std::shared_ptr<const Pattern> pattern;
};

void run_row(const Request& request, const Topology& topology, const Differing& differing, Row& row) {
    Choice choice;
    std::string why;
    if (row.algorithm.empty()) return;
    if (failed(parse_choice(request.collective, row.algorithm, choice, why))) {
        row.reason = why;
        return;
    }
    Problem problem;
    problem.size = topology.size();
    problem.bytes = row.bytes;
    if (const std::string_view refused = refuse(choice, problem, topology); !refused.empty()) {
        row.reason = "cannot run: " + std::string(refused);
        row.algorithm.clear();
        return;
    }
    // The model's alltoallv has all pairs alike.
    const Picoseconds predicted = differing.faces || differing.pattern
                                      ? Picoseconds{0}
                                      : predict(choice, problem, topology, request.machine.model());
    const bool counted = predicted < longest_counted;
    if (counted) row.predicted_seconds = static_cast<double>(predicted) / picoseconds_per_second;
    Point point;
    point.choice = choice;
    point.bytes = row.bytes;
    point.faces = differing.faces;
    point.pattern = differing.pattern;
    point.native = !row.family.empty();
    point.repeat = request.repeat;
    point.in_turn = request.in_turn || (!request.overlap && native_in_turn(row.family, request.collective));
    point.posting = native_posting(row.family, row.algorithm, request.halo);
    if (!row.family.empty()) point.options.copies = native_model(row.family)->copies;
    point.options.trace_path = request.trace_path;
    point.most_seconds = request.most_seconds;
    point.most_memory = request.most_memory;
    point.options.credits = row.family.empty() && !request.in_turn;  // blocking calls of an MPI have none
    SimMachine machine = request.machine.under(row.family.empty() ? request.family : row.family);
    if (row.family.empty()) machine = request.libucp ? machine.over_libucp() : machine.over_library();
    row.result = least_of(request.samples, request.seed, point, topology, machine, row.samples);
    row.simulated = row.result.outcome.why.empty();
    row.seconds = row.simulated ? row.result.outcome.seconds : row.predicted_seconds;
    if (!row.simulated) {
        row.reason = row.result.outcome.why;
        if (!row.result.given_up) row.seconds = 0;
        if (!counted) row.reason += "; longer than the cost model can count, 53 days";
    } else if (request.overlap) {
        hide(point, topology, machine, row);
    }
}

}  // namespace

std::optional<Hidden> hidden_behind(double alone, const Outcome& by_caller, const Outcome& by_agent) {
    if (!by_caller.why.empty() || !by_agent.why.empty()) return std::nullopt;
    const auto percent = [alone](double total) { return std::max(0.0, 100 - 100 * (total - alone) / alone); };
    return Hidden{percent(by_caller.mean_seconds), percent(by_agent.mean_seconds), by_caller.mean_seconds,
                  by_agent.mean_seconds};
}

Selection selection_of(const Request& request, Collective collective, const Topology& topology,
                       bool overlapped) {
    Selection selection;
    selection.machine = request.machine.model();
    selection.family = request.family;
    selection.table = request.table;
    selection.overlapped = chosen_as_overlapped(collective, topology, overlapped);
    const unsigned shared = request.machine.shared_cores;
    selection.sleeps = selection.overlapped || (shared > 0 && topology.size() > static_cast<int>(shared));
    if (selection.sleeps) count_sleep(selection.machine);
    // Of calls that take turns with the library's own, the schedule is shown.
    selection.tries_model = true;
    return selection;
}

std::string duration_text(double seconds) {
    if (seconds <= 0) return "-";
    if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
    if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
    return fmt::format("{:.3f} s", seconds);
}

std::vector<Row> answer(const Request& request, const std::function<void(const std::string&)>& told,
                        std::string& why) {
    std::vector<Row> rows;
    for (const int ranks : request.ranks) {
        Topology topology;
        if (failed(map_ranks(request.mapping, ranks, request.per_host, request.machine.hosts, request.seed,
                             topology, why)))
            return {};
        const Selection selection = selection_of(request, request.collective, topology, request.overlap);
        const Selector selector(request.collective, topology, selection);
        const NeighbourSelector neighbours(topology, selection);
        for (std::size_t size = 0; size < request.sizes(); ++size) {
            Differing differing;
            std::optional<Faces>& faces = differing.faces;
            if (request.halo && ranks > 1)
                if (why = request.read_faces(ranks, size, faces.emplace()); !why.empty()) return {};
            if (faces) look_at(*faces, topology);
            if (!request.pattern.empty() && ranks > 1) {
                const auto pattern = std::make_shared<Pattern>();
                if (why = request.read_pattern(ranks, size, *pattern); !why.empty()) return {};
                look_at(*pattern, topology);
                differing.pattern = pattern;
            }
            const std::uint64_t bytes = faces                   ? faces->bytes
                                        : request.cells.empty() ? request.bytes[size]
                                                                : 0;
            for (const std::string& column : request.columns) {
                Row& row = rows.emplace_back();
                row.column = column;
                row.ranks = ranks;
                row.hosts = topology.nodes();
                row.bytes = bytes;
                if (faces && !request.cells.empty()) row.grid = faces->grid;
                row.limit_seconds = static_cast<double>(wire_limit(request.collective, bytes, topology,
                                                                   request.machine.wire())) /
                                    picoseconds_per_second;
                row.pattern = request.pattern;
                if (faces) row.limit_seconds = halo_limit(topology, *faces, request.machine);
                if (differing.pattern)
                    row.limit_seconds = pattern_limit(topology, *differing.pattern, request.machine);
                if (ranks < 2) {
                    row.limit_seconds = 0;
                    row.reason = alone;
                } else {
                    Decision decision;
                    if (column == "auto" && differing.pattern)
                        decision = planned(selector, neighbours, *differing.pattern, topology);
                    else if (column == "auto")
                        decision = faces ? planned(neighbours, *faces, topology)
                                         : decision_of(selector, request.collective, bytes);
                    choose(request, decision, topology, row);
                }
                told(fmt::format("{} ranks, {} bytes, {}", ranks, bytes_text(bytes), column));
                run_row(request, topology, differing, row);
            }
        }
    }
    return rows;
}

std::string json_line(const Request& request, const Row& row) {
    const Outcome& outcome = row.result.outcome;
    nlohmann::ordered_json line = {{"repeat", request.repeat},
                                   {"in_turn", request.in_turn},
                                   {"column", row.column},
                                   {"algorithm", row.algorithm},
                                   {"reason", row.reason},
                                   {"simulated", row.simulated},
                                   {"seconds", row.seconds},
                                   {"limit_seconds", row.limit_seconds},
                                   {"predicted_seconds", row.predicted_seconds}};
    if (!row.pattern.empty()) line["pattern"] = row.pattern;
    if (row.grid)
        line["halo"] = {{"grid", row.grid->ranks},
                        {"cells", row.grid->cells},
                        {"points", row.grid->points()},
                        {"periodic", row.grid->periodic}};
    if (row.simulated) {
        if (!row.samples.empty()) line["samples"] = row.samples;
        line["own_seconds"] = outcome.own_seconds;
        line["mean_seconds"] = outcome.mean_seconds;
        line["root_seconds"] = outcome.root_seconds;
        line["messages"] = outcome.messages;
        line["sent_bytes"] = outcome.bytes;
        line["inter_bytes"] = outcome.inter_bytes;
        line["steps"] = outcome.steps;
    }
    if (row.hidden)
        line["overlap"] = {{"caller_percent", row.hidden->by_caller},
                           {"agent_percent", row.hidden->by_agent},
                           {"caller_seconds", row.hidden->total_by_caller},
                           {"agent_seconds", row.hidden->total_by_agent}};
    if (request.cost && row.simulated)
        line["cost"] = {{"build_seconds", row.result.build_seconds},
                        {"schedule_bytes", row.result.schedule_bytes},
                        {"replay_seconds", row.result.replay_seconds},
                        {"peak_bytes", row.result.peak_bytes}};
    return json_line(
        request,
        {"collective", request.halo ? "halo" : name_of(request.collective), row.ranks, row.hosts, row.bytes},
        line);
}

void print_table(const Request& request, const std::vector<Row>& rows) {
    fmt::print("{}{}{} on {}: {}\n", request.halo ? "halo" : name_of(request.collective),
               request.pattern.empty() ? "" : ", ", request.pattern, request.machine.name,
               request.machine.text);
    fmt::print("{} mapping, {} ranks per host{}; simulated, not measured\n\n", request.mapping,
               request.per_host, request.star ? ", joined by one switch instead" : "");
    std::size_t width = 10;
    for (const Row& row : rows) width = std::max(width, row.algorithm.size());
    fmt::print("{:>8}{:>7}{:>8}  {:<10}{:>11}{:>9}{:>9}{}  {:<{}}  {}\n", "ranks", "hosts", "bytes", "column",
               "time", "/ limit", "/ first",
               request.overlap ? fmt::format("{:>10}{:>9}", "hidden", "agent") : "", "algorithm", width,
               "why");
    const Row* first = nullptr;
    for (const Row& row : rows) {
        if (first == nullptr || first->ranks != row.ranks || first->bytes != row.bytes ||
            first->grid != row.grid) {
            first = &row;
            if (row.grid) fmt::print("{}\n", row.grid->text());
        }
        const auto ratio = [&](double to) {
            return row.seconds > 0 && to > 0 ? fmt::format("{:.2f}", row.seconds / to) : std::string("-");
        };
        std::string hidden;
        if (request.overlap)
            hidden = row.hidden
                         ? fmt::format("{:>8.0f} %{:>7.0f} %", row.hidden->by_caller, row.hidden->by_agent)
                         : fmt::format("{:>10}{:>9}", "-", "-");
        const bool given = row.column == row.algorithm;
        fmt::print("{:>8}{:>7}{:>8}  {:<10}{:>11}{:>9}{:>9}{}  {:<{}}  {}{}\n", row.ranks, row.hosts,
                   bytes_text(row.bytes), given ? "given" : row.column, duration_text(row.seconds),
                   ratio(row.limit_seconds), ratio(first->seconds), hidden, row.algorithm, width, row.reason,
                   !row.simulated && row.seconds > 0 ? "; the time is the cost model's" : "");
        if (request.cost && row.simulated)
            fmt::print(
                "{:>25}built in {:.2f} s ({:.1f} us and {} bytes a rank), replayed in {:.2f} s, {} MiB\n", "",
                row.result.build_seconds, row.result.build_seconds / row.ranks * 1e6,
                row.result.schedule_bytes / static_cast<std::uint64_t>(row.ranks), row.result.replay_seconds,
                row.result.peak_bytes >> 20);
    }
    fmt::print(
        "\n  limit: what must cross the busiest link, and one latency. first: the first column of its "
        "point.\n");
    if (request.overlap)
        fmt::print(
            "  hidden: behind computation that takes as long, advanced by the caller alone; agent: by a "
            "thread.\n");
}

}  // namespace thalweg::sim
