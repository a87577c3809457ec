// thalweg explain COLLECTIVE --bytes 4M --topology "node:16 core:48": what each algorithm would cost there by
// the model, what would be chosen, and why. Runs nothing and needs no MPI.
#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "algorithms/algorithm.h"
#include "algorithms/option_check.h"
#include "base/text.h"
#include "explain_alltoallv.h"
#include "explain_halo.h"
#include "explain_range.h"
#include "select/select.h"
#include "select/sleeps.h"
#include "topology/topology.h"
#include "verb.h"

namespace thalweg::tool {

namespace {

constexpr double picoseconds_per_second = 1e12;

std::string time_text(Picoseconds duration) {
    const double microseconds = static_cast<double>(duration) * 1e-6;
    if (microseconds < 1000) return fmt::format("{:.2f} us", microseconds);
    if (microseconds < 1e6) return fmt::format("{:.2f} ms", microseconds * 1e-3);
    return fmt::format("{:.2f} s", microseconds * 1e-6);
}

nlohmann::json to_json(const Candidate& candidate) {
    nlohmann::json row = {{"algorithm", to_text(candidate.choice)}, {"chosen", candidate.chosen}};
    if (!candidate.refused.empty()) {
        row["refused"] = candidate.refused;
        return row;
    }
    row["predicted_seconds"] = static_cast<double>(candidate.predicted) / picoseconds_per_second;
    if (candidate.evaluated)
        row["evaluated_seconds"] = static_cast<double>(*candidate.evaluated) / picoseconds_per_second;
    if (!candidate.claim) return row;
    row["rounds"] = candidate.claim->rounds;
    row["messages"] = candidate.claim->messages + candidate.claim->signals;
    row["bytes"] = candidate.claim->bytes;
    row["redundant_bytes"] = candidate.claim->redundant_bytes;
    return row;
}

std::string rounded_bytes(std::uint64_t bytes) {
    static constexpr const char* units[] = {"", "K", "M", "G", "T", "P"};
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
    return fmt::format("{:.4g}{}", value, units[unit]);
}

void print_table(const Explanation& explanation) {
    std::size_t width = 12;
    for (const Candidate& candidate : explanation.candidates)
        width = std::max(width, to_text(candidate.choice).size() + 3);
    fmt::print("{:<{}}{:>12}{:>12}{:>9}{:>9}{:>10}{:>9}\n", "  algorithm", width, "predicted", "evaluated",
               "/ limit", "rounds", "messages", "bytes");
    for (const Candidate& candidate : explanation.candidates) {
        const std::string name = (candidate.chosen ? "* " : "  ") + to_text(candidate.choice);
        if (!candidate.refused.empty()) {
            fmt::print("{:<{}}   cannot run here: {}\n", name, width, candidate.refused);
            continue;
        }
        const double limit = static_cast<double>(explanation.limit);
        fmt::print(
            "{:<{}}{:>12}{:>12}{:>9}{:>9}{:>10}{:>9}\n", name, width, time_text(candidate.predicted),
            candidate.evaluated ? time_text(*candidate.evaluated) : "-",
            limit > 0 ? fmt::format("{:.2f}", static_cast<double>(candidate.predicted) / limit) : "-",
            candidate.claim ? std::to_string(candidate.claim->rounds) : "-",
            candidate.claim ? std::to_string(candidate.claim->messages + candidate.claim->signals) : "-",
            candidate.claim ? rounded_bytes(candidate.claim->bytes) : "-");
    }
    fmt::print(
        "\n  predicted: by closed formulas, which decide; evaluated: by playing the schedules, where they "
        "are few.\n"
        "  limit: what must cross the busiest link, and one latency. rounds, messages, bytes: of all ranks "
        "together,\n  where counting them takes no more than a moment.\n");
}

// The value of an option as a flag of this verb, by the same rules as the environment variable.
std::optional<int> set_option(Settings& settings, const CLI::App& app, std::string_view variable,
                              const std::string& value) {
    if (app.count(flag_of(*find_option(variable))) == 0) return std::nullopt;
    std::string why;
    if (settings.set(variable, value, Origin::command_line, why, check_option) == Status::ok)
        return std::nullopt;
    return usage_error("explain", why);
}

std::optional<Collective> collective_of(std::string_view name) {
    for (int i = 0; i < collective_count; ++i)
        if (name_of(static_cast<Collective>(i)) == name) return static_cast<Collective>(i);
    return std::nullopt;
}

// The place of the word that names the operation, or argc. Options may stand before it, and all but a few
// have a value behind them.
int place_of_operation(int argc, char** argv) {
    constexpr std::string_view alone[] = {"--overlapped", "--periodic", "--json", "--help", "-h"};
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; ++at) {
        const std::string_view word = argv[at];
        const bool whole = word.find('=') != word.npos;
        if (!whole && std::find(std::begin(alone), std::end(alone), word) == std::end(alone)) ++at;
    }
    return std::min(at, argc);
}

int unknown_collective(const std::string& name) {
    std::string list;
    for (int i = 0; i < collective_count; ++i)
        list += std::string(name_of(static_cast<Collective>(i))) + ", ";
    return usage_error("explain", "there is no collective " + name + "; known: " + list + "halo");
}

}  // namespace

}  // namespace thalweg::tool

