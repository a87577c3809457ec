// Lists on command lines, with commas between their elements.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

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

}  // namespace thalweg::apps
