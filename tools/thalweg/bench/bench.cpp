// thalweg bench: the command line; measures, prints tables, writes the page and draws plots.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>

#include "bench/apps.h"
#include "bench/apps_table.h"
#include "bench/document.h"
#include "bench/exchange.h"
#include "bench/exchange_table.h"
#include "bench/halo.h"
#include "bench/halo_overlap.h"
#include "bench/halo_pairs.h"
#include "bench/halo_table.h"
#include "bench/overlap.h"
#include "bench/overlap_table.h"
#include "bench/patterns.h"
#include "bench/race.h"
#include "bench/results.h"
#include "bench/small.h"
#include "bench/sweep.h"
#include "bench/table.h"
#include "bench/waiters.h"
#include "verb.h"

namespace thalweg::bench {
namespace {

// The rows of files that were named, so that they must be there. False, and said why, where one cannot be
// read.
bool read_named(const std::vector<std::string>& files, std::vector<Row>& rows) {
    std::string why;
    for (const std::string& file : files)
        if (!std::filesystem::exists(file)) why = file + " does not exist";
    if (why.empty() && read_rows(files, rows, why) && rows.empty()) why = "no results in " + files.front();
    if (!why.empty()) fmt::print(stderr, "thalweg bench: {}\n", why);
    return why.empty();
}

int show_table(const std::vector<std::string>& files, bool markdown, bool columns) {
    std::vector<Row> rows;
    if (!read_named(files, rows)) return 2;
    if (columns) fmt::print("{}\n", format_columns(rows));
    const auto hidden = summarize_overlap(rows);
    std::string others = format_small(rows, markdown) + format_waiters(rows, markdown);
    if (!hidden.empty())
        others += format_hidden(hidden, markdown) + "\n" + format_cost(hidden, markdown) + "\n" +
                  format_targets(judge(hidden), markdown);
    others += format_windows(compare_windows(rows), markdown);
    others += format_exchange(summarize_exchange(rows), markdown);
    const auto halos = summarize_halo(rows);
    if (!halos.empty())
        others += format_halo_points(halos, markdown) + "\n" + format_halo(halos, markdown) + "\n" +
                  format_halo_judgements(judge_halo(halos), markdown);
    others += format_pairs(compare_pairs(rows), markdown);
    others += format_halo_hidden(summarize_halo_hidden(rows), markdown);
    const auto apps = summarize_apps(rows);
    if (!apps.empty())
        others += format_app_figures(apps, markdown) + "\n" + format_app_versions(apps, markdown);
    const auto lines = summarize(rows);
    fmt::print("{}", others);
    if (!others.empty() && lines.empty()) return 0;
    std::string_view collective;  // each has a table of its own
    for (std::size_t begin = 0, end = 0; begin < lines.size(); begin = end) {
        while (end < lines.size() && lines[end].collective == lines[begin].collective) ++end;
        if (!collective.empty()) fmt::print("\n");
        collective = lines[begin].collective;
        if (collective != "bcast") fmt::print("{}\n\n", collective);
        fmt::print("{}", format_table({lines.begin() + static_cast<std::ptrdiff_t>(begin),
                                       lines.begin() + static_cast<std::ptrdiff_t>(end)},
                                      markdown));
    }
    std::vector<double> gains;
    int undecided = 0, slower = 0;
    for (const auto& line : lines) {
        if (line.against_default.value > 0) gains.push_back(1 / line.against_default.value);
        undecided += line.decision == Verdict::undecided;
        slower += line.decision == Verdict::slower;
    }
    fmt::print(
        "\n{} points, geometric mean of native default / Thalweg {:.2f}, {} slower than the best native, "
        "{} undecided\n",
        lines.size(), geometric_mean(gains), slower, undecided);
    return 0;
}

int write_document(const std::vector<std::string>& files, const std::string& page) {
    std::vector<Row> rows;
    if (!read_named(files, rows)) return 2;
    const std::string text = document(rows);
    std::FILE* file = page == "-" ? stdout : std::fopen(page.c_str(), "w");
    if (file == nullptr) {
        fmt::print(stderr, "thalweg bench: {} cannot be written\n", page);
        return 1;
    }
    std::fputs(text.c_str(), file);
    return file == stdout || std::fclose(file) == 0 ? 0 : 1;
}

// Plots are drawn by a Python script with matplotlib: a well-kept library, and not on anybody's hot path.
int draw(const std::vector<std::string>& files, const std::string& out) {
    namespace fs = std::filesystem;
    std::vector<Row> rows;
    if (!read_named(files, rows)) return 2;
    const fs::path binary = fs::read_symlink("/proc/self/exe").parent_path();
    fs::path script, python = "python3";
    for (const fs::path& root : {binary / "../..", binary / "../share/thalweg"}) {
        if (fs::exists(root / "bench/plot.py")) script = fs::canonical(root / "bench/plot.py");
        if (fs::exists(root / ".venv/bin/python")) python = fs::canonical(root) / ".venv/bin/python";
    }
    if (script.empty()) {
        fmt::print(stderr, "thalweg bench: the plotting script bench/plot.py is not installed\n");
        return 1;
    }
    std::vector<std::string> words{python.string(), script.string(), "--out", out};
    words.insert(words.end(), files.begin(), files.end());
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    fmt::print(stderr, "thalweg bench: {} cannot be started; install Python 3 with matplotlib\n",
               python.string());
    return 1;
}

// Said before anything is predicted or launched.
void add_mpi_option(CLI::App& verb, Shape& shape) {
    verb.add_option("--mpi", shape.mpi, "the MPI library")
        ->check(CLI::IsMember({"mpich", "openmpi", "impi", "mpich-debian", "openmpi-debian"}))
        ->capture_default_str();
}

void add_shape_options(CLI::App& verb, Shape& shape) {
    add_mpi_option(verb, shape);
    verb.add_option("--hosts", shape.hosts, "hosts of the lab; 0: this host without a lab")
        ->capture_default_str();
    verb.add_option("--ppn", shape.ppn, "ranks per host")->capture_default_str();
    verb.add_option("--rate", shape.rate, "rate of each link, each direction")->capture_default_str();
    verb.add_option("--rails", shape.rails, "links per host")->capture_default_str();
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
                         "an algorithm of ours to measure besides the automatic choice (repeatable)");
        verb->add_option("--screen-samples", request.screen_samples, "samples of each column at first")
            ->check(CLI::Range(1, 1000));
        verb->add_option("--decide-samples", request.decide_samples, "pairs below 4 MiB")
            ->check(CLI::Range(1, 10000));
        verb->add_option("--decide-samples-large", request.decide_samples_large, "pairs from 4 MiB")
            ->check(CLI::Range(1, 10000));
        verb->add_flag("--screen-only", request.screen_only, "stop after the first look");
        verb->add_flag("--again", request.again, "decide once more with three times the pairs");
        verb->add_flag("--force", request.force, "measure although the lab is over its capacity");
        verb->add_flag("--demo", request.demo, "the main table only");
        verb->add_option("--out", request.out,
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
        return run_sweep(request);
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
        ->expected(1);
    verb->add_option("--agents", request.agents, "values of THALWEG_AGENT to measure besides auto")
        ->delimiter(',')
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
    verb->add_option("--out", request.out, "JSON lines to append to; an interrupted run goes on from there");
    return verb;
}

CLI::App* add_exchange(CLI::App& app, ExchangeRequest& request) {
    auto* verb = app.add_subcommand("alltoallv", "planned and repeated alltoallv: when a plan pays");
    add_shape_options(*verb, request.shape);
    verb->add_option("--pattern", request.patterns,
                     std::string("who sends to whom, comma-separated: ") + pattern_names)
        ->delimiter(',')
        ->capture_default_str();
    verb->add_option("--sizes", request.sizes, "bytes per pair that exchanges, comma-separated")
        ->delimiter(',')
        ->capture_default_str();
    verb->add_option(
            "--ours", request.ours,
            "algorithms of ours to measure planned besides the automatic choice (repeatable; default: "
            "every one)")
        ->allow_extra_args(false);
    verb->add_option("--columns", request.columns, "only these columns, comma-separated")->delimiter(',');
    verb->add_option("--samples", request.samples, "samples of each column")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    verb->add_option("--samples-large", request.samples_large, "samples where the wire needs 50 ms or more")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    verb->add_flag("--force", request.force, "measure although the lab is over its capacity");
    verb->add_option("--out", request.out, "JSON lines to append to; an interrupted run goes on from there");
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
    verb->add_option("--styles", request.styles, "only these columns, comma-separated")->delimiter(',');
    verb->add_option("--ours", request.ours,
                     "algorithms whose plans are measured besides, like pairwise (repeatable)")
        ->allow_extra_args(false);
    verb->add_option("--setting", request.settings,
                     "measure Thalweg's columns once more in a launch with NAME=VALUE, several with spaces "
                     "between (repeatable)")
        ->expected(1)
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
    verb->add_flag("--force", request.force, "measure although the lab is over its capacity");
    verb->add_option("--out", request.out, "JSON lines to append to; an interrupted run goes on from there");
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
        ->capture_default_str();
    waiters->add_option("--out", waiting.out, "JSON lines to append to");
    AppsRequest application;
    auto* apps = app.add_subcommand("apps", "the applications, native and with Thalweg");
    add_mpi_option(*apps, application.shape);
    apps->add_option("--hosts", application.shape.hosts, "hosts of the lab")
        ->check(CLI::Range(2, 64))
        ->capture_default_str();
    apps->add_option("--ppn", application.shape.ppn, "ranks per host")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    apps->add_option("--rate", application.shape.rate, "rate of each link, each direction")
        ->capture_default_str();
    apps->add_option("--app", application.apps, "which: radix_sort, conjugate_gradient")
        ->delimiter(',')
        ->capture_default_str();
    apps->add_option("--rounds", application.rounds, "of three launches: native, Thalweg, native again")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    apps->add_flag("--force", application.force, "measure although the lab is over its capacity");
    apps->add_option("--out", application.out,
                     "JSON lines to append to; rounds that are there are not measured again");
    std::vector<std::string> files;
    bool markdown = false, columns = false;
    auto* table = app.add_subcommand("table", "print the table of result files");
    table->add_option("FILE", files, "JSON lines written by --out")->required();
    table->add_flag("--markdown", markdown, "as Markdown");
    table->add_flag("--columns", columns, "every column too, with min, median and p99");
    std::string page = "-";
    auto* pages = app.add_subcommand("document", "write the page of all tables");
    pages->add_option("FILE", files, "JSON lines written by --out")->required();
    pages->add_option("--out", page, "the Markdown file to write; -: standard output")->capture_default_str();
    std::string picture = "bench.png";
    auto* plot = app.add_subcommand("plot", "draw result files");
    plot->add_option("FILE", files, "JSON lines written by --out")->required();
    plot->add_option("--out", picture, "the picture to write (.png, .svg, .pdf)")->capture_default_str();
    if (const auto status = thalweg::tool::parse(app, argc, argv)) return *status;
    for (Blocking* blocking : {&bcast, &allgather, &allreduce})
        if (blocking->verb->parsed()) return blocking->run();
    for (std::size_t i = 0; i < nonblocking.size(); ++i)
        if (nonblocking[i]->parsed()) return run_overlap(overlaps[i]);
    if (alltoallv->parsed()) return run_exchange(exchange);
    if (halos->parsed()) return run_halo(halo);
    if (waiters->parsed()) return run_waiters(waiting);
    if (apps->parsed()) return run_apps(application);
    if (table->parsed()) return show_table(files, markdown, columns);
    if (pages->parsed()) return write_document(files, page);
    return draw(files, picture);
}
