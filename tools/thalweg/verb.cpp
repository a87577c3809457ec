#include "verb.h"

#include <fmt/core.h>

#include "algorithms/algorithm.h"
#include "algorithms/over_windows.h"
#include "topology/topology.h"

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
        return usage_error(verb, std::string(error.what()) + "; see `thalweg " + verb + " --help`");
    }
}

int usage_error(std::string_view verb, std::string_view sentence) {
    fmt::print(stderr, "thalweg {}: {}\n", verb, sentence);
    return exit_usage;
}

bool check_option(const Option& option, std::string_view value, std::string& why) {
    if (option.kind == OptionKind::algorithm) {
        for (int i = 0; i < collective_count; ++i) {
            const auto collective = static_cast<Collective>(i);
            Choice choice;
            if (name_of(collective) == option.field)
                return is_over_windows(collective, value) ||
                       !failed(parse_choice(collective, value, choice, why));
        }
    }
    if (option.field == "topology") {
        int ranks = 0;
        return !failed(Topology::count_ranks(value, ranks, why));
    }
    return true;
}

}  // namespace thalweg::tool
