// thalweg bench: screens all columns with a few samples, decides with many pairs, prints tables and draws
// plots.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/text.h"
#include "bench/columns.h"
#include "bench/document.h"
#include "bench/launch.h"
#include "bench/results.h"
#include "bench/rings.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

constexpr std::uint64_t large_bytes = 4u << 20;  // from here one call takes so long that fewer pairs must do
constexpr int ring_samples = 15;
constexpr std::size_t natives_to_decide = 2;  // the best of the screen that are measured with many pairs

struct Request {
    std::string collective = "bcast";
    Shape shape;
    std::vector<std::string> sizes{"64K", "256K", "1M", "4M", "16M"};
    std::vector<std::string> ours{"scatter_ring",
                                  "scatter_ring_trimmed",
                                  "scatter_recursive_doubling",
                                  "binomial",
                                  "chain:chunk_bytes=64K",
                                  "node_leader(intra=linear,inter=chain:chunk_bytes=16K)",
                                  "node_leader(intra=linear,inter=circulant)"};
    std::string out;
    int screen_samples = 5, decide_samples = 30, decide_samples_large = 10;
    bool screen_only = false, again = false, force = false, demo = false, rings = false;
};

// Rows that are already in the file for this shape, so that an interrupted sweep goes on where it stopped.
class Done {
  public:
    Done(const std::vector<Row>& rows, const Shape& shape) {
        for (const auto& row : rows)
            if (row.context.value("mpi_name", "") == shape.mpi &&
                row.context.value("shape", "") == shape.text() &&
                row.context.value("rate", "") == (shape.hosts > 0 ? shape.rate : ""))
                seen_.insert({row.phase, row.column, row.bytes});
    }
    bool has(const std::string& phase, const std::string& column, std::uint64_t bytes) const {
        return seen_.count({phase, column, bytes}) != 0;
    }

  private:
    std::set<std::tuple<std::string, std::string, std::uint64_t>> seen_;
};

class Sweep {
  public:
    explicit Sweep(Request request) : request_(std::move(request)) {}
    int run();

  private:
    bool launch(const std::string& phase, std::vector<ColumnPlan> columns, std::vector<PointPlan> points);
    bool screen(const std::vector<std::uint64_t>& sizes);
    bool decide(const std::vector<std::uint64_t>& sizes);
    bool measure_rings(const std::vector<std::uint64_t>& sizes);
    std::vector<ColumnPlan> columns_for(std::uint64_t bytes) const;
    std::vector<Row> rows_here() const;

    Request request_;
    std::vector<Row> rows_;
};

std::vector<Row> Sweep::rows_here() const {
    std::vector<Row> here;
    for (const auto& row : rows_)
        if (row.context.value("mpi_name", "") == request_.shape.mpi &&
            row.context.value("shape", "") == request_.shape.text())
            here.push_back(row);
    return here;
}

bool Sweep::launch(const std::string& phase, std::vector<ColumnPlan> columns, std::vector<PointPlan> points) {
    std::vector<Row> fresh;
    std::string why;
    const bool good = run_launch(
        {request_.shape, request_.collective, phase, std::move(columns), std::move(points), request_.force},
        fresh, why);
    rows_.insert(rows_.end(), fresh.begin(), fresh.end());
    std::string write_why;
    if (!request_.out.empty() && !append_rows(request_.out, fresh, write_why)) {
        fmt::print(stderr, "thalweg bench: {}\n", write_why);
        return false;
    }
    if (!good) fmt::print(stderr, "thalweg bench: {}\n", why);
    return good;
}

