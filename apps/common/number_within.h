// A check of an option of a command line.
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

}  // namespace thalweg::apps
