// The lines of `--json`: what was asked stands first and alike in all of them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "sim/request.h"

namespace thalweg::sim {

// A point of a request. `kind`: "collective" or "app", the field that holds the name.
struct Asked {
    const char* kind;
    std::string_view name;
    int ranks = 0, hosts = 0;
    std::uint64_t bytes = 0;
};

// One line, without its end: the machine and the point, then the fields of `found` in their order. What is no
// UTF-8 becomes U+FFFD.
std::string json_line(const Request& request, const Asked& asked, const nlohmann::ordered_json& found);

}  // namespace thalweg::sim
