#include "sim/request.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <sstream>

#include "base/text.h"
#include "common/number_within.h"
#include "common/patterns.h"
#include "common/words.h"
#include "sim/apps.h"
#include "sim/request_checks.h"

namespace thalweg::sim {
namespace {

constexpr int exit_ok = 0, exit_usage = 2;

int mistake(const std::string& sentence) {
    fmt::print(stderr, "thalweg sim: {}\n", sentence);
    return exit_usage;
}

// Of "1K,,2K," four parts, two of them empty.
std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> parts;
    std::stringstream stream(list);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    if (list.ends_with(',')) parts.emplace_back();
    return parts;
}

std::string refuse_count(const std::string& text) {
    return parse_count(text) ? std::string() : text + " is not valid: expected " + std::string(count_form);
}

std::string operations() {
    std::string names;
    for (int i = 0; i < collective_count; ++i)
        names += (i == 0 ? "" : ", ") + std::string(name_of(static_cast<Collective>(i)));
    return names + ", halo, or app with the name of a program";
}

struct Text {
    std::string collective, app, machine = "dane", ranks, bytes, cells, rate, sweep, tuning, memory = "16G";
    unsigned rails = 0;
    bool list_machines = false;
};

void describe(CLI::App& app, Text& text, Request& request) {
    app.add_option("collective", text.collective, "the operation: " + operations());
    app.add_option("program", text.app, "of `app`: stencil, amr, sort, cg or fourier");
    app.add_option("--machine", text.machine, "a machine by name (see --list-machines) or a JSON file")
        ->capture_default_str();
    app.add_flag("--list-machines", text.list_machines, "the machines that are built in, and no more");
    app.add_option("--ranks", text.ranks, "numbers of ranks, with commas: 448 or 112,448,1792");
    app.add_option("--per-host", request.per_host,
                   "ranks per host, one per core at most (default: that many)")
        ->check(CLI::Range(1, 65536));
    app.add_option(
        "--bytes", text.bytes,
        "sizes, with commas: 64K,1M,16M; of the whole message (allgather: of a rank's block; "
        "alltoallv, fourier: to each rank; halo, stencil, amr: a face; sort: a rank's keys; cg: a rank's "
        "vector)");
    app.add_option(
           "--grid", request.grid.ranks,
           "of halo: ranks like 4x2x1, in row-major order; auto: as even as can be in three dimensions")
        ->capture_default_str();
    app.add_option("--cells", text.cells,
                   "of halo, instead of --bytes: cells of a rank, 8 bytes each, with commas: 64 (in every "
                   "dimension) or 128x128x16");
    app.add_option("--points", request.grid.points,
                   "of --cells, of the stencil: 7 or 27 in three dimensions, 9 or 81 in four (default: faces "
                   "only)");
    app.add_flag("--periodic", request.grid.periodic, "of --cells: the grid goes round in every dimension");
    app.add_option(
        "--pattern", request.pattern,
        std::string("of alltoallv: who sends to whom, as a plan of it; --bytes are as `thalweg explain "
                    "alltoallv` has them (default: between all pairs alike): ") +
            apps::pattern_names);
    app.add_option("--mapping", request.mapping, "of ranks to hosts: block, cyclic, permuted or ragged")
        ->default_val("block");
    app.add_option("--seed", request.seed, "of the permuted mapping, and of samples")
        ->check(CLI::Validator(refuse_count, ""))  // CLI11 takes what is too large for the largest
        ->capture_default_str();
    app.add_option(
           "--algorithm", request.columns,
           "a column: auto (what Thalweg would choose; of an allreduce, for integers), mpich, openmpi or, of "
           "faces, mvapich (models of their defaults; newer releases of MPICH look at their host's messages "
           "first, as mvapich does), "
           "or an algorithm with its parameters; may be repeated (default: auto, mpich and openmpi)")
        ->allow_extra_args(false);
    app.add_option(
           "--mpi", request.family,
           "the MPI under Thalweg: mpich, openmpi, impi (no model of its defaults) or, of faces, mvapich")
        ->default_val("mpich");
    app.add_flag(
        "--libucp", request.libucp,
        "Thalweg's messages go over libucp, as those of plans, of exchanges between neighbours and of "
        "nonblocking calls do, not over that MPI (matters where kernels send, and to what `notify` puts)");
    app.add_option("--rate", text.rate, "payload rate of a link instead of the machine's: 100mbit, 12GB/s");
    app.add_option("--rails", text.rails, "links per host instead of the machine's")
        ->check(CLI::Range(1, 64));
    app.add_flag(
        "--star", request.star,
        "hosts joined by one switch that never blocks, instead of the machine's fabric: what links between "
        "switches, and routing around them, can matter at most");
    app.add_option("--repeat", request.repeat,
                   "operations in a row without a barrier; times are per operation")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    app.add_option("--samples", request.samples,
                   "the least time of so many operations, as of measured ones: what had been sent on their "
                   "communicator before, which decides how credits stand, is another for each (matters where "
                   "kernels send)")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    app.add_flag("--in-turn", request.in_turn,
                 "messages of a rank one after another, as blocking calls of an MPI send them");
    app.add_option("--tuning", text.tuning,
                   "tuning tables (a JSON file of one, or of a list) that take precedence");
    app.add_flag("--overlap", request.overlap,
                 "also start the operation, compute on each rank for as long as its part takes, then wait: "
                 "with and without agent; auto is then Thalweg's choice for calls that do not block");
    app.add_option("--sweep", text.sweep,
                   "of `app`: what a rank reads and writes per second, 2GB/s (default: its share of the "
                   "host's memory)");
    app.add_flag("--rma", request.rma,
                 "of alltoallv: also puts through windows that are made in every call, and once per plan");
    app.add_option("--trace", request.trace_path, "write a timeline for Perfetto (one point and one column)");
    app.add_flag("--json", request.json, "JSON, one line per column and point");
    app.add_flag("--cost", request.cost, "also what building and simulating took on this machine");
    app.add_flag("--quiet", request.quiet, "no progress on standard error");
    app.add_option("--most-seconds", request.most_seconds,
                   "of a processor, after which a point is given up and the cost model printed; 0: no limit")
        ->default_val(600);
    app.add_option("--most-memory", text.memory, "the same for bytes of memory; 0: no limit")
        ->capture_default_str();
}

std::optional<Collective> collective_named(const std::string& name) {
    for (int i = 0; i < collective_count; ++i)
        if (name_of(static_cast<Collective>(i)) == name) return static_cast<Collective>(i);
    return std::nullopt;
}

// Lists of sizes and of ranks; the sentence of a mistake, or an empty one.
std::string read_lists(const Text& text, Request& request) {
    for (const std::string& part : split(text.ranks)) {
        const auto count = parse_bytes(part);
        if (!count || *count < 1 || *count > (1u << 24))
            return "--ranks " + (part.empty() ? "\"" + text.ranks + "\"" : part) +
                   " is not valid: expected numbers of ranks from 1 to 2^24, with commas: 448 or "
                   "112,448,1792";
        request.ranks.push_back(static_cast<int>(*count));
    }
    for (const std::string& part : split(text.bytes)) {
        const auto size = parse_bytes(part);
        if (!size)
            return "--bytes " + (part.empty() ? "\"" + text.bytes + "\"" : part) +
                   " is not valid: expected " + std::string(bytes_form);
        request.bytes.push_back(*size);
    }
    request.cells = split(text.cells);
    if (std::count(request.cells.begin(), request.cells.end(), "") > 0)
        return "--cells \"" + text.cells + "\": give numbers like 64 or 128x128x16, with commas between them";
    if (request.halo && request.ranks.empty()) {
        const std::vector<int> extents = parse_extents(request.grid.ranks);
        HaloGrid grid{extents, std::vector<int>(extents.size(), 1)};
        if (!extents.empty() && refuse(grid).empty()) request.ranks = {grid.size()};
    }
    if (request.ranks.empty()) return "--ranks is missing: how many, such as --ranks 448";
    if (!request.cells.empty()) {
        if (!request.bytes.empty()) return "--bytes and --cells: give one of them";
        return {};
    }
    if (request.collective == Collective::barrier && !request.bytes.empty())
        return "--bytes is not of barrier: leave it out";
    if (request.bytes.empty() && request.collective != Collective::barrier)
        return std::string("--bytes is missing: a size, such as --bytes 64K,1M") +
               (request.halo ? ", or --cells" : "");
    if (request.bytes.empty()) request.bytes = {0};
    return {};
}

// Options that the question has no place for.
std::string read_kind(const CLI::App& app, const Request& request) {
    constexpr const char *of_schedules[] = {"--algorithm", "--overlap", "--in-turn",
                                            "--trace",     "--cost",    "--samples"},
                         *of_choices[] = {"--repeat", "--tuning", "--libucp"};
    for (const char* option : of_schedules)
        if (app.count(option) > 0 && (!request.app.empty() || request.rma))
            return std::string(option) + " is not of " + (request.rma ? "--rma" : "app");
    constexpr const char *of_halo[] = {"--grid", "--cells"}, *of_cells[] = {"--points", "--periodic"};
    for (const char* option : of_halo)
        if (app.count(option) > 0 && !request.halo) return std::string(option) + " is of halo";
    for (const char* option : of_cells)
        if (app.count(option) > 0 && app.count("--cells") == 0) return std::string(option) + " is of --cells";
    if (app.count("--sweep") > 0 && request.app.empty()) return "--sweep is of app";
    const bool exchange = request.collective == Collective::alltoallv && request.app.empty();
    if (!request.pattern.empty() && (!exchange || request.halo || request.rma))
        return std::string("--pattern is ") + (request.rma ? "not of --rma" : "of alltoallv");
    for (const char* option : of_choices)
        if (app.count(option) > 0 && request.rma) return std::string(option) + " is not of --rma";
    if (app.count("--trace") > 0 && request.samples > 1)
        return "--trace shows one operation, --samples takes the least of several: give one of them";
    return {};
}

// The option that was given an empty value. Empty: none was.
std::string without_value(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options())
        for (const std::string& value : option->results())
            if (value.empty() && option->nonpositional()) return option->get_name();
    return {};
}