int explain_main(int argc, char** argv) {
    using namespace thalweg;
    using namespace thalweg::tool;
    // What is asked for decides which options there are: it goes to the front, wherever it stands.
    if (const int at = place_of_operation(argc, argv); at < argc)
        std::rotate(argv + 1, argv + at, argv + at + 1);
    // With a pattern it is about plans and their price; without, about algorithms like everything else.
    const auto given_word = [argc, argv](std::string_view word) {
        return std::any_of(argv, argv + argc,
                           [word](std::string_view each) { return each.substr(0, each.find('=')) == word; });
    };
    if (argc > 1 && std::string_view(argv[1]) == "alltoallv" &&
        (given_word("--pattern") || given_word("--help") || given_word("-h")))
        return explain_alltoallv(argc - 1, argv + 1);
    if (argc > 1 && std::string_view(argv[1]) == "halo") return explain_halo(argc - 1, argv + 1);
    CLI::App app{
        "thalweg explain COLLECTIVE --bytes N --topology TEXT [OPTIONS]\n"
        "What each algorithm would cost by the model, what would be chosen, and why.",
        "explain"};
    std::string collective_name, bytes, topology_text, family, forced, rate, latency, tuning;
    bool json = false, overlapped = false;
    std::uint64_t ports = 1;
    app.add_option(
           "collective", collective_name,
           "the operation: bcast, allgather, allreduce, barrier or alltoallv (which has --pattern, see\n"
           "`thalweg explain alltoallv --help`); or halo (see `thalweg explain halo --help`)")
        ->required();
    app.add_option("--bytes", bytes,
                   "size of the whole message (allgather: of one rank's block; allreduce: of the vector): " +
                       std::string(bytes_form) + "; not of barrier");
    app.add_option("--topology", topology_text,
                   "hosts and ranks per host: \"node:16 core:48\", \"node:3 core:1,2,4\", \"ranks:0,1,0,2\"")
        ->required();
    app.add_option("--mpi", family, "the native MPI: mpich, openmpi or impi (default: any)");
    app.add_option("--rate", rate,
                   "one link, one direction: " + std::string(rate_form) + " (default 12GB/s)");
    app.add_option("--latency-us", latency,
                   "one way between two hosts, microseconds (default 2; 30 for nonblocking operations and\n"
                   "alltoalls, for whose messages somebody has to wake up)");
    app.add_option("--algorithm,--bcast", forced, "explain this demand instead of the automatic choice");
    app.add_option("--ports", ports, "links that a host has to the others, each of that rate (default 1)")
        ->check(CLI::Range(1, 1024));
    app.add_flag("--overlapped", overlapped,
                 "a nonblocking operation that is advanced while the program computes");
    app.add_option("--tuning", tuning,
                   "tuning tables (a JSON file of one, or of a list) that take precedence");
    app.add_flag("--json", json, "print JSON");
    // A name that nobody knows is the mistake to tell, whatever else is missing.
    if (argc > 1 && argv[1][0] != '-' && !collective_of(argv[1])) return unknown_collective(argv[1]);
    if (const auto status = parse(app, argc, argv)) return *status;

    const std::optional<Collective> collective = collective_of(collective_name);
    if (!collective) return unknown_collective(collective_name);
    const bool sized = *collective != Collective::barrier;
    if (sized && app.count("--bytes") == 0)
        return usage_error("explain", "--bytes is missing: a size, such as --bytes 64K");
    if (!sized && !bytes.empty() && bytes != "0")
        return usage_error("explain", "--bytes is not of barrier: leave it out");
    const auto size = sized ? parse_bytes(bytes) : 0;
    if (!size)
        return usage_error("explain",
                           "--bytes " + bytes + " is not valid: expected " + std::string(bytes_form));
    Topology topology;
    std::string why;
    if (failed(Topology::from_text(topology_text, topology, why)))
        return usage_error("explain", "--topology: " + why);
    if (!family.empty() && family != "mpich" && family != "openmpi" && family != "impi")
        return usage_error("explain", "--mpi " + family + " is not valid: expected mpich, openmpi or impi");

    Settings settings;
    const std::pair<std::string_view, const std::string*> given[] = {{"THALWEG_RATE", &rate},
                                                                     {"THALWEG_LATENCY_US", &latency}};
    for (const auto& [variable, value] : given)
        if (const auto status = set_option(settings, app, variable, *value)) return *status;
    Selection selection;
    selection.machine = Machine::from_options(settings.latency_us, settings.rate);
    selection.family = family;
    selection.machine.inter.ports = ports;
    selection.overlapped = overlapped;
    selection.tries_model = true;  // what the network is like is known
    // As communicators have it (plan/communicator.cpp).
    if (settings.latency_us <= 0 && chosen_as_overlapped(*collective, topology, overlapped))
        count_sleep(selection.machine);
    if (why = beyond_the_model(*size, topology, selection.machine); !why.empty())
        return usage_error("explain", "--bytes " + bytes + ": " + why);
    if (!forced.empty() && forced != "auto" && forced != "native") {
        Choice choice;
        if (failed(parse_choice(*collective, forced, choice, why))) return usage_error("explain", why);
        selection.forced = choice;
    }
    if (!tuning.empty()) {
        std::ifstream file(tuning);
        file.peek();  // a folder can be opened, and not read
        std::stringstream content;
        content << file.rdbuf();
        if (!file) return usage_error("explain", "cannot read the tuning table " + tuning);
        selection.table = content.str();
        if (failed(check_table(selection.table, why))) return usage_error("explain", tuning + ": " + why);
    }

    Explanation explanation = explain(*collective, *size, topology, selection);
    if (forced == "native") {
        explanation.decision = {std::nullopt, "asked for"};
        for (Candidate& candidate : explanation.candidates) candidate.chosen = false;
    }
    const std::string chosen = explanation.decision.choice ? to_text(*explanation.decision.choice) : "native";
    if (json) {
        nlohmann::json all = {
            {"collective", collective_name},
            {"bytes", *size},
            {"topology", topology.to_text()},
            {"ranks", topology.size()},
            {"hosts", topology.nodes()},
            {"choice", chosen},
            {"reason", explanation.decision.reason},
            {"limit_seconds", static_cast<double>(explanation.limit) / picoseconds_per_second},
            {"candidates", nlohmann::json::array()}};
        for (const Candidate& candidate : explanation.candidates)
            all["candidates"].push_back(to_json(candidate));
        fmt::print("{}\n", all.dump(2));
        return exit_ok;
    }
    fmt::print("{} of {} bytes on {} ranks, {} hosts ({})\n", collective_name, bytes_text(*size),
               topology.size(), topology.nodes(), topology.to_text());
    fmt::print("link {} with {} between hosts; limit {}\n\n",
               rate_text(static_cast<double>(selection.machine.inter.bytes_per_second)),
               time_text(selection.machine.inter.latency), time_text(explanation.limit));
    print_table(explanation);
    fmt::print("\nchoice: {} ({})\n", chosen, explanation.decision.reason);
    return exit_ok;
}
