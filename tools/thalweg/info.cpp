// thalweg info [--json] [PROGRAM ARGUMENTS…]: version, builds, the MPI that would be used, options in effect,
// algorithms.
#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "algorithms/algorithm.h"
#include "algorithms/option_check.h"
#include "base/text.h"
#include "json_text.h"
#include "launch.h"
#include "select/select.h"
#include "thalweg/thalweg.h"
#include "verb.h"

extern char** environ;

namespace thalweg::tool {

namespace {

std::string version_text() {
    return fmt::format("{}.{}.{}", THALWEG_VERSION_MAJOR, THALWEG_VERSION_MINOR, THALWEG_VERSION_PATCH);
}

struct Build {
    std::string_view abi;
    std::string path;  // empty: not there
};

std::vector<Build> builds(const Settings& settings) {
    std::vector<Build> all;
    for (Abi abi : {Abi::mpich, Abi::ompi, Abi::standard})
        all.push_back(
            {name_of(abi), find_object(fmt::format("libthalweg-{}.so", name_of(abi)), settings.home.view())});
    return all;
}

// The machine as this process may use it: a container or a launcher may leave it less than there is.
struct Cores {
    int usable = 0, online = 0;
};

Cores cores() {
    Cores found;
    found.online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    // A mask too short for the machine fails with EINVAL: ask again with a longer one.
    for (int room = 1024; room <= 1 << 20; room *= 2) {
        cpu_set_t* mask = CPU_ALLOC(room);
        const int error = sched_getaffinity(0, CPU_ALLOC_SIZE(room), mask);
        if (error == 0) found.usable = CPU_COUNT_S(CPU_ALLOC_SIZE(room), mask);
        CPU_FREE(mask);
        if (error == 0) break;
    }
    return found;
}

// Tuning tables that will not count, as rank 0 of a job would say in MPI_Init.
void look_at_table(const Settings& settings, std::vector<Complaint>& complaints) {
    if (settings.tuning.empty()) return;
    const std::string path(settings.tuning.view());
    std::ifstream file(path);
    file.peek();  // a folder can be opened, and not read
    std::stringstream content;
    content << file.rdbuf();
    std::string why, fault;
    if (!file)
        fault = " cannot be read";
    else if (failed(check_table(content.str(), why)))
        fault = ": " + why;
    if (!fault.empty())
        complaints.push_back(
            {LogLevel::warn, "THALWEG_TUNING: " + path + fault + "; the built-in tables count"});
}

std::string parameters_text(const Algorithm& algorithm) {
    std::string text;
    for (const Parameter& parameter : algorithm.parameters) {
        // Only sizes are worth a unit; the name says which parameter is one.
        const bool bytes = parameter.name.find("bytes") != std::string_view::npos;
        auto value = [bytes](std::uint64_t v) { return bytes ? bytes_text(v) : std::to_string(v); };
        text += fmt::format("{}{}={} ({}..{})", text.empty() ? "" : ", ", parameter.name,
                            value(parameter.standard), value(parameter.minimum), value(parameter.maximum));
    }
    for (const Part& part : algorithm.parts)
        text += fmt::format("{}{}={} (any algorithm)", text.empty() ? "" : ", ", part.name, part.standard);
    return text;
}

nlohmann::json to_json(const Finding& finding) {
    if (finding.outcome != Outcome::found) return nullptr;
    return {{"path", finding.library.path},
            {"family", finding.library.family},
            {"abi", name_of(finding.library.abi)},
            {"via", finding.via}};
}

int print_json(const Settings& settings, const std::vector<Complaint>& complaints, const Finding& finding,
               const std::string& mpi_sentence) {
    nlohmann::json all = {{"version", version_text()}, {"mpi", to_json(finding)}, {"mpi_text", mpi_sentence}};
    all["machine"] = {{"usable_cores", cores().usable}, {"online_cores", cores().online}};
    for (const Build& build : builds(settings))
        all["builds"][std::string(build.abi)] =
            build.path.empty() ? nlohmann::json() : nlohmann::json(build.path);
    for (std::size_t i = 0; i < option_count; ++i) {
        const Option& option = options()[i];
        all["options"].push_back({{"variable", option.variable},
                                  {"flag", flag_of(option)},
                                  {"value", settings.value_text(i)},
                                  {"origin", name_of(settings.origin[i])},
                                  {"default", option.standard},
                                  {"accepted", option.accepted},
                                  {"unit", option.unit},
                                  {"text", option.text}});
    }
    all["complaints"] = nlohmann::json::array();
    for (const Complaint& complaint : complaints) all["complaints"].push_back(complaint.sentence);
    for (const Algorithm& algorithm : algorithms()) {
        nlohmann::json row = {{"collective", name_of(algorithm.collective)},
                              {"name", algorithm.name},
                              {"summary", algorithm.summary},
                              {"parameters", nlohmann::json::array()},
                              {"parts", nlohmann::json::array()}};
        for (const Part& part : algorithm.parts)
            row["parts"].push_back({{"name", part.name}, {"default", part.standard}});
        for (const Parameter& parameter : algorithm.parameters)
            row["parameters"].push_back({{"name", parameter.name},
                                         {"default", parameter.standard},
                                         {"minimum", parameter.minimum},
                                         {"maximum", parameter.maximum},
                                         {"text", parameter.text}});
        all["algorithms"].push_back(std::move(row));
    }
    fmt::print("{}\n", json_text(all, 2));
    return exit_ok;
}

int print_text(const Settings& settings, const std::vector<Complaint>& complaints,
               const std::string& mpi_sentence) {
    fmt::print("thalweg {}\n\nbuilds\n", version_text());
    for (const Build& build : builds(settings))
        fmt::print("  {:<8}{}\n", build.abi,
                   build.path.empty() ? "not in " + object_folder(settings.home.view()) : build.path);
    const Cores available = cores();
    fmt::print("\nmachine\n  {} of {} cores usable by this process\n", available.usable, available.online);
    fmt::print("\nmpi\n  {}\n\noptions in effect\n", mpi_sentence);
    for (std::size_t i = 0; i < option_count; ++i) {
        const Option& option = options()[i];
        const std::string value = settings.value_text(i);
        fmt::print("  {:<26}{:<14}{:<13}{}\n", option.variable, value.empty() ? "none" : value,
                   name_of(settings.origin[i]), option.text);
    }
    for (const Complaint& complaint : complaints) fmt::print("  ! {}\n", complaint.sentence);
    fmt::print("\nalgorithms\n");
    for (const Algorithm& algorithm : algorithms()) {
        fmt::print("  {:<36}{}\n", fmt::format("{}/{}", name_of(algorithm.collective), algorithm.name),
                   algorithm.summary);
        if (const std::string parameters = parameters_text(algorithm); !parameters.empty())
            fmt::print("  {:<36}{}\n", "", parameters);
    }
    return exit_ok;
}

// Pre: find_in_path() finds none.
std::string why_no_program(const std::string& program, const Environment& environment) {
    for (const std::string& place : places_in_path(program, environment))
        if (is_regular_file(place))
            return place + " is a file that cannot be started: make it executable (chmod +x) or name another";
    return "there is no program " + program;
}

}  // namespace

}  // namespace thalweg::tool

