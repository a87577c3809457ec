#include "verb.h"

#include <fmt/core.h>

#include <cctype>

namespace thalweg::tool {

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
    const std::string verb = argv[0];
    app.name("thalweg " + verb);
    try {
        app.parse(argc, argv);
        return std::nullopt;
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return exit_ok;
    } catch (const CLI::ParseError& error) {
        std::string sentence = error.what();
        // "A subcommand is required", but not "PROGRAM is missing" nor "--bytes".
        if (sentence.size() > 1 && !std::isupper(static_cast<unsigned char>(sentence[1])))
            sentence[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(sentence[0])));
        std::string words = verb;
        for (const CLI::App* each : app.get_subcommands()) words += " " + each->get_name();
        return usage_error(verb, sentence + "; see `thalweg " + words + " --help`");
    }
}

int usage_error(std::string_view verb, std::string_view sentence) {
    fmt::print(stderr, "thalweg {}: {}\n", verb, sentence);
    return exit_usage;
}

}  // namespace thalweg::tool
