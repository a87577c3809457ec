#include "sim/app_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/text.h"
#include "schedule/receipts.h"
#include "select/exchanges.h"
#include "select/neighbours.h"
#include "select/select.h"
#include "sim/apps.h"
#include "sim/json_line.h"
#include "sim/mapping.h"
#include "sim/natives.h"
#include "sim/rows.h"
#include "sim/variants.h"

namespace thalweg::sim {
namespace {

struct Kind {
    bool native;
    Calls calls;
    const char* name;
};
constexpr Kind kinds[app_columns] = {{true, Calls::blocking, "native, blocking"},
                                     {true, Calls::started, "native, started"},
                                     {false, Calls::blocking, "thalweg, blocking"},
                                     {false, Calls::started, "thalweg, started"},
                                     {false, Calls::agent, "thalweg, agent"}};

const char* name_of(const AppRow& row) {
    for (const Kind& kind : kinds)
        if (kind.native == row.native && kind.calls == row.calls) return kind.name;
    return "";
}

// What Thalweg would run. Exchanges of faces are plans of which all ranks know the largest message. Short
// sums of floating-point numbers, and all that do not block, keep the library's order (THALWEG_FLOAT_ORDER).
Decision decision_of(const Request& request, const Call& call, const Topology& topology, const AppRow& row) {
    if (call.rounds) return {std::nullopt, "the library's order"};
    const Selection selection =
        selection_of(request, call.collective, topology, row.calls != Calls::blocking);
    if (!call.faces) return decide(call.collective, call.bytes, topology, selection);
    const int ranks = topology.size();
    Decision decision =
        NeighbourSelector(topology, selection).decide(largest_face(call, ranks, request.seed));
    settle_neighbours(decision, traits_of_faces(call, topology, request.seed), topology);
    return decision;
}

struct ChosenCall {
    Choice choice;
    bool native = false;    // what the library does by default
    bool in_pairs = false;  // neighbours, where it is ours
};

struct Chosen {
    std::vector<ChosenCall> of_call;
    std::string text, why;
};

Chosen choices_of(const Request& request, const App& app, const Topology& topology, const AppRow& row) {
    Chosen chosen;
    std::vector<std::string> texts;
    for (const Call& call : app.calls) {
        const Decision decision = row.native ? Decision{} : decision_of(request, call, topology, row);
        const std::string text = decision.choice ? to_text(*decision.choice)
                                 : call.faces
                                     ? std::string(native_faces)
                                     : native_choice(request.family, call.collective, call.bytes, topology);
        Choice choice;
        if (text.empty() || failed(parse_choice(call.collective, text, choice, chosen.why))) {
            if (chosen.why.empty()) chosen.why = "no model of a native operation";
            return chosen;
        }
        Problem problem;
        problem.size = topology.size();
        problem.bytes = call.bytes;
        if (const std::string_view refused = refuse(choice, problem, topology); !refused.empty()) {
            chosen.why = text + " cannot run: " + std::string(refused);
            return chosen;
        }
        Decision ours{choice, "asked for"};
        const bool in_pairs =
            call.faces && settle_neighbours(ours, traits_of_faces(call, topology, request.seed), topology);
        chosen.of_call.push_back({std::move(choice), !decision.choice, in_pairs});
        // One may be the beginning of another: "spread" and "spread:in_flight=0".
        if (std::find(texts.begin(), texts.end(), text) != texts.end()) continue;
        chosen.text += (chosen.text.empty() ? "" : "; ") + text;
        texts.push_back(text);
    }
    return chosen;
}

// One rank's schedule and program of all iterations.
Schedule write_rank(const Request& request, const App& app, const std::vector<ChosenCall>& chosen, int rank,
                    const Topology& topology, Calls calls, bool receipts, Program& program) {
    Succession row;
    std::vector<std::pair<StepId, StepId>> steps(app.calls.size());
    for (unsigned iteration = 0; iteration < request.repeat; ++iteration)
        for (const Phase& phase : app.phases) {
            auto& [begin, end] = steps[phase.call];
            if (phase.kind == ActKind::start) {
                const Call& call = app.calls[phase.call];
                Problem problem;
                problem.rank = rank;
                problem.size = topology.size();
                problem.bytes = call.bytes;
                Exchange faces;
                if (call.faces) {
                    faces = faces_of_call(call, rank, topology.size(), request.seed);
                    if (!chosen[phase.call].native) as_planned(chosen[phase.call].in_pairs, faces);
                    problem.exchange = &faces;
                }
                Schedule made = build(chosen[phase.call].choice, problem, topology);
                if (chosen[phase.call].native) {
                    const std::string text = to_text(chosen[phase.call].choice);
                    made = posted(made, native_posting(request.family, text, call.faces));
                    if (calls == Calls::blocking && !call.faces &&
                        native_in_turn(request.family, call.collective))
                        made = in_turn(made);
                }
                const bool ours = !chosen[phase.call].native;
                std::tie(begin, end) = row.append(receipts && ours ? with_receipts(made) : made);
            }
            if (phase.kind != ActKind::wait || calls != Calls::blocking)
                program.push_back({phase.kind, begin, end, phase.seconds, chosen[phase.call].native});
            if (phase.kind == ActKind::start && calls == Calls::blocking)
                program.push_back({ActKind::wait, begin, end, 0});
        }
    return std::move(row).finish(rank, topology.size());
}

void run_row(const Request& request, const Topology& topology, AppRow& row) {
    const int per_host = topology.max_ranks_per_node();
    const SimMachine library = request.machine.under(request.family);
    SimMachine machine = library;
    const double sweep = request.sweep_rate > 0
                             ? request.sweep_rate
                             : std::min(machine.copy_rate, machine.host_copy_rate / per_host);
    const App app = make_app(request.app, row.ranks, row.bytes, sweep);
    row.compute_seconds = app.compute_seconds();
    if (row.compute_seconds * request.repeat >= longest_seconds) {
        row.result.outcome.why =
            "it computes for longer than 53 days, of which no message is told apart: ask for a higher "
            "--sweep "
            "or for fewer bytes";
        return;
    }
    const Chosen chosen = choices_of(request, app, topology, row);
    row.algorithms = chosen.text;
    if (!chosen.why.empty()) {
        row.result.outcome.why = chosen.why;
        return;
    }
    // Where some of the program's calls are ours, the messages of what is left to the library take of a core,
    // and ask, as the library's do, and have no credits. But a replay has one way for copies and one for who
    // advances them, and connections are those of both.
    const auto left = [](const ChosenCall& call) { return call.native; };
    const bool all_left = std::all_of(chosen.of_call.begin(), chosen.of_call.end(), left);
    if (!all_left) machine = request.libucp ? machine.over_libucp() : machine.over_library();
    row.result = in_child(request.most_seconds, request.most_memory, [&] {
        ReplayOptions options;
        options.progress = row.calls == Calls::agent && !all_left ? Progress::agent : Progress::caller;
        if (all_left) options.copies = native_model(request.family)->copies;
        options.credits = !all_left;
        options.library = library;
        std::vector<Schedule> schedules;
        std::vector<Program> programs(static_cast<std::size_t>(row.ranks));
        for (int rank = 0; rank < row.ranks; ++rank)
            schedules.push_back(write_rank(request, app, chosen.of_call, rank, topology, row.calls,
                                           machine.adds_receipts(options.credits),
                                           programs[static_cast<std::size_t>(rank)]));
        options.trace_path = request.trace_path;
        PointResult result;
        result.outcome = replay(schedules, programs, topology, machine, options);
        return result;
    });
    if (row.result.outcome.why.empty()) row.seconds = row.result.outcome.seconds / request.repeat;
}

// The native blocking run of the same point, the first of its rows.
const AppRow& baseline(const std::vector<AppRow>& rows, const AppRow& row) {
    return *std::find_if(rows.begin(), rows.end(), [&](const AppRow& other) {
        return other.ranks == row.ranks && other.bytes == row.bytes;
    });
}

}  // namespace

std::vector<AppRow> answer_app(const Request& request, const std::function<void(const std::string&)>& told,
                               std::string& why) {
    std::vector<AppRow> rows;
    for (const int ranks : request.ranks) {
        Topology topology;
        if (failed(map_ranks(request.mapping, ranks, request.per_host, request.machine.hosts, request.seed,
                             topology, why)))
            return {};
        for (const std::uint64_t bytes : request.bytes)
            for (const Kind& kind : kinds) {
                AppRow& row = rows.emplace_back();
                row.native = kind.native;
                row.calls = kind.calls;
                row.ranks = ranks;
                row.hosts = topology.nodes();
                row.bytes = bytes;
                told(fmt::format("{} ranks, {} bytes, {}", ranks, bytes_text(bytes), kind.name));
                if (ranks > 1)
                    run_row(request, topology, row);
                else
                    row.result.outcome.why = alone;
            }
    }
    return rows;
}

std::string json_line(const Request& request, const AppRow& row) {
    const Outcome& outcome = row.result.outcome;
    nlohmann::ordered_json line = {{"repeat", request.repeat},
                                   {"family", request.family},
                                   {"column", name_of(row)},
                                   {"algorithms", row.algorithms},
                                   {"simulated", outcome.why.empty()},
                                   {"seconds", row.seconds},
                                   {"compute_seconds", row.compute_seconds}};
    if (outcome.why.empty()) {
        line["messages"] = outcome.messages;
        line["sent_bytes"] = outcome.bytes;
    } else {
        line["reason"] = outcome.why;
    }
    return json_line(request, {"app", request.app, row.ranks, row.hosts, row.bytes}, line);
}

void print_table(const Request& request, const std::vector<AppRow>& rows) {
    fmt::print("{} on {}: {}\n", request.app, request.machine.name, request.machine.text);
    fmt::print("{} mapping, {} ranks per host, native: {}; simulated, not measured\n\n", request.mapping,
               request.per_host, request.family);
    fmt::print("{:>8}{:>7}{:>8}  {:<18}{:>12}{:>12}{:>12}{:>9}{:>9}  {}\n", "ranks", "hosts", "bytes",
               "calls", "iteration", "computes", "waits", "hidden", "saved", "algorithms");
    for (const AppRow& row : rows) {
        const AppRow& first = baseline(rows, row);
        const double visible = row.seconds - row.compute_seconds;
        const double all = first.seconds - first.compute_seconds;
        const auto percent = [&](double part, double whole) {
            return row.seconds > 0 && whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole)
                                                : std::string("-");
        };
        fmt::print("{:>8}{:>7}{:>8}  {:<18}{:>12}{:>12}{:>12}{:>9}{:>9}  {}\n", row.ranks, row.hosts,
                   bytes_text(row.bytes), name_of(row), duration_text(row.seconds),
                   duration_text(row.compute_seconds), duration_text(row.seconds > 0 ? visible : 0),
                   percent(all - visible, all), percent(first.seconds - row.seconds, first.seconds),
                   row.result.outcome.why.empty() ? row.algorithms : row.result.outcome.why);
    }
    fmt::print(
        "\n  waits: an iteration less its computation. hidden, saved: of the first row's waiting, and of its "
        "iteration.\n");
}

}  // namespace thalweg::sim