int info_main(int argc, char** argv) {
    using namespace thalweg;
    using namespace thalweg::tool;
    CLI::App app{
        "thalweg info [OPTIONS] [PROGRAM [ARGUMENTS…]]\n"
        "Version, builds, the MPI that PROGRAM (or PATH's mpiexec) uses, options in effect, algorithms.",
        "info"};
    bool json = false, markdown = false;
    app.add_flag("--json", json, "print JSON");
    app.add_flag("--options-markdown", markdown, "print the text of docs/options.md");
    app.prefix_command();
    if (const auto status = parse(app, argc, argv)) return *status;
    if (markdown) {
        fmt::print("{}", options_markdown());
        return exit_ok;
    }
    const std::vector<std::string> command = app.remaining();
    if (!command.empty() && command.front().empty())
        return usage_error("info", "PROGRAM is empty: a variable that should name it may not be set");
    if (!command.empty() && command.front()[0] == '-')
        return usage_error("info", command.front() + " is not an option; see `thalweg info --help`");

    const Environment environment(environ);
    if (!command.empty() && find_in_path(command.front(), environment).empty())
        return usage_error("info", why_no_program(command.front(), environment));
    std::vector<Complaint> complaints;
    const Settings settings = Settings::from_environment(environ, complaints, check_option);
    look_at_table(settings, complaints);
    const bool named = !settings.mpi_library.empty();
    std::string sentence;
    const Finding finding = named             ? find_named_mpi(settings, sentence)
                            : command.empty() ? find_path_mpi(environment)
                                              : find_mpi(command, environment);
    if (finding.outcome == Outcome::found)
        sentence = fmt::format("{} {}, build {}{}", finding.library.family, finding.library.path,
                               name_of(finding.library.abi), finding.via.empty() ? "" : ", " + finding.via);
    else if (sentence.empty())
        sentence = command.empty() && !named
                       ? "no MPI library beside PATH's mpiexec; name a program: thalweg info PROGRAM"
                       : explain_outcome(finding, named ? finding.culprit : command.front());
    return json ? print_json(settings, complaints, finding, sentence)
                : print_text(settings, complaints, sentence);
}
