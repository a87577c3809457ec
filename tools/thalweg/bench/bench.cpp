// thalweg bench: the command line.
#include <CLI/CLI.hpp>
#include <array>
#include <sstream>

#include "algorithms/option_check.h"
#include "bench/apps.h"
#include "bench/exchange.h"
#include "bench/halo.h"
#include "bench/overlap.h"
#include "bench/race.h"
#include "bench/show.h"
#include "bench/small.h"
#include "bench/sweep.h"
#include "bench/waiters.h"
#include "common/patterns.h"
#include "environment.h"
#include "lab/lab.h"
#include "verb.h"

namespace thalweg::bench {
namespace {

// Said before anything is predicted or launched.
void add_mpi_option(CLI::App& verb, Shape& shape) {
    verb.add_option("--mpi", shape.mpi, "the MPI library")
        ->check(CLI::IsMember({"mpich", "openmpi", "impi", "mpich-debian", "openmpi-debian"}))
        ->capture_default_str();
}

void add_rate_option(CLI::App& verb, Shape& shape) {
    const auto check = [](const std::string& rate) {
        try {
            lab::parse_rate(rate);
            return std::string();
        } catch (const std::exception& error) {
            return std::string(error.what());
        }
    };
    verb.add_option("--rate", shape.rate, "rate of each link, each direction")
        ->check(CLI::Validator(check, ""))
        ->capture_default_str();
}

void add_shape_options(CLI::App& verb, Shape& shape) {
    add_mpi_option(verb, shape);
    verb.add_option("--hosts", shape.hosts, "hosts of the lab; 0: this host without a lab")
        ->check(CLI::Range(0, lab::max_hosts))
        ->capture_default_str();
    verb.add_option("--ppn", shape.ppn, "ranks per host")
        ->check(CLI::Range(1, lab::max_ranks_per_host))
        ->capture_default_str();
    add_rate_option(verb, shape);
    verb.add_option("--rails", shape.rails, "links per host")
        ->check(CLI::Range(1, lab::max_rails))
        ->capture_default_str();
}

// "bcast" -> "THALWEG_BCAST".
std::string variable_of(const std::string& collective) {
    for (const Option& option : options())
        if (option.field == collective) return std::string(option.variable);
    return {};
}

// Values that the measured library would refuse, and then measure its default under their name.
CLI::Validator value_of_option(std::string variable) {
    const auto check = [variable = std::move(variable)](const std::string& value) {
        Settings settings;
        std::string why;
        settings.set(variable, value, Origin::command_line, why, check_option);
        return why;
    };
    return CLI::Validator(check, "");
}

// "NAME=VALUE NAME=VALUE" for the environment of a launch.
std::string refuse_setting(const std::string& text) {
    std::vector<std::string> words;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words.push_back(word);
    std::vector<const char*> environment;
    for (const std::string& word : words) {
        if (word.find('=') == word.npos || word[0] == '=') return "\"" + word + "\" is not NAME=VALUE";
        environment.push_back(word.c_str());
    }
    environment.push_back(nullptr);
    std::vector<Complaint> complaints;
    Settings::from_environment(environment.data(), complaints, check_option);
    return complaints.empty() ? "" : complaints.front().sentence;
}

// Where a sweep of hours goes must be known to take it before it begins.
void add_out_option(CLI::App& verb, std::string& out, const char* text) {
    verb.add_option("--out", out, text)
        ->check(CLI::Validator([](const std::string& path) { return tool::why_not_writable(path); }, ""));
}

template <typename Run>
int measured(const Shape& shape, Run run) {
    const std::string why = why_not_measurable(shape);
    if (!why.empty()) return tool::usage_error("bench", why);
    const int status = run();
    end_if_interrupted();
    return status;
}

// One blocking collective: its options are read into `request`.
struct Blocking {
    explicit Blocking(const char* collective) : request(standard_request(collective)) {}