bool Sweep::screen(const std::vector<std::uint64_t>& sizes) {
    const Done done(rows_, request_.shape);
    // One launch for everything that can be switched within it, one more for each native that needs its own.
    std::map<std::string, std::vector<ColumnPlan>> by_environment;
    for (auto& column : all_columns(request_.shape.mpi, request_.collective, request_.ours))
        by_environment[column.environment].push_back(column);
    bool good = true;
    for (const auto& [environment, columns] : by_environment) {
        std::vector<PointPlan> points;
        for (const auto bytes : sizes)
            if (!done.has("screen", columns[0].name, bytes))
                points.push_back({bytes,
                                  bytes >= large_bytes ? std::max(2, request_.screen_samples / 2)
                                                       : request_.screen_samples,
                                  0});
        if (points.empty()) continue;
        fmt::print(stderr, "bench: screening {} column(s) on {} under {}{}\n", columns.size(),
                   request_.shape.text(), request_.shape.mpi,
                   environment.empty() ? "" : " with " + environment);
        // A native that fails to run an algorithm is one column less, not the end of the sweep.
        const bool launched = launch("screen", columns, points);
        if (environment.empty()) good = launched;
    }
    return good;
}

// Default, A/A, the automatic choice, and the two natives that the screen found fastest.
std::vector<ColumnPlan> Sweep::columns_for(std::uint64_t bytes) const {
    std::vector<std::pair<double, std::string>> natives;
    for (const auto& row : rows_here())
        if (row.bytes == bytes && row.phase == "screen" && row.column.starts_with("native ") &&
            row.column != native_again && !row.seconds.empty())
            natives.emplace_back(median(row.seconds), row.column);
    std::sort(natives.begin(), natives.end());
    std::set<std::string> wanted{std::string(native_default), std::string(native_again),
                                 std::string(automatic)};
    for (std::size_t i = 0; i < std::min(natives.size(), natives_to_decide); ++i)
        wanted.insert(natives[i].second);
    std::vector<ColumnPlan> columns;
    for (auto& column : all_columns(request_.shape.mpi, request_.collective, request_.ours))
        if (wanted.count(column.name) != 0) columns.push_back(column);
    return columns;
}

bool Sweep::decide(const std::vector<std::uint64_t>& sizes) {
    const Done done(rows_, request_.shape);
    bool good = true;
    for (const auto bytes : sizes) {
        if (done.has("decide", std::string(automatic), bytes) && !request_.again) continue;
        const int samples = bytes >= large_bytes ? request_.decide_samples_large : request_.decide_samples;
        const PointPlan point{bytes, request_.again ? 3 * samples : samples, bytes >= large_bytes ? 2 : 4};
        std::map<std::string, std::vector<ColumnPlan>> by_environment;
        for (auto& column : columns_for(bytes)) by_environment[column.environment].push_back(column);
        for (auto& [environment, columns] : by_environment) {
            // A native with an environment of its own is paired with the automatic choice under that
            // environment.
            if (!environment.empty())
                columns.push_back(
                    {std::string(automatic), false, nlohmann::json::object(), "auto", environment});
            good = launch("decide", columns, {point}) && good;
        }
    }
    return good;
}

// Both rings, interleaved.
bool Sweep::measure_rings(const std::vector<std::uint64_t>& sizes) {
    const Done done(rows_, request_.shape);
    std::vector<PointPlan> points;
    for (const auto bytes : sizes)
        if (!done.has(rings_phase, trimmed_ring, bytes)) points.push_back({bytes, ring_samples, 4});
    if (points.empty()) return true;
    std::vector<ColumnPlan> columns;
    for (const char* name : {closed_ring, trimmed_ring})
        columns.push_back(
            {name, false, nlohmann::json::object(), std::string(name).substr(ours_prefix.size()), ""});
    return launch(rings_phase, columns, points);
}

