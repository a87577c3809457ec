#include "sim/windows.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "sim/json_line.h"
#include "sim/mapping.h"
#include "sim/natives.h"
#include "sim/point.h"
#include "sim/rows.h"

namespace thalweg::sim {
namespace {

// Simulates one part; 0 where it cannot be, and `why` says what is missing.
double seconds_of(const Request& request, const Topology& topology, Collective collective,
                  const std::string& text, std::uint64_t bytes, Posting posting, std::string& why) {
    Point point;
    if (!why.empty() || failed(parse_choice(collective, text, point.choice, why))) return 0;
    point.bytes = bytes;
    point.options.copies = native_model(request.family)->copies;
    point.posting = posting;
    point.most_seconds = request.most_seconds;
    point.most_memory = request.most_memory;
    const PointResult result = simulate(point, topology, request.machine.under(request.family));
    why = result.outcome.why;
    return result.outcome.seconds;
}

void run_row(const Request& request, const Topology& topology, WindowsRow& row) {
    constexpr double barriers = 3;
    constexpr std::uint64_t key_bytes = 64;  // an address and a key, as libraries pack them
    const auto ranks = static_cast<std::uint64_t>(row.ranks);
    const SimMachine& machine = request.machine;
    const auto part = [&](Collective collective, const std::string& text, std::uint64_t bytes) {
        return seconds_of(request, topology, collective, text, bytes, Posting::as_built, row.why);
    };
    // As a column of that name.
    const std::string native = native_choice(request.family, Collective::alltoallv, row.bytes, topology);
    row.alltoallv = seconds_of(request, topology, Collective::alltoallv, native, row.bytes,
                               native_posting(request.family, native, false), row.why);
    row.messages = part(Collective::alltoallv, "spread:in_flight=0", row.bytes);
    row.synchronised = barriers * part(Collective::barrier, "dissemination", 0);
    // A Bruck alltoall of four bytes sends 2 p bytes in each of its rounds: as many as this reduction does.
    row.agreed = part(Collective::allreduce, "recursive_doubling", 2 * ranks) +
                 part(Collective::allreduce, "recursive_doubling", 4) +
                 part(Collective::allgather, "bruck", key_bytes);
    if (machine.register_rate > 0)
        row.registered =
            2 * (machine.register_seconds + static_cast<double>(ranks * row.bytes) / machine.register_rate);
    row.registered_in_turn = row.registered * topology.max_ranks_per_node();
}

}  // namespace

std::vector<WindowsRow> answer_windows(const Request& request,
                                       const std::function<void(const std::string&)>& told,
                                       std::string& why) {
    std::vector<WindowsRow> rows;
    for (const int ranks : request.ranks) {
        Topology topology;
        if (failed(map_ranks(request.mapping, ranks, request.per_host, request.machine.hosts, request.seed,
                             topology, why)))
            return {};
        for (const std::uint64_t bytes : request.bytes) {
            WindowsRow& row = rows.emplace_back();
            row.ranks = ranks;
            row.hosts = topology.nodes();
            row.bytes = bytes;
            told(fmt::format("{} ranks, {} bytes", ranks, bytes_text(bytes)));
            if (ranks > 1)
                run_row(request, topology, row);
            else
                row.why = alone;
        }
    }
    return rows;
}

std::string json_line(const Request& request, const WindowsRow& row) {
    return json_line(request, {"collective", "alltoallv", row.ranks, row.hosts, row.bytes},
                     {{"family", request.family},
                      {"simulated", row.why.empty()},
                      {"reason", row.why},
                      {"messages_seconds", row.messages},
                      {"synchronised_seconds", row.synchronised},
                      {"agreed_seconds", row.agreed},
                      {"registered_seconds", row.registered},
                      {"registered_in_turn_seconds", row.registered_in_turn},
                      {"per_call_seconds", row.per_call()},
                      {"per_plan_seconds", row.per_plan()},
                      {"alltoallv_seconds", row.alltoallv}});
}

void print_table(const Request& request, const std::vector<WindowsRow>& rows) {
    fmt::print("alltoallv by puts on {}: {}\n", request.machine.name, request.machine.text);
    fmt::print("{} mapping, {} ranks per host, native: {}; simulated, not measured\n\n", request.mapping,
               request.per_host, request.family);
    fmt::print("{:>8}{:>7}{:>8}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>14}{:>12}\n", "ranks", "hosts",
               "bytes", "messages", "fences", "agreed", "registered", "in turn", "per call", "per plan",
               "saved", "native");
    for (const WindowsRow& row : rows) {
        if (!row.why.empty()) {
            fmt::print("{:>8}{:>7}{:>8}  {}\n", row.ranks, row.hosts, bytes_text(row.bytes), row.why);
            continue;
        }
        const auto saved = [&](double registered) {
            const double per_call = row.per_plan() + row.agreed + registered;
            return per_call > 0 ? 100 * (1 - row.per_plan() / per_call) : 0;
        };
        fmt::print("{:>8}{:>7}{:>8}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>14}{:>12}\n", row.ranks,
                   row.hosts, bytes_text(row.bytes), duration_text(row.messages),
                   duration_text(row.synchronised), duration_text(row.agreed), duration_text(row.registered),
                   duration_text(row.registered_in_turn), duration_text(row.per_call()),
                   duration_text(row.per_plan()),
                   fmt::format("{:.0f} to {:.0f} %", saved(row.registered), saved(row.registered_in_turn)),
                   duration_text(row.alltoallv));
    }
    fmt::print(
        "\n  agreed and registered: what a window takes that is made and freed, in every call or once per "
        "plan.\n  in turn: registered, if a host's kernel serves one process after another; saved: from the "
        "one "
        "to the other.\n");
}

}  // namespace thalweg::sim
