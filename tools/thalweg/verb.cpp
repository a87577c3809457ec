#include "verb.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <vector>

#include "base/standard_output.h"
#include "base/text.h"
#include "common/number_within.h"
#include "common/words.h"

namespace thalweg::tool {

namespace {

// The subcommand of `app` of that name, or `app`.
const CLI::App* subcommand_of(const CLI::App* app, const std::string& name) {
    for (const CLI::App* each : app->get_subcommands([](const CLI::App*) { return true; }))
        if (each->check_name(name)) return each;
    return app;
}

// What is wrong with the first word where it must be a subcommand and is none; CLI11 would answer with the
// help, or miss one. Empty: nothing.
std::string unknown_subcommand(const CLI::App& app, int argc, char** argv) {
    const std::string word = argc > 1 ? argv[1] : "";
    const bool expected = app.get_require_subcommand_min() > 0 && !word.empty() && word[0] != '-';
    if (!expected || subcommand_of(&app, word) != &app) return {};
    std::vector<std::string_view> names;
    for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(each->get_name());
    const std::string_view nearest = nearest_name(word, names);
    return "there is no subcommand " + word +
           (nearest.empty() ? "; `" + app.get_name() + " --help` lists them"
                            : "; maybe " + std::string(nearest) + "?");
}

// The words of a command line, last first, as CLI11 takes them. It would read "--report= ./app" as "--report
// ./app", and run what comes behind; "--report=" is an empty value, and "--dry-run=" a mistake. Nothing is
// changed from a program on whose words are its own.
std::vector<std::string> reversed_words(const CLI::App& app, int argc, char** argv) {
    std::vector<std::string> words;
    const CLI::App* named = &app;
    bool is_value = false, ours = true;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const bool is_option = word.size() > 2 && word.starts_with("--");
        if (word == "--" || (app.get_prefix_command() && !is_option && !is_value)) ours = false;
        if (!is_option && !is_value) named = subcommand_of(named, word);
        const bool emptied = ours && is_option && !is_value && word.find('=') == word.size() - 1;
        const std::string name = word.substr(0, word.size() - emptied);
        const CLI::Option* option = is_option && !is_value ? named->get_option_no_throw(name) : nullptr;
        const bool takes_value = option != nullptr && option->get_items_expected_max() > 0;
        if (emptied && option != nullptr && !takes_value)
            throw CLI::ArgumentMismatch(name + " takes no value");
        const bool separate = emptied && takes_value;
        words.push_back(separate ? name : word);
        if (separate) words.emplace_back();
        is_value = takes_value && !emptied;
    }
    std::reverse(words.begin(), words.end());
    return words;
}

// The option of `app`, or of what it was asked for, or the name of the word, that was given an empty value.
// Empty: none was.
std::string without_value(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options())
        for (const std::string& value : option->results())
            if (value.empty()) return option->get_name();
    for (const CLI::App* each : app.get_subcommands())
        if (std::string name = without_value(*each); !name.empty()) return name;
    return {};
}

// What is wrong with words that nothing takes: the first option that there is not, or all of them; CLI11
// would name them last first. advised: the sentence says what to do.
std::string not_expected(const CLI::App& app, bool& advised) {
    const std::vector<std::string> words = app.remaining(true);
    const auto is_option = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
    const auto option = std::find_if(words.begin(), words.end(), is_option);
    if (option == words.end()) {
        std::string all;
        for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
        return all + (words.size() == 1 ? " was" : " were") + " not expected";
    }
    const std::string name = option->substr(0, option->find('='));
    std::vector<std::string> flags;
    for (const CLI::App* each = &app; each != nullptr;) {
        if (each != &app && each->get_option_no_throw(name) != nullptr) {
            advised = true;
            return name + " is an option of " + each->get_name() + ": write it behind that word";
        }
        for (const CLI::Option* known : each->get_options())
            for (const std::string& flag : known->get_lnames()) flags.push_back("--" + flag);
        const std::vector<CLI::App*> asked = each->get_subcommands();
        each = asked.empty() ? nullptr : asked.front();
    }
    const std::vector<std::string_view> names(flags.begin(), flags.end());
    const std::string_view nearest = nearest_name(name, names);
    advised = !nearest.empty();
    return name + " is not an option" + (advised ? "; maybe " + std::string(nearest) + "?" : "");
}

}  // namespace

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
    const std::string verb = argv[0];
    app.name("thalweg " + verb);
    if (const std::string why = unknown_subcommand(app, argc, argv); !why.empty())
        return usage_error(verb, why);
    if (const std::string why = apps::empty_element(app, argc, argv); !why.empty())
        return usage_error(verb, why);
    apps::read_in_decimal(app);
    try {
        if (const std::string option = apps::option_for_value(app, argc, argv); !option.empty())
            throw CLI::ArgumentMismatch(option + " needs a value");
        app.parse(reversed_words(app, argc, argv));
        // Of what starts a program they are settings: an empty one is as good as unset.
        const std::string name = app.get_prefix_command() ? std::string() : without_value(app);
        if (name.empty()) return std::nullopt;
        return usage_error(verb, name + (name[0] == '-' ? " has no value: give it one, or leave it out"
                                                        : " is empty: a variable that should name it may "
                                                          "not be set"));
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return exit_ok;
    } catch (const CLI::ParseError& error) {
        bool advised = false;
        std::string sentence = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr
                                   ? not_expected(app, advised)
                                   : apps::in_plain_words(error.what());
        if (advised) return usage_error(verb, sentence);
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