void list_machines() {
    for (const auto& [name, json] : built_in_machines()) {
        SimMachine machine;
        std::string why;
        if (!failed(parse_machine(json, machine, why)))
            fmt::print("{:<12}{} hosts x {} cores. {}\n", name, machine.hosts, machine.cores_per_host,
                       machine.text);
    }
}

}  // namespace

std::optional<int> parse_request(int argc, char** argv, Request& request) {
    CLI::App app{
        "thalweg sim COLLECTIVE --ranks N --bytes B [OPTIONS]\n"
        "What Thalweg would do, and gain, on a machine that is described: production's own schedules, "
        "simulated. `thalweg sim plot` draws what it says.",
        "thalweg sim"};
    Text text;
    describe(app, text, request);
    apps::read_in_decimal(app);
    const auto unknown = [](const std::string& name) {
        return mistake("there is no simulation of " + name + "; known: " + operations());
    };
    const auto plot_is_first = [] {
        return mistake(
            "plot is not of a simulation: write it first, `thalweg sim plot [--out PICTURE] FILE`");
    };
    // A name that nobody knows is the mistake to tell, whatever else is missing, and no help is of it.
    const std::string first = argc > 1 ? argv[1] : "";
    if (!first.empty() && first[0] != '-' && first != "halo" && first != "app" && !collective_named(first))
        return unknown(first);
    try {
        if (const std::string option = apps::option_for_value(app, argc, argv); !option.empty())
            throw CLI::ArgumentMismatch(option + " needs a value");
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return exit_ok;
    } catch (const CLI::ParseError& error) {
        if (first.starts_with('-') && std::count(argv + 1, argv + argc, std::string_view("plot")) > 0)
            return plot_is_first();
        return mistake(apps::in_plain_words(error.what()) + "; see `thalweg sim --help`");
    }
    if (text.collective == "plot") return plot_is_first();
    std::string why = without_value(app);
    if (!why.empty()) return mistake(why + " has no value: give it one, or leave it out");
    if (text.list_machines) {
        list_machines();
        return exit_ok;
    }
    request.halo = text.collective == "halo";
    if (text.collective == "app") {
        const auto names = app_names();
        request.app = text.app;
        if (std::find(names.begin(), names.end(), text.app) == names.end())
            return mistake("which program? stencil, amr, sort, cg or fourier");
    } else if (!text.app.empty()) {
        return mistake("\"" + text.app + "\" is not expected behind " + text.collective);
    }
    const std::optional<Collective> collective =
        request.halo || !request.app.empty() ? Collective::alltoallv : collective_named(text.collective);
    if (!collective)
        return text.collective.empty() ? mistake("which operation? " + operations())
                                       : unknown(text.collective);
    request.collective = *collective;
    if (request.rma && text.collective != "alltoallv") return mistake("--rma is of alltoallv");
    if (failed(find_machine(text.machine, request.machine, why))) return mistake("--machine: " + why);
    if (!text.rate.empty()) {
        const auto rate = parse_rate(text.rate);
        // As THALWEG_RATE: the cost model's are whole bytes per second, in 64 bits.
        constexpr double least = 125, most = 12.5e12;
        if (!rate || *rate < least || *rate > most)
            return mistake("--rate " + text.rate + " is not valid: expected " + std::string(rate_form) +
                           ", from 1kbit to 100tbit");
        // One message alone reaches the same part of a link as before.
        request.machine.flow_rate *= *rate / request.machine.link_rate;
        request.machine.link_rate = *rate;
    }
    if (!text.sweep.empty()) {
        const auto rate = parse_rate(text.sweep);
        if (!rate || *rate <= 0)
            return mistake("--sweep " + text.sweep + " is not valid: expected " + std::string(rate_form));
        request.sweep_rate = *rate;
    }
    if (text.rails > 0) request.machine.rails = text.rails;
    if (request.star) request.machine.fabric = Fabric::star;
    if (request.per_host <= 0) request.per_host = request.machine.cores_per_host;
    if (why = read_kind(app, request); !why.empty()) return mistake(why);
    if (why = read_lists(text, request); !why.empty()) return mistake(why);
    if (why = read_limits(request); !why.empty()) return mistake(why);
    if (why = read_columns(request); !why.empty()) return mistake(why);
    if (!text.tuning.empty())
        if (why = read_table(text.tuning, request); !why.empty()) return mistake(why);
    const auto memory = parse_bytes(text.memory);
    if (!memory)
        return mistake("--most-memory " + text.memory + " is not valid: expected " + std::string(bytes_form));
    request.most_memory = *memory > 0 ? *memory : std::numeric_limits<std::uint64_t>::max();
    return std::nullopt;
}

}  // namespace thalweg::sim
