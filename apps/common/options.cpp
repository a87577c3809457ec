#include "common/options.h"

#include <CLI/CLI.hpp>

#include "common/number_within.h"
#include "common/words.h"

namespace thalweg::apps {

void CommonOptions::add_to(CLI::App& app, const std::string& unit) {
    app.add_option(
           "--version", version_names,
           "what to run, in turns: blocking, waited (nonblocking, but waited for at once), nonblocking, "
           "manual (nonblocking with MPI_Test between pieces of the work)")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--pieces", pieces,
                   "pieces of the work in the manual version; several make several versions")
        ->delimiter(',')
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--slowdown", slowdown,
                   "seconds to sleep, outside MPI, for each " + unit + "; stands for slower computing")
        ->check(number_within(0, 3600))
        ->capture_default_str();
    app.add_option("--repeat", repeat, "timed runs of each version")
        ->check(CLI::Range(1, 100000))
        ->capture_default_str();
    app.add_option("--warm-up", warm_up, "runs of each version before, not timed but checked")
        ->check(CLI::Range(0, 100000))
        ->capture_default_str();
    app.add_option("--json", json, "file to which one JSON line per version is added");
    app.add_flag("--damage", damage, "change one result before it is checked: the check must fail");
}

CommandLine::CommandLine(const std::string& about, const std::string& name)
    : name_(name), app_(std::make_unique<CLI::App>(about, name)) {}

CommandLine::~CommandLine() = default;

CommandLine::Answer CommandLine::parse(int argc, char** argv) {
    read_in_decimal(*app_);
    if (const std::string why = empty_element(*app_, argc, argv); !why.empty())
        return {Answer::Kind::mistake, why};
    if (const std::string option = option_for_value(*app_, argc, argv); !option.empty())
        return {Answer::Kind::mistake, option + " needs a value"};
    try {
        app_->parse(argc, argv);
        return {Answer::Kind::options, ""};
    } catch (const CLI::CallForHelp&) {
        return {Answer::Kind::help, app_->help()};
    } catch (const CLI::ParseError& error) {
        return {Answer::Kind::mistake, error.what()};
    }
}

}  // namespace thalweg::apps
