#include "bench/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "bench/resume.h"
#include "lab/lab.h"
#include "shell_words.h"

namespace thalweg::bench {
namespace {

namespace fs = std::filesystem;

constexpr double grace_seconds = 10;  // for a launch that was asked to end

std::string own_path() { return fs::read_symlink("/proc/self/exe").string(); }

// The first line a command prints; empty when it fails.
std::string first_line(const std::string& command) {
    std::string line;
    if (FILE* pipe = popen(command.c_str(), "r")) {
        char text[256];
        if (std::fgets(text, sizeof text, pipe) != nullptr) line = text;
        if (pclose(pipe) != 0) line.clear();
    }
    while (!line.empty() && line.back() == '\n') line.pop_back();
    return line;
}

std::string source_commit() {
    const std::string folder = fs::path(own_path()).parent_path().string();
    const std::string git = "git -C " + tool::shell_quoted(folder);
    std::string commit = first_line(git + " rev-parse --short HEAD 2>/dev/null");
    if (commit.empty()) return "released";
    // Results are not what was measured with.
    const std::string changes =
        " status --porcelain --untracked-files=no -- ':/' ':(top,exclude)bench/results' "
        "':(top,exclude)docs/measurements.md' 2>/dev/null";
    if (!first_line(git + changes).empty()) commit += "+";
    return commit;
}

std::string now_text() {
    const std::time_t now = std::time(nullptr);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    return text;
}

// "AMD EPYC, 2 cores, Linux 6.18.1": what figures of one machine are not to be mixed with those of another
// for.
std::string machine() {
    std::string model = "an unknown CPU";
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
            model = line.substr(line.find(": ") + 2);
            break;
        }
    const std::string with_cores = fmt::format("{}, {} cores", model, std::thread::hardware_concurrency());
    utsname system{};
    return uname(&system) == 0 ? fmt::format("{}, {} {}", with_cores, system.sysname, system.release)
                               : with_cores;
}

// The bench program of this MPI's ABI family.
std::string driver_path(const std::string& mpi) {
    std::string ignored;
    return program_of_build(mpi.starts_with("openmpi") ? "thalweg-bench-ompi" : "thalweg-bench-mpich",
                            ignored);
}

// Without a lab, from where that takes it. Throws with one sentence where there is none.
lab::MpiInstall local_mpi(const std::string& mpi) { return lab::find_mpi(lab::parse_mpi(mpi), ""); }

std::vector<std::string> command_line(const Launch& launch, const std::string& config,
                                      const std::string& out) {
    const std::string self = own_path();
    const Shape& shape = launch.shape;
    std::vector<std::string> words;
    if (shape.hosts > 0) {
        words = lab_run(shape);
        if (launch.force) words.push_back("--force");
        words.push_back("--");
    } else {
        words = {local_mpi(shape.mpi).launcher};
        if (shape.mpi.starts_with("openmpi"))
            words.insert(words.end(), {"--oversubscribe", "--bind-to", "none"});
        words.insert(words.end(), {"-n", std::to_string(shape.ppn)});
    }
    words.insert(words.end(), {self, "run", "--", driver_path(shape.mpi), config, out});
    return words;
}

// The bench program asks for MPICH's library by the name that MPICH gives it, Debian by another. Makes a link
// in `folder`, where a loader is to look. Empty: there is nothing to link.
std::string folder_of_debian_mpich(const fs::path& folder) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/usr/lib", error)) {
        const fs::path library = entry.path() / "libmpich.so.12";
        if (!fs::exists(library, error)) continue;
        fs::create_directories(folder);
        fs::remove(folder / "libmpi.so.12", error);
        fs::create_symlink(library, folder / "libmpi.so.12");
        return folder.string();
    }
    return "";
}

// An MPI outside the lab needs its libraries and permission to run as root; the lab sets these itself.
void set_local_environment(const Shape& shape) {
    const lab::MpiInstall install = local_mpi(shape.mpi);
    // The system's own are where the loader looks.
    const std::string root = install.libraries.empty() ? "" : install.root;
    if (!root.empty()) setenv("LD_LIBRARY_PATH", install.libraries.c_str(), 1);
    if (shape.mpi.starts_with("openmpi")) {
        if (!root.empty()) setenv("OPAL_PREFIX", root.c_str(), 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    } else if (shape.mpi == "impi") {
        setenv("I_MPI_ROOT", root.c_str(), 1);
        setenv("I_MPI_FABRICS", "shm", 1);
    }
}

// The signal that interrupted this program while it launched; 0: none did.
volatile std::sig_atomic_t interrupting_signal = 0;

// From now on such a signal ends the launch, and this program when what was measured is kept.
void note_interrupts() {
    struct sigaction note {};
    note.sa_handler = [](int signal) { interrupting_signal = signal; };
    note.sa_flags = SA_RESTART;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction before {};
        if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signal, &note, nullptr);
    }
}

