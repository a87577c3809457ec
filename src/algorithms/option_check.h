// Values of options whose meaning base/ does not know: algorithms and topologies.
#pragma once

#include <string>
#include <string_view>

#include "base/options.h"

namespace thalweg {

// An OptionCheck (base/options.h): false, and a sentence in `why`, where the value of THALWEG_<COLLECTIVE>
// names no algorithm, or that of THALWEG_TOPOLOGY no topology. True for every other option.
bool check_option(const Option& option, std::string_view value, std::string& why);

}  // namespace thalweg
