// thalweg run [OPTIONS] [--] PROGRAM ARGUMENTS…: becomes the program, with the preload objects of its MPI.
#include <errno.h>
#include <fmt/core.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "algorithms/option_check.h"
#include "base/log.h"
#include "launch.h"
#include "verb.h"

extern char** environ;

namespace thalweg::tool {

namespace {

std::string option_help(const Option& option) {
    std::string text = std::string(option.text) + " (" + std::string(option.accepted);
    if (!option.unit.empty()) text += ", " + std::string(option.unit);
    return text + "; default " + (option.standard.empty() ? "none" : std::string(option.standard)) + ")";
}

// The options given on the command line become the environment variables of the same rows.
std::optional<int> apply_flags(const std::array<std::string, option_count>& values, const CLI::App& app,
                               Environment& environment) {
    for (std::size_t i = 0; i < option_count; ++i) {
        const Option& option = options()[i];
        if (app.count(flag_of(option)) == 0) continue;
        Settings settings;
        std::string why;
        if (settings.set(option.variable, values[i], Origin::command_line, why, check_option) != Status::ok)
            return usage_error("run", why);
        environment.set(option.variable, values[i]);
    }
    return std::nullopt;
}

std::optional<int> refuse_unknown_option(const std::string& word) {
    if (word.size() < 2 || word[0] != '-') return std::nullopt;
    std::vector<std::string> flags = {"--dry-run", "--help"};
    for (const Option& option : options()) flags.push_back(flag_of(option));
    const std::vector<std::string_view> names(flags.begin(), flags.end());
    const std::string_view nearest = nearest_name(word.substr(0, word.find('=')), names);
    return usage_error("run", word + " is not an option" +
                                  (nearest.empty() ? std::string("; see `thalweg run --help`")
                                                   : "; maybe " + std::string(nearest) + "?"));
}

// What the kernel means by "No such file" of a file that is there: what its first line, or its header, names.
std::string missing_interpreter(const std::string& program, const Environment& environment) {
    const std::string path = find_in_path(program, environment);
    if (path.empty()) return {};
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    const std::string_view blanks = " \t\r";
    const std::size_t begin = line.starts_with("#!") ? line.find_first_not_of(blanks, 2) : line.npos;
    if (begin == line.npos) return "the loader that it names is not on this machine";
    const std::string name = line.substr(begin, line.find_first_of(blanks, begin) - begin);
    return "its first line names " + name + (line.ends_with('\r') ? " and ends with a carriage return" : "") +
           ", which cannot be started";
}

int cannot_start(const std::string& program, int error, const Environment& environment) {
    std::string why = error == ENOENT ? missing_interpreter(program, environment) : std::string();
    if (why.empty()) why = strerror(error);
    fmt::print(stderr, "thalweg run: cannot start {}: {}\n", program, why);
    return error == ENOENT ? exit_not_found : exit_not_executable;
}

// What starting `program` would end with, as far as its name tells; 0: nothing. As execvp has it: a file that
// may not be started, or looked for, anywhere on PATH counts for more than all the places where there is
// none.
int error_of_name(const std::string& program, const Environment& environment) {
    if (!find_in_path(program, environment).empty()) return 0;
    int error = ENOENT;
    bool refused = false;
    for (const std::string& place : places_in_path(program, environment)) {
        error = access(place.c_str(), F_OK) == 0 ? EACCES : errno;
        refused |= error == EACCES;
    }
    return refused ? EACCES : error;
}

void print_plan(const std::vector<std::string>& command, const Launch& launch,
                const Environment& environment) {
    const Finding& finding = launch.finding;
    fmt::print("program              {}\n", find_in_path(command.front(), environment));
    if (finding.outcome == Outcome::found) {
        fmt::print("mpi                  {}\n", finding.library.path);
        fmt::print("family               {}\n", finding.library.family);
        fmt::print("abi                  {}\n", name_of(finding.library.abi));
        if (!finding.via.empty()) fmt::print("found                {}\n", finding.via);
    }
    fmt::print("decision             {}: {}\n", launch.intercepted ? "intercept" : "unchanged",
               launch.sentence);
    for (std::string_view name : {"LD_PRELOAD", "THALWEG_PRELOADED_MPI", "FI_PROVIDER_PATH"})
        if (const auto value = environment.find(name)) fmt::print("{:<20} {}\n", name, *value);
    for (const Option& option : options())
        if (const auto value = environment.find(option.variable))
            fmt::print("{:<20} {}\n", option.variable, *value);
}

}  // namespace

}  // namespace thalweg::tool

int run_main(int argc, char** argv) {
    using namespace thalweg;
    using namespace thalweg::tool;
    CLI::App app{
        "mpiexec … thalweg run [OPTIONS] [--] PROGRAM [ARGUMENTS…]\n"
        "Starts an MPI program with Thalweg: finds the MPI library that PROGRAM would load and preloads what "
        "fits.\n"
        "The exit status is the program's own. A program without MPI runs unchanged.",
        "run"};
    std::array<std::string, option_count> values;
    for (std::size_t i = 0; i < option_count; ++i)
        app.add_option(flag_of(options()[i]), values[i], option_help(options()[i]))->group("Settings");
    bool dry_run = false;
    app.add_flag("--dry-run", dry_run, "print what would be done and stop");
    app.prefix_command();  // everything from PROGRAM on is the program's

    // CLI11 would take options behind a leading "--" for ours.
    int own = 1;
    while (own < argc && std::string_view(argv[own]) != "--") ++own;
    if (const auto status = parse(app, own, argv)) return *status;
    std::vector<std::string> command = app.remaining();
    if (!command.empty())
        if (const auto status = refuse_unknown_option(command.front())) return *status;
    command.insert(command.end(), argv + (own < argc && command.empty() ? own + 1 : own), argv + argc);
    if (command.empty()) return usage_error("run", "PROGRAM is missing; see `thalweg run --help`");
    if (command.front().empty())
        return usage_error("run", "PROGRAM is empty: a variable that should name it may not be set");

    Environment environment(environ);
    if (const auto status = apply_flags(values, app, environment)) return *status;
    std::vector<Complaint> complaints;  // told by the preload objects, where rank 0 speaks for all
    const Settings settings =
        Settings::from_environment(environment.pointers().data(), complaints, check_option);
    set_log_level(settings.log);
    const Launch launch = prepare_launch(command, settings, environment);
    if (dry_run) {
        if (const int error = error_of_name(command.front(), environment))
            return cannot_start(command.front(), error, environment);
        for (const Complaint& complaint : complaints) THALWEG_LOG_AT(warn, "%s", complaint.sentence.c_str());
        print_plan(command, launch, environment);
        return exit_ok;
    }
    const bool can_start = !find_in_path(command.front(), environment).empty();
    if (can_start && !launch.sentence.empty() && speaks_for_job(environment)) {
        if (launch.level == LogLevel::info)
            THALWEG_LOG_AT(info, "%s", launch.sentence.c_str());
        else
            THALWEG_LOG_AT(warn, "%s", launch.sentence.c_str());
    }

    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvpe(arguments[0], arguments.data(), environment.pointers().data());
    return cannot_start(command.front(), errno, environment);
}