struct Ended {
    int status = 0;  // as a shell would say it
    bool timed_out = false;
};

// The child is asked to end after `seconds` (0: never) or where this program is, and killed when it does not.
Ended await_child(pid_t child, double seconds) {
    using std::chrono::steady_clock;
    const auto begin = steady_clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(steady_clock::now() - begin).count(); };
    int status = 0;
    Ended ended;
    bool asked = false;
    double end = seconds > 0 ? seconds : std::numeric_limits<double>::infinity();
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (interrupted()) end = std::min(end, passed());
        if (!asked && passed() >= end) {
            asked = true;
            ended.timed_out = !interrupted();
            kill(child, SIGTERM);
        }
        if (passed() > end + grace_seconds) kill(child, SIGKILL);
        usleep(50'000);
    }
    ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return ended;
}

// `libraries`: a folder where a loader looks first; may be empty.
Ended run_command(std::vector<std::string> words, const Shape& shape, const std::string& environment,
                  const std::string& libraries, double timeout_seconds) {
    const pid_t self = getpid(), child = fork();
    if (child == 0) {
        end_with(self);
        if (shape.hosts == 0) set_local_environment(shape);
        if (!libraries.empty()) setenv("LD_LIBRARY_PATH", libraries.c_str(), 1);
        std::istringstream settings(environment);
        for (std::string setting; settings >> setting;) {
            const auto equal = setting.find('=');
            if (equal != std::string::npos)
                setenv(setting.substr(0, equal).c_str(), setting.substr(equal + 1).c_str(), 1);
        }
        std::vector<char*> arguments;
        for (auto& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        execv(arguments[0], arguments.data());
        _exit(127);
    }
    return await_child(child, timeout_seconds);
}

nlohmann::json configuration(const Launch& launch) {
    nlohmann::json config{{"collective", launch.collective},
                          {"columns", nlohmann::json::array()},
                          {"computes", launch.computes},
                          {"phase", launch.phase}};
    for (const auto& column : launch.columns) {
        config["columns"].push_back({{"name", column.name},
                                     {"native", column.native},
                                     {"controls", column.controls},
                                     {"always", always_measured(column.name)},
                                     {"option", column.option}});
        if (!column.way.empty()) config["columns"].back()["way"] = column.way;
        if (!column.variant.empty()) config["columns"].back()["variant"] = column.variant;
        if (!column.inside.empty()) config["columns"].back()["inside"] = column.inside;
    }
    config["points"] = nlohmann::json::array();
    for (const auto& point : launch.points) {
        std::vector<std::size_t> columns;
        for (std::size_t i = 0; i < launch.columns.size(); ++i)
            if (point.columns.empty() || point.columns.count(launch.columns[i].name) != 0)
                columns.push_back(i);
        config["points"].push_back({{"bytes", point.bytes},
                                    {"samples", point.samples},
                                    {"back_to_back", point.back_to_back},
                                    {"race", point.race},
                                    {"best_seconds", point.best_seconds},
                                    {"warm_up_bytes", point.warm_up_bytes},
                                    {"small_calls", point.small_calls},
                                    {"columns", columns}});
        if (!point.halo.is_null()) config["points"].back()["halo"] = point.halo;
        if (point.matrix.empty()) continue;
        config["points"].back()["pattern"] = point.pattern;
        config["points"].back()["matrix"] = point.matrix;
    }
    return config;
}

}  // namespace

std::string Shape::text() const { return fmt::format("{}x{}", std::max(1, hosts), ppn); }

std::vector<std::string> lab_run(const Shape& shape) {
    return {own_path(),
            "lab",
            "run",
            "--hosts",
            std::to_string(shape.hosts),
            "--ppn",
            std::to_string(shape.ppn),
            "--rate",
            shape.rate,
            "--rails",
            std::to_string(shape.rails),
            "--mpi",
            shape.mpi};
}

