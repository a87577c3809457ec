// JSON as text, whatever the bytes of paths and arguments are: what is no UTF-8 becomes U+FFFD.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace thalweg::tool {

// `indent` as nlohmann's dump() has it: -1 is one line.
inline std::string json_text(const nlohmann::json& value, int indent = -1) {
    return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The text that is read where json_text() has written `text`: names of things that JSON tells of are compared
// as these.
inline std::string utf8_text(const std::string& text) {
    return nlohmann::json::parse(json_text(text)).get<std::string>();
}

}  // namespace thalweg::tool