    void add(CLI::App& app, const char* text) {
        verb = app.add_subcommand(request.collective, text);
        verb->footer(race_rule());
        add_shape_options(*verb, request.shape);
        sizes = verb->add_option("--bytes", request.sizes,
                                 "sizes by the collective's definition, comma-separated")
                    ->delimiter(',')
                    ->capture_default_str();
        // A choice may hold commas itself, so it is one per option.
        verb->add_option("--ours", ours,
                         "an algorithm of ours to measure besides the automatic choice (repeatable)")
            ->check(value_of_option(variable_of(request.collective)));
        verb->add_option("--screen-samples", request.screen_samples, "samples of each column at first")
            ->check(CLI::Range(1, 1000))
            ->capture_default_str();
        verb->add_option("--decide-samples", request.decide_samples, "pairs below 4 MiB")
            ->check(CLI::Range(1, 10000))
            ->capture_default_str();
        verb->add_option("--decide-samples-large", request.decide_samples_large, "pairs from 4 MiB")
            ->check(CLI::Range(1, 10000))
            ->capture_default_str();
        verb->add_flag("--screen-only", request.screen_only, "stop after the first look");
        verb->add_flag("--again", request.again, "decide once more with three times the pairs");
        verb->add_flag("--force", request.force, "measure although the lab is over its capacity");
        verb->add_flag("--demo", request.demo, "the main table only");
        add_out_option(*verb, request.out,
                       "JSON lines to append to; an interrupted sweep goes on from there");
    }
    // What is measured of broadcasts alone.
    void add_small_and_rings() {
        verb->add_flag(
            "--small", request.small,
            "what Thalweg adds to calls it leaves alone: many short calls, timed one by one, on this "
            "host without a lab");
        verb->add_option("--calls", request.small_calls, "timed calls of each column with --small")
            ->check(CLI::Range(100, 100000000))
            ->capture_default_str();
        verb->add_flag("--rings", request.rings,
                       "only the closed against the trimmed ring, one rank per host");
    }
    int run() {
        if (!ours.empty()) request.ours = ours;
        if (request.small) {
            request.shape.hosts = 0;
            if (sizes->count() == 0) request.sizes = small_sizes();
        }
        if (request.rings) {
            if (verb->get_option("--ppn")->count() == 0) request.shape.ppn = 1;
            if (request.small || request.shape.hosts < 2 || request.shape.ppn != 1)
                return tool::usage_error(
                    "bench", "--rings: both rings run on two hosts or more, with one rank on each");
        }
        return measured(request.shape, [&] { return run_sweep(request); });
    }

