#include "verb.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <vector>

#include "base/standard_output.h"

namespace thalweg::tool {

namespace {

// The words of a command line, last first, as CLI11 takes them. It would read "--report= ./app" as "--report
// ./app", and run what comes behind; "--report=" is an empty value. Nothing is changed from a program on
// whose words are its own.
std::vector<std::string> reversed_words(const CLI::App& app, int argc, char** argv) {
    std::vector<std::string> words;
    bool is_value = false, ours = true;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const bool is_option = word.size() > 2 && word.starts_with("--");
        if (word == "--" || (app.get_prefix_command() && !is_option && !is_value)) ours = false;
        const bool emptied = ours && is_option && !is_value && word.find('=') == word.size() - 1;
        words.push_back(emptied ? word.substr(0, word.size() - 1) : word);
        if (emptied) words.emplace_back();
        const CLI::Option* option = is_option && !is_value ? app.get_option_no_throw(word) : nullptr;
        is_value = option != nullptr && option->get_items_expected_max() > 0;
    }
    std::reverse(words.begin(), words.end());
    return words;
}

}  // namespace

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
    const std::string verb = argv[0];
    app.name("thalweg " + verb);
    try {
        app.parse(reversed_words(app, argc, argv));
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

int finish_output(std::string_view verb, int status) {
    const std::string why = standard_output_failure();
    if (why.empty()) return status;
    fmt::print(stderr, "thalweg{}{}: {}\n", verb.empty() ? "" : " ", verb, why);
    return status == exit_ok ? exit_failure : status;
}

}  // namespace thalweg::tool
