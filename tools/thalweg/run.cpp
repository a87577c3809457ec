// thalweg run [OPTIONS] [--] PROGRAM ARGUMENTS…: becomes the program, with the preload objects of its MPI.
#include <errno.h>
#include <fmt/core.h>
#include <string.h>
#include <unistd.h>

#include <array>

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

    Environment environment(environ);
    if (const auto status = apply_flags(values, app, environment)) return *status;
    std::vector<Complaint> complaints;  // told by the preload objects, where rank 0 speaks for all
    const Settings settings =
        Settings::from_environment(environment.pointers().data(), complaints, check_option);
    set_log_level(settings.log);
    const Launch launch = prepare_launch(command, settings, environment);
    if (dry_run) {
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
    const int error = errno;
    fmt::print(stderr, "thalweg run: cannot start {}: {}\n", command.front(), strerror(error));
    return error == ENOENT ? exit_not_found : exit_not_executable;
}