    Request request;
    std::vector<std::string> ours;
    CLI::App* verb = nullptr;
    CLI::Option* sizes = nullptr;
};

// One nonblocking collective. `overlap` says that its overlap is to be measured, all there is so far.
CLI::App* add_overlap(CLI::App& app, const char* name, const char* text, OverlapRequest& request,
                      bool& overlap) {
    auto* verb = app.add_subcommand(name, text);
    request.collective = name;
    add_shape_options(*verb, request.shape);
    verb->add_flag("--overlap", overlap, "how much of it hides behind computation, and what that costs")
        ->required();
    verb->add_option("--bytes", request.sizes, "sizes by the collective's definition, comma-separated")
        ->delimiter(',')
        ->capture_default_str();
    verb->add_option("--compute", request.computes,
                     "kinds of computation: arithmetic, memory, sleep; the first one overlaps (default: "
                     "arithmetic,memory where each rank has a core, else sleep)")
        ->delimiter(',')
        ->check(CLI::IsMember({"arithmetic", "memory", "sleep"}));
    verb->add_option("--ours", request.ours, "an algorithm of ours besides the automatic choice (repeatable)")
        ->allow_extra_args(false)
        ->check(value_of_option(variable_of(request.collective.substr(1))));
    verb->add_option("--agents", request.agents, "values of THALWEG_AGENT to measure besides auto")
        ->delimiter(',')
        ->check(value_of_option("THALWEG_AGENT"))
        ->capture_default_str();
    verb->add_option("--samples", request.samples, "samples of each column")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    verb->add_option("--samples-large", request.samples_large, "samples where one call takes 0.15 s or more")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    verb->add_flag("!--together-only", request.apart,
                   "leave out the columns that need launches of their own: asynchronous natives, --agents");
    verb->add_flag("--force", request.force, "measure although the lab is over its capacity");
    add_out_option(*verb, request.out, "JSON lines to append to; an interrupted run goes on from there");
    return verb;
}

CLI::App* add_exchange(CLI::App& app, ExchangeRequest& request) {
    auto* verb = app.add_subcommand("alltoallv", "planned and repeated alltoallv: when a plan pays");
    add_shape_options(*verb, request.shape);
    verb->add_option("--pattern", request.patterns,
                     std::string("who sends to whom, comma-separated: ") + apps::pattern_names)
        ->delimiter(',')
        ->capture_default_str();
    verb->add_option("--sizes", request.sizes, "bytes per pair that exchanges, comma-separated")
        ->delimiter(',')
        ->capture_default_str();
    verb->add_option(
            "--ours", request.ours,
            "algorithms of ours to measure planned besides the automatic choice (repeatable; default: "
            "every one)")
        ->allow_extra_args(false)
        ->check(value_of_option(variable_of("alltoallv")));
    verb->add_option("--columns", request.columns, "only these columns, comma-separated")->delimiter(',');
    verb->add_option("--samples", request.samples, "samples of each column")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    verb->add_option("--samples-large", request.samples_large, "samples where the wire needs 50 ms or more")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    verb->add_flag("--again", request.again,
                   "measure what is undecided in --out once more, with three times the samples");
    verb->add_flag("--force", request.force, "measure although the lab is over its capacity");
    add_out_option(*verb, request.out, "JSON lines to append to; an interrupted run goes on from there");
    return verb;
}

CLI::App* add_halo(CLI::App& app, HaloRequest& request) {
    auto* verb =
        app.add_subcommand("halo", "halo exchange on a grid of ranks, beside wire, copies and cores");
    add_shape_options(*verb, request.shape);
    verb->add_option("--grid", request.grid, "of ranks, like 4x2x1; auto: as even as can be")
        ->capture_default_str();
    verb->add_option("--cells", request.cells,
                     "cells of a rank, comma-separated: 64 (in every dimension) or 128x128x16")
        ->delimiter(',')
        ->capture_default_str();
    verb->add_option("--dims", request.dims, "dimensions of the grid")
        ->check(CLI::Range(1, most_halo_dimensions))
        ->capture_default_str();
    verb->add_option("--points", request.points,
                     "of the stencil: 7 or 27 in three dimensions, 9 or 81 in four (default: faces only)");
    verb->add_flag("--periodic", request.periodic, "the grid goes round in every dimension");
    verb->add_flag("--upwind", request.upwind, "what goes down in some dimension stays: 4 or 8 points");
    verb->add_option("--styles", request.styles, "only these columns, comma-separated")->delimiter(',');
    verb->add_option("--ours", request.ours,
                     "algorithms whose plans are measured besides, like pairwise (repeatable)")
        ->allow_extra_args(false)
        ->check(value_of_option(variable_of("alltoallv")));
    verb->add_option("--setting", request.settings,
                     "measure Thalweg's columns once more in a launch with NAME=VALUE, several with spaces "
                     "between (repeatable)")
        ->allow_extra_args(false)
        ->check(CLI::Validator(refuse_setting, ""))
        ->capture_default_str();
    verb->add_flag("!--together-only", request.apart, "leave out the launches with --setting");
    const auto phase = [&](const char* flag, const char* name, const char* text) {
        return verb->add_flag_function(
            flag, [&request, name](std::int64_t) { request.phase = name; }, text);
    };
    auto* const pairs = phase("--pairs", halo_pairs_phase,
                              "the choice of protocols against every fixed pair, inside and between hosts");
    auto* const changing =
        phase("--changing", halo_changing_phase,
              "the same in a run whose grid, faces, late ranks and link change (--cells does not count)");
    phase("--overlap", halo_overlap_phase, "how much hides behind computation")
        ->excludes(pairs)
        ->excludes(changing);
    pairs->excludes(changing);
    verb->add_option("--rounds", request.rounds, "launches over which --pairs and --changing spread samples")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    verb->add_option("--calls", request.calls, "exchanges in each phase of --changing")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    verb->add_option("--compute", request.compute, "of --overlap")
        ->check(CLI::IsMember({"arithmetic", "memory", "sleep"}))
        ->capture_default_str();
    verb->add_option("--samples", request.samples, "samples of each column")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    verb->add_option("--samples-large", request.samples_large, "samples where the limit is 50 ms or more")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    verb->add_flag("--again", request.again,
                   "measure what is undecided in --out once more, with three times the samples");
    verb->add_flag("--force", request.force, "measure although the lab is over its capacity");
    add_out_option(*verb, request.out, "JSON lines to append to; an interrupted run goes on from there");
    return verb;
}

}  // namespace
}  // namespace thalweg::bench

