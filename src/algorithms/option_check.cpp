#include "algorithms/option_check.h"

#include "algorithms/algorithm.h"
#include "algorithms/over_windows.h"
#include "topology/topology.h"

namespace thalweg {

bool check_option(const Option& option, std::string_view value, std::string& why) {
    if (option.kind == OptionKind::algorithm) {
        for (int i = 0; i < collective_count; ++i) {
            const auto collective = static_cast<Collective>(i);
            Choice ignored;
            if (name_of(collective) != option.field) continue;
            if (is_over_windows(collective, value) || !failed(parse_choice(collective, value, ignored, why)))
                return true;
            // Whoever wants none of them finds no name in the list.
            const bool lists_all =
                why.starts_with("there is no algorithm") && why.find("; expected ") != std::string::npos;
            if (lists_all && value.find('(') == std::string_view::npos) why += ", or auto or native";
            return false;
        }
    }
    if (option.field == "topology") {
        int ranks = 0;
        return !failed(Topology::count_ranks(value, ranks, why));
    }
    return true;
}

}  // namespace thalweg
