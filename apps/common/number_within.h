// How command lines have their numbers.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace thalweg::apps {

// A number from `low` to `high`, which "nan" is not: CLI::Range lets it through.
inline CLI::Validator number_within(double low, double high) {
    const auto check = [low, high](const std::string& text) {
        double value = 0;
        const bool within = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
        return within ? std::string() : fmt::format("{} is no number from {:g} to {:g}", text, low, high);
    };
    return CLI::Validator(check, fmt::format("{:g} to {:g}", low, high));
}

// Has whole numbers read in decimal, as sizes are, whatever zeros stand in front: CLI11 takes 010 for eight,
// and 08 for no number. Of all options that `app` and its subcommands have by now.
inline void read_in_decimal(CLI::App& app) {
    const auto without_zeros = [](std::string& text) {
        std::size_t zeros = 0;
        while (zeros + 1 < text.size() && text[zeros] == '0' && text[zeros + 1] >= '0' &&
               text[zeros + 1] <= '9')
            ++zeros;
        text.erase(0, zeros);
        return std::string();
    };
    for (CLI::Option* const option : app.get_options()) {
        const std::string type = option->get_type_name();
        if (type.starts_with("INT") || type.starts_with("UINT"))
            option->transform(CLI::Validator(without_zeros, ""));
    }
    for (CLI::App* const each : app.get_subcommands([](CLI::App*) { return true; })) read_in_decimal(*each);
}

}  // namespace thalweg::apps