int bench_main(int argc, char** argv) {
    using namespace thalweg::bench;
    CLI::App app{"Measures collectives: native algorithms and ours, interleaved, every byte checked",
                 "thalweg bench"};
    app.require_subcommand(1);
    Blocking bcast("bcast"), allgather("allgather"), allreduce("allreduce");
    bcast.add(app, "broadcast");
    bcast.add_small_and_rings();
    allgather.add(app, "blocking allgather");
    allreduce.add(app, "blocking allreduce, of sums of 64-bit integers");
    std::array<OverlapRequest, 3> overlaps;
    bool overlap = false;
    const std::array<CLI::App*, 3> nonblocking{
        add_overlap(app, "iallgather", "nonblocking allgather", overlaps[0], overlap),
        add_overlap(app, "ibcast", "nonblocking broadcast", overlaps[1], overlap),
        add_overlap(app, "iallreduce", "nonblocking allreduce", overlaps[2], overlap)};
    ExchangeRequest exchange;
    const auto* alltoallv = add_exchange(app, exchange);
    HaloRequest halo;
    const auto* halos = add_halo(app, halo);
    WaitersRequest waiting;
    auto* waiters = app.add_subcommand("waiters", "post-to-wake latency of each way to sleep");
    waiters->add_option("--samples", waiting.samples, "wake-ups of each")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    waiters->add_option("--pause-us", waiting.pause_us, "how long it sleeps before it is rung")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    add_out_option(*waiters, waiting.out, "JSON lines to append to");
    AppsRequest application;
    auto* apps = app.add_subcommand("apps", "the applications, native and with Thalweg");
    add_mpi_option(*apps, application.shape);
    apps->add_option("--hosts", application.shape.hosts, "hosts of the lab")
        ->check(CLI::Range(2, 64))
        ->capture_default_str();
    apps->add_option("--ppn", application.shape.ppn, "ranks per host")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    add_rate_option(*apps, application.shape);
    apps->add_option("--app", application.apps, "which: radix_sort, conjugate_gradient, amr")
        ->delimiter(',')
        ->capture_default_str();
    apps->add_option("--rounds", application.rounds, "of three launches: native, Thalweg, native again")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    apps->add_flag("--force", application.force, "measure although the lab is over its capacity");
    add_out_option(*apps, application.out,
                   "JSON lines to append to; rounds that are there are not measured again");
    std::vector<std::string> files;
    bool markdown = false, columns = false;
    auto* table = app.add_subcommand("table", "print the table of result files");
    table->add_option("FILE", files, "JSON lines written by --out")->required();
    table->add_flag("--markdown", markdown, "as Markdown");
    table->add_flag("--columns", columns, "every column too, with min, median and p99");
    std::string page = "-";
    auto* pages = app.add_subcommand("document", "write the page of all tables, and pictures beside it");
    pages->add_option("FILE", files, "JSON lines written by --out")->required();
    pages
        ->add_option(
            "--out", page,
            "the Markdown file to write, with its pictures in a folder pictures beside it; -: the page "
            "to standard output")
        ->capture_default_str();
    std::string about;
    pages->add_option("--about", about, "Markdown for its beginning: what all these files were measured on");
    std::string picture = "bench.png";
    auto* plot = app.add_subcommand(
        "plot", "draw result files of one kind, a panel for each MPI and shape (needs Python's matplotlib)");
    plot->add_option("FILE", files, "JSON lines written by --out")->required();
    plot->add_option("--out", picture, "the picture to write (.png, .svg, .pdf)")->capture_default_str();
    if (const auto status = thalweg::tool::parse(app, argc, argv)) return *status;
    for (Blocking* blocking : {&bcast, &allgather, &allreduce})
        if (blocking->verb->parsed()) return blocking->run();
    for (std::size_t i = 0; i < nonblocking.size(); ++i)
        if (nonblocking[i]->parsed())
            return measured(overlaps[i].shape, [&] { return run_overlap(overlaps[i]); });
    if (alltoallv->parsed()) return measured(exchange.shape, [&] { return run_exchange(exchange); });
    if (halos->parsed()) return measured(halo.shape, [&] { return run_halo(halo); });
    if (waiters->parsed()) return run_waiters(waiting);
    if (apps->parsed()) return measured(application.shape, [&] { return run_apps(application); });
    if (table->parsed()) return show_table(files, markdown, columns);
    if (pages->parsed()) return write_document(files, about, page);
    return draw(files, picture);
}
