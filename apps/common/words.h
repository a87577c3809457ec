// What is wrong with the words of a command line that CLI11 would take for something else.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace thalweg::apps {

// What is wrong with the first list that has an empty element, as "1K,,2K" and "1K," have: CLI11 would leave
// that out without a word. Empty: nothing. Looks behind options that have a delimiter, of `app` and of the
// subcommand that is named, up to a "--".
inline std::string empty_element(const CLI::App& app, int argc, char** argv) {
    const CLI::App* named = &app;
    const CLI::Option* list = nullptr;
    for (int i = 1; i < argc; ++i) {
        std::string word = argv[i];
        if (word == "--") break;
        if (word.starts_with("--")) {
            const std::size_t equal = word.find('=');
            list = named->get_option_no_throw(word.substr(0, equal));
            if (list != nullptr && list->get_delimiter() == '\0') list = nullptr;
            if (equal == word.npos) continue;
            word.erase(0, equal + 1);
        } else if (named == &app) {
            for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
                if (each->check_name(word)) named = each;
        }
        if (list == nullptr || word.empty()) continue;  // no value at all is told elsewhere
        if (word.front() == ',' || word.back() == ',' || word.find(",,") != word.npos)
            return list->get_name() + " " + word + " has an empty element: leave out the comma beside it";
    }
    return {};
}

// The first option whose value would be the option behind it, as in "--report --dry-run ./app": a file of
// that name would be written, and the other not count. Empty: none. Looks at the options of `app` and of the
// subcommand that is named, up to a "--" or a program that has words of its own.
inline std::string option_for_value(const CLI::App& app, int argc, char** argv) {
    const CLI::App* named = &app;
    const CLI::Option* before = nullptr;  // has its value in the next word
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const std::size_t equal = word.find('=');
        const CLI::Option* option = word.size() > 2 && word.starts_with("--")
                                        ? named->get_option_no_throw(word.substr(0, equal))
                                        : nullptr;
        if (before != nullptr && (option != nullptr || word == "--")) return before->get_name();
        const bool is_value = before != nullptr;
        before = option != nullptr && equal == word.npos && option->get_items_expected_max() > 0 ? option
                                                                                                 : nullptr;
        if (is_value || word.starts_with("--")) {
            if (word == "--") break;
            continue;
        }
        if (app.get_prefix_command()) break;
        if (named == &app)
            for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
                if (each->check_name(word)) named = each;
    }
    return {};
}

// What CLI11 says of a mistake in plain words, where it is about how many values an option has.
inline std::string in_plain_words(const std::string& sentence) {
    constexpr std::string_view lacking = ": 1 required ", repeated = ": At Most 1 required but received ";
    if (const std::size_t at = sentence.find(repeated); at != std::string::npos)
        return sentence.substr(0, at) + " is given " + sentence.substr(at + repeated.size()) +
               " times: give it once";
    if (const std::size_t at = sentence.find(lacking);
        at != std::string::npos && sentence.ends_with(" missing"))
        return sentence.substr(0, at) + " needs a value";
    return sentence;
}

}  // namespace thalweg::apps
