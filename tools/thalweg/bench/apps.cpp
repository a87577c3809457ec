#include "bench/apps.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench/amr.h"
#include "bench/apps_table.h"
#include "bench/carried.h"
#include "bench/resume.h"
#include "common/report.h"

namespace thalweg::bench {
namespace {

namespace fs = std::filesystem;

std::string own_path() { return fs::read_symlink("/proc/self/exe").string(); }

std::string read_file(const fs::path& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// The exit status; the command's standard output is dropped.
int run_quietly(std::vector<std::string> words) {
    const pid_t self = getpid(), child = fork();
    if (child == 0) {
        end_with(self);
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nowhere, STDOUT_FILENO);
        std::vector<char*> arguments;
        for (auto& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        execv(arguments[0], arguments.data());
        _exit(127);
    }
    return await_launched(child);
}

// Whether a row is of this very problem.
bool is_of(const Row& row, const AppCase& app) {
    if (row.phase != (app.app == amr_app ? amr_phase : apps_phase) || row.collective != app.app) return false;
    const nlohmann::json& parameters = row.app.at("parameters");
    for (const auto& [name, value] : app.known.items())
        if (!parameters.contains(name) || parameters.at(name) != value) return false;
    return true;
}

// The rows of a launch of any other application, as amr_rows() makes them: the seconds are those of whole
// runs.
bool report_rows(const AppCase& app, const std::string& text, const std::string& side, int round,
                 std::vector<Row>& rows, std::string& why) {
    std::vector<apps::Report> reports;
    if (!apps::read_reports(text, reports, why)) return false;
    for (const auto& report : reports)
        for (const auto& series : report.series) {
            Row row;
            row.context["mpi"] = report.library;
            row.collective = app.app;
            row.column = app_column(side, series.version);
            row.phase = apps_phase;
            row.bytes = report.parameters.value("bytes", std::uint64_t{0});
            row.wrong_words = series.wrong.empty() ? 0 : 1;
            row.app = {{"parameters", report.parameters},
                       {"round", round},
                       {"wrong", series.wrong},
                       {"checked", report.checked},
                       {"samples", apps::to_json(series.samples)}};
            for (const auto& sample : series.samples) row.seconds.push_back(sample.total);
            rows.push_back(std::move(row));
        }
    return true;
}

class AppsBench {
  public:
    explicit AppsBench(const AppsRequest& request) : request_(request) {
        folder_ = fs::temp_directory_path() / fmt::format("thalweg-apps-{}", getpid());
        fs::create_directories(folder_);
    }
    ~AppsBench() {
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }

    int run();

  private:
    bool launch(const AppCase& app, const std::string& side, int round, std::string& why);
    bool has(const AppCase& app, const std::string& side, int round) const;
    void print_tables() const;

    const AppsRequest& request_;
    fs::path folder_;
    std::vector<Row> rows_;
};

bool AppsBench::has(const AppCase& app, const std::string& side, int round) const {
    for (const auto& row : rows_)
        if (is_of(row, app) && row.column.starts_with(side + "/") && row.app.value("round", -1) == round &&
            measured_here(row, request_.shape))
            return true;
    return false;
}

bool AppsBench::launch(const AppCase& app, const std::string& side, int round, std::string& why) {
    const Shape& shape = request_.shape;
    const fs::path lines = folder_ / "lines.jsonl", facts = folder_ / "lab.json",
                   told = folder_ / "report.json";
    fs::remove(lines);
    fs::remove(told);
    const std::string self = own_path();
    std::vector<std::string> words = lab_run(shape);
    words.insert(words.end(), {"--json", facts.string()});
    if (request_.force) words.push_back("--force");
    words.push_back("--");
    if (side == thalweg_side) words.insert(words.end(), {self, "run", "--report", told.string(), "--"});
    const std::string family = shape.mpi.starts_with("openmpi") ? "-ompi" : "-mpich";
    words.push_back((fs::path(self).parent_path() / (app.program + family)).string());
    words.insert(words.end(), app.options.begin(), app.options.end());
    words.insert(words.end(), {"--repeat", std::to_string(app.repeat), "--json", lines.string()});
    if (side == again_side) words.insert(words.end(), {"--version", app.again});
    const int status = run_quietly(words);
    if (interrupted()) {
        why = "interrupted; the rounds that are whole are kept";
        return false;
    }

    std::vector<Row> fresh;
    const std::string text = read_file(lines);
    const bool read = app.app == amr_app ? amr_rows(text, side, round, fresh, why)
                                         : report_rows(app, text, side, round, fresh, why);
    if (!read) return false;
    const auto facts_json = nlohmann::json::parse(read_file(facts), nullptr, false);
    nlohmann::json context = session_context(shape);
    if (facts_json.is_object()) {
        context["hosts"] = facts_json.at("hosts");
        context["ranks"] = facts_json.at("ranks");
        if (facts_json.contains("settings")) context["settings"].update(facts_json["settings"]);
        context["settings"]["THALWEG_LAB_WAITING"] = facts_json.at("waiting");
        // As text, as the ranks of the other benches find them in their environment.
        context["settings"]["THALWEG_LAB_RATE_BYTES_PER_S"] = facts_json.at("rate_bytes_per_s").dump();
        context["settings"]["THALWEG_LAB_LATENCY_S"] = facts_json.at("latency_s").dump();
        context["settings"]["THALWEG_LAB_BURST_BYTES"] = facts_json.at("burst_bytes").dump();
    }
    const auto number =
        static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    const auto report = nlohmann::json::parse(read_file(told), nullptr, false);
    for (auto& row : fresh) {
        context["mpi"] = row.context.at("mpi");
        row.context = context;
        row.launch = number;
        if (side != thalweg_side) continue;
        const std::string version = row.column.substr(app_column(side, "").size());
        const Carried carried = carried_by(report, operation_of(app.app, version));
        if (carried.transport.empty()) continue;
        row.context["transport"] = carried.transport;
        row.context["waiting"] = carried.waiting;
    }
    rows_.insert(rows_.end(), fresh.begin(), fresh.end());
    if (!request_.out.empty() && !append_rows(request_.out, fresh, why)) return false;
    if (status != 0)
        why = fmt::format("{} {} under {} on {} ended with status {}", side, app.app, shape.mpi, shape.text(),
                          status);
    return status == 0;
}

void AppsBench::print_tables() const {
    std::vector<Row> here;
    for (const auto& row : rows_)
        if (measured_here(row, request_.shape)) here.push_back(row);
    const auto lines = summarize_apps(here);
    if (!lines.empty())
        fmt::print("{}\n{}", format_app_figures(lines, false), format_app_versions(lines, false));
    const auto meshes = summarize_amr(here);
    if (!meshes.empty())
        fmt::print("{}{}\n{}", lines.empty() ? "" : "\n", format_amr_figures(meshes, false),
                   format_amr_versions(meshes, false));
}

int AppsBench::run() {
    std::string why;
    const auto refuse = [&why](int status) {
        fmt::print(stderr, "thalweg bench: {}\n", why);
        return status;
    };
    const double rate = bytes_per_second(request_.shape.rate);
    if (rate <= 0) {
        why = "--rate " + request_.shape.rate + ": give a rate like 100mbit";
        return refuse(2);
    }
    if (!read_rows_before(request_.out, rows_, why)) return refuse(2);
    std::vector<AppCase> cases;
    for (const auto& name : request_.apps) {
        AppCase app;
        if (name == amr_app) {
            for (auto& each : amr_cases()) cases.push_back(std::move(each));
        } else if (find_app(name, request_.shape, rate, app)) {
            cases.push_back(std::move(app));
        } else {
            why = "there is no application " + name + "; there are radix_sort, conjugate_gradient and amr";
            return refuse(2);
        }
    }
    for (const AppCase& app : cases)
        for (int round = 0; round < request_.rounds; ++round) {
            const auto whole = static_cast<std::ptrdiff_t>(rows_.size());
            for (const char* side : {native_side, thalweg_side, again_side}) {
                if (has(app, side, round)) continue;
                fmt::print(stderr, "bench: {}, round {} of {}, {}\n", app.app, round + 1, request_.rounds,
                           side);
                if (launch(app, side, round, why)) continue;
                if (!interrupted()) return refuse(1);
                rows_.erase(rows_.begin() + whole, rows_.end());
                print_tables();
                return refuse(1);
            }
        }
    print_tables();
    return 0;
}

}  // namespace

int run_apps(const AppsRequest& request) { return AppsBench(request).run(); }

}  // namespace thalweg::bench
