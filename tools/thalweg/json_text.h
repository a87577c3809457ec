// JSON as text, whatever the bytes of paths and arguments are: what is no UTF-8 becomes U+FFFD.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace thalweg::tool {

// `indent` as nlohmann's dump() has it: -1 is one line.
inline std::string json_text(const nlohmann::json& value, int indent = -1) {
    return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace thalweg::tool