int Sweep::run() {
    std::string why;
    std::vector<std::uint64_t> sizes;
    for (const auto& text : request_.sizes) {
        const auto bytes = parse_bytes(text);
        if (!bytes || *bytes == 0 || *bytes > 0x7fffffff) {
            fmt::print(stderr, "thalweg bench: --bytes {}: give sizes from 1 to 2147483647, like 64K or 4M\n",
                       text);
            return 2;
        }
        sizes.push_back(*bytes);
    }
    if (!request_.out.empty() && !read_rows({request_.out}, rows_, why)) {
        fmt::print(stderr, "thalweg bench: {}\n", why);
        return 2;
    }
    if (request_.rings) {
        const bool measured = measure_rings(sizes);
        fmt::print("{}", format_rings(rows_, false));
        return measured ? 0 : 1;
    }
    bool good = screen(sizes);
    if (good && !request_.screen_only) good = decide(sizes);
    const auto here = rows_here();
    if (!request_.demo) fmt::print("{}\n", format_columns(here));
    fmt::print("{}", format_table(summarize(here), false));
    std::uint64_t wrong = 0;
    for (const auto& row : here) wrong += row.wrong_words;
    if (wrong != 0) fmt::print("{} WRONG WORDS were received\n", wrong);
    return good && wrong == 0 ? 0 : 1;
}

int show_table(const std::vector<std::string>& files, bool markdown, bool columns) {
    std::vector<Row> rows;
    std::string why;
    if (!read_rows(files, rows, why)) {
        fmt::print(stderr, "thalweg bench: {}\n", why);
        return 2;
    }
    if (columns) fmt::print("{}\n", format_columns(rows));
    const auto lines = summarize(rows);
    fmt::print("{}", format_table(lines, markdown));
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
    std::string why;
    if (!read_rows(files, rows, why)) {
        fmt::print(stderr, "thalweg bench: {}\n", why);
        return 2;
    }
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

}  // namespace
}  // namespace thalweg::bench

int bench_main(int argc, char** argv) {
    using namespace thalweg::bench;
    CLI::App app{"Measures collectives: native algorithms and ours, interleaved, every byte checked",
                 "thalweg bench"};
    app.require_subcommand(1);
    Request request;
    auto* bcast = app.add_subcommand("bcast", "broadcast");
    bcast->add_option("--mpi", request.shape.mpi, "mpich, openmpi, impi, mpich-debian or openmpi-debian")
        ->capture_default_str();
    bcast->add_option("--hosts", request.shape.hosts, "hosts of the lab; 0: this host without a lab")
        ->capture_default_str();
    bcast->add_option("--ppn", request.shape.ppn, "ranks per host")->capture_default_str();
    bcast->add_option("--rate", request.shape.rate, "rate of each link, each direction")
        ->capture_default_str();
    bcast->add_option("--rails", request.shape.rails, "links per host")->capture_default_str();
    bcast->add_option("--bytes", request.sizes, "sizes, comma-separated")
        ->delimiter(',')
        ->capture_default_str();
    // A choice may hold commas itself, so it is one per option.
    std::vector<std::string> ours;
    bcast->add_option("--ours", ours,
                      "an algorithm of ours to measure besides the automatic choice (repeatable)");
    bcast->add_option("--screen-samples", request.screen_samples, "samples of each column at first")
        ->check(CLI::Range(1, 1000));
    bcast->add_option("--decide-samples", request.decide_samples, "pairs below 4 MiB")
        ->check(CLI::Range(1, 10000));
    bcast->add_option("--decide-samples-large", request.decide_samples_large, "pairs from 4 MiB")
        ->check(CLI::Range(1, 10000));
    bcast->add_flag("--rings", request.rings, "only the closed against the trimmed ring, one rank per host");
    bcast->add_flag("--screen-only", request.screen_only, "stop after the first look");
    bcast->add_flag("--again", request.again, "decide once more with three times the pairs");
    bcast->add_flag("--force", request.force, "measure although the lab is over its capacity");
    bcast->add_flag("--demo", request.demo, "the main table only");
    bcast->add_option("--out", request.out,
                      "JSON lines to append to; an interrupted sweep goes on from there");
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
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        const int status = app.exit(error);
        return status == 0 ? 0 : 2;
    }
    if (!ours.empty()) request.ours = ours;
    if (bcast->parsed()) return Sweep(request).run();
    if (table->parsed()) return show_table(files, markdown, columns);
    if (pages->parsed()) return write_document(files, page);
    return draw(files, picture);
}
