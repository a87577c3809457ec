// thalweg explain alltoallv --pattern: what an exchange would cost by each way, what a plan would cost, and
// after how many calls that would have paid. Runs nothing and needs no MPI.
#include "explain_alltoallv.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "algorithms/option_check.h"
#include "base/text.h"
#include "bench/table.h"
#include "common/number_within.h"
#include "common/patterns.h"
#include "explain_range.h"
#include "json_text.h"
#include "model/break_even.h"
#include "model/exchange.h"
#include "topology/topology.h"
#include "verb.h"

namespace thalweg::tool {
namespace {

constexpr int most_ranks = 4096;  // the matrix of all pairs is in memory
constexpr double seconds_per_picosecond = 1e-12;

double seconds(Picoseconds duration) { return static_cast<double>(duration) * seconds_per_picosecond; }

// "never" is null, because JSON knows no infinity.
nlohmann::json calls_json(double calls) {
    return std::isfinite(calls) ? nlohmann::json(calls) : nlohmann::json(nullptr);
}

// N* by what was seen; nothing where nothing was, or of a way that has no plan.
std::optional<double> seen_calls(const ExchangePrediction& each, const ExchangeSeen& seen) {
    const auto forecast = each.plan ? forecast_plan(each.name, seen) : std::nullopt;
    return forecast ? std::optional(forecast->calls) : std::nullopt;
}

void print_json(const std::string& pattern, std::uint64_t bytes, const Topology& topology, Picoseconds limit,
                const std::vector<ExchangePrediction>& all, const ExchangeSeen& seen) {
    nlohmann::json ways = nlohmann::json::array();
    for (const ExchangePrediction& each : all) {
        nlohmann::json way{{"way", each.name}, {"call_seconds", seconds(each.call)}, {"plan", each.plan}};
        if (each.plan) {
            way["init_seconds"] = seconds(each.init);
            way["calls_to_pay_native"] = calls_json(each.calls_native);
            way["calls_to_pay_window_per_call"] = calls_json(each.calls_window);
            if (const auto calls = seen_calls(each, seen)) way["calls_to_pay_seen"] = calls_json(*calls);
        }
        ways.push_back(std::move(way));
    }
    const nlohmann::json answer{{"collective", "alltoallv"},
                                {"pattern", pattern},
                                {"bytes", bytes},
                                {"topology", topology.to_text()},
                                {"limit_seconds", seconds(limit)},
                                {"ways", ways}};
    fmt::print("{}\n", json_text(answer, 1));
}

void print_table(Picoseconds limit, const std::vector<ExchangePrediction>& all, const ExchangeSeen& seen) {
    std::vector<std::vector<std::string>> cells{
        {"way", "one call", "/ limit", "plan", "N* (native)", "N* (window per call)", "N* (seen)"}};
    for (const ExchangePrediction& each : all) {
        const auto calls = seen_calls(each, seen);
        cells.push_back({std::string(each.name), bench::time_text(seconds(each.call)),
                         limit > 0 ? fmt::format("{:.2f}", seconds(each.call) / seconds(limit)) : "-",
                         each.plan ? bench::time_text(seconds(each.init)) : "-",
                         each.plan ? calls_text(each.calls_native) : "-",
                         each.plan ? calls_text(each.calls_window) : "-", calls ? calls_text(*calls) : "-"});
    }
    fmt::print("{}", bench::format_cells(cells, false));
    fmt::print(
        "\n  By closed formulas of the port model. plan: making and freeing it. N*: after so many calls it "
        "has\n"
        "  paid, against the native call and against a window made in every call; never: a call with it is "
        "not\n"
        "  faster. N* (seen): against the native call that --once-us and --small-us tell of. `thalweg bench\n"
        "  alltoallv` measures the same.\n");
}

}  // namespace

int explain_alltoallv(int argc, char** argv) {
    CLI::App app{
        "thalweg explain alltoallv --pattern NAME --bytes N --topology TEXT [OPTIONS]\n"
        "What an exchange would cost by each way, and after how many calls a plan would have paid. Without\n"
        "--pattern: the algorithms, the choice and why, as for other operations.",
        "explain"};
    std::string name = "explain alltoallv", bytes, topology_text, rate, latency, pattern = "dense";
    bool json = false;
    std::uint64_t ports = 1;
    double once_us = 0, small_us = 0;
    app.add_option("--bytes", bytes, "of one message: " + std::string(bytes_form))->required();
    app.add_option("--pattern", pattern, std::string("who sends to whom: ") + apps::pattern_names)
        ->capture_default_str();
    app.add_option("--topology", topology_text,
                   "hosts and ranks per host: \"node:16 core:48\", \"node:3 core:1,2,4\", \"ranks:0,1,0,2\"")
        ->required();
    app.add_option("--rate", rate,
                   "one link, one direction: " + std::string(rate_form) + " (default 12GB/s)");
    app.add_option("--latency-us", latency, "one way between two hosts, microseconds (default 2)");
    app.add_option("--ports", ports, "links that a host has to the others, each of that rate (default 1)")
        ->check(CLI::Range(1, 1024));
    CLI::Option* const once =
        app.add_option(
               "--once-us", once_us,
               "what the native call of this exchange was seen to take, microseconds; with --small-us")
            ->check(apps::number_within(1e-6, 1e12));
    CLI::Option* const small =
        app.add_option("--small-us", small_us, "the same of an exchange of a few bytes: then N* by both")
            ->check(apps::number_within(1e-6, 1e12));
    once->needs(small);
    small->needs(once);
    app.add_flag("--json", json, "print JSON");
    argv[0] = name.data();
    if (const auto status = parse(app, argc, argv)) return *status;

    const auto size = parse_bytes(bytes);
    if (!size)
        return usage_error("explain",
                           "--bytes " + bytes + " is not valid: expected " + std::string(bytes_form));
    std::string why;
    int ranks = 0;
    Topology topology = Topology::single_node(1);
    if (failed(Topology::count_ranks(topology_text, ranks, why)))
        return usage_error("explain", "--topology: " + why);
    if (ranks > most_ranks)
        return usage_error(
            "explain", fmt::format("--topology: has {} ranks; an exchange is explained for up to {}", ranks,
                                   most_ranks));
    if (failed(Topology::from_text(topology_text, topology, why)))
        return usage_error("explain", "--topology: " + why);
    Settings settings;
    const std::pair<std::string_view, const std::string*> given[] = {{"THALWEG_RATE", &rate},
                                                                     {"THALWEG_LATENCY_US", &latency}};
    for (const auto& [variable, value] : given)
        if (!value->empty() &&
            settings.set(variable, *value, Origin::command_line, why, check_option) != Status::ok)
            return usage_error("explain", why);
    Machine machine = Machine::from_options(settings.latency_us, settings.rate);
    machine.inter.ports = ports;
    if (why = beyond_the_model(*size, topology, machine); !why.empty())
        return usage_error("explain", "--bytes " + bytes + ": " + why);

    std::vector<std::uint64_t> matrix;
    if (!apps::make_pattern(pattern, ranks, *size, matrix, why))
        return usage_error("explain", "--pattern: " + why);
    // A matrix's messages are as many times as long as they have elements.
    if (why = beyond_the_model(matrix, topology, machine); !why.empty())
        return usage_error("explain", "--bytes " + bytes + " with --pattern " + pattern + ": " + why);
    const Picoseconds limit = exchange_limit(matrix, topology, machine);
    const auto all = predict_exchange(matrix, topology, machine);
    ExchangeSeen seen;
    seen.once_seconds = once_us * 1e-6;
    seen.small_seconds = small_us * 1e-6;
    seen.message_bytes = *size;
    // What leaves a host goes over all its links.
    seen.link_bytes = static_cast<double>(exchange_link_bytes(matrix, topology)) / static_cast<double>(ports);
    seen.bytes_per_second = static_cast<double>(machine.inter.bytes_per_second);
    if (json) {
        print_json(pattern, *size, topology, limit, all, seen);
        return exit_ok;
    }
    fmt::print("alltoallv, {}, {} per message, {} ranks on {} hosts ({})\n", pattern,
               bench::bytes_text(*size), topology.size(), topology.nodes(), topology.to_text());
    fmt::print("link {} with {} between hosts; limit {}\n\n",
               rate_text(static_cast<double>(machine.inter.bytes_per_second)),
               bench::time_text(seconds(machine.inter.latency)), bench::time_text(seconds(limit)));
    print_table(limit, all, seen);
    return exit_ok;
}

}  // namespace thalweg::tool