void end_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
}

nlohmann::json session_context(const Shape& shape) {
    nlohmann::json context{{"commit", source_commit()}, {"machine", machine()},
                           {"date", now_text()},        {"shape", shape.text()},
                           {"mpi_name", shape.mpi},     {"rate", shape.hosts > 0 ? shape.rate : ""},
                           {"rails", shape.rails}};
    if (const nlohmann::json settings = steering_settings(); !settings.empty())
        context["settings"] = settings;
    return context;
}

std::string program_of_build(const std::string& name, std::string& why) {
    const fs::path program = fs::path(own_path()).parent_path() / name;
    if (!fs::exists(program))
        why = program.string() +
              " is not there: `thalweg bench` measures from the folder in which Thalweg was built "
              "(build/bin/thalweg)";
    return program.string();
}

std::string why_not_measurable(const Shape& shape) {
    std::string why;
    std::error_code none;
    const fs::path temporary = fs::temp_directory_path(none);
    if (temporary.empty() || access(temporary.c_str(), W_OK | X_OK) != 0)
        return "there is no folder for temporary files: set TMPDIR to one that can be written";
    program_of_build(fs::path(driver_path(shape.mpi)).filename().string(), why);
    if (!why.empty() || shape.hosts > 0) return why;
    try {
        local_mpi(shape.mpi);
    } catch (const std::exception& none) {
        why = fmt::format("--hosts 0: {}", none.what());
    }
    return why;
}

int await_launched(pid_t child) {
    note_interrupts();
    return await_child(child, 0).status;
}

bool interrupted() { return interrupting_signal != 0; }

void end_if_interrupted() {
    if (!interrupted()) return;
    std::fflush(stdout);
    signal(interrupting_signal, SIG_DFL);
    raise(interrupting_signal);
}

bool run_launch(const Launch& launch, std::vector<Row>& rows, std::string& why) {
    end_if_interrupted();
    note_interrupts();
    const fs::path folder = fs::temp_directory_path() / fmt::format("thalweg-bench-{}", getpid());
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
        why = fmt::format("{} cannot be made: {}; set TMPDIR to a folder that can be written",
                          folder.string(), error.message());
        return false;
    }
    const std::string config = (folder / "config.json").string(), out = (folder / "rows.jsonl").string();
    fs::remove(out);
    std::ofstream asked(config);
    asked << configuration(launch).dump(1);
    asked.close();
    if (!asked) {
        fs::remove_all(folder, error);
        why = fmt::format("{} cannot be written: is there room in the folder for temporary files (TMPDIR)?",
                          config);
        return false;
    }
    const std::string environment = launch.columns.empty() ? "" : launch.columns[0].environment;
    const std::string libraries =
        launch.shape.mpi == "mpich-debian" ? folder_of_debian_mpich(folder / "lib") : "";
    const Ended ended = run_command(command_line(launch, config, out), launch.shape, environment, libraries,
                                    launch.timeout_seconds);

    nlohmann::json context = session_context(launch.shape);
    context["environment"] = environment;
    const auto number =
        static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    std::ifstream file(out);
    for (std::string text; std::getline(file, text);) {
        auto line = nlohmann::json::parse(text, nullptr, false);
        if (line.is_discarded()) continue;  // the driver died in the middle of this one
        if (line.at("kind") == "launch") {
            for (const char* key : {"mpi", "ranks", "hosts", "shared_clock", "settings"})
                if (line.contains(key)) context[key] = line[key];
            continue;
        }
        line["context"] = context;
        for (const char* key : {"transport", "waiting"})  // of this column
            if (line.contains(key)) line["context"][key] = line[key];
        line["phase"] = launch.phase;
        line["launch"] = number;
        rows.push_back(row_of(line));
    }
    fs::remove_all(folder);
    if (interrupted())
        why = fmt::format("interrupted; {} rows of this launch were complete", rows.size());
    else if (ended.timed_out)
        why = fmt::format("the launch of {} on {} did not end in {:.0f} s", launch.shape.mpi,
                          launch.shape.text(), launch.timeout_seconds);
    else if (ended.status != 0)
        why = fmt::format("the launch of {} on {} ended with status {}", launch.shape.mpi,
                          launch.shape.text(), ended.status);
    return ended.status == 0 && !ended.timed_out;
}

}  // namespace thalweg::bench
