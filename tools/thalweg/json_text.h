// JSON as text, whatever the bytes of paths and arguments are: what is no UTF-8 becomes U+FFFD.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace thalweg::tool {

// `indent` as nlohmann's dump() has it: -1 is one line.
inline std::string json_text(const nlohmann::json& value, int indent = -1) {
    return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

// What an exception says, without the name that the parser gives it, "[json.exception.parse_error.101] ".
inline std::string plain_words(std::string_view text) {
    const std::size_t end = text.starts_with("[json.") ? text.find("] ") : text.npos;
    return std::string(end == text.npos ? text : text.substr(end + 2));
}

// The text that is read where json_text() has written `text`: names of things that JSON tells of are compared
// as these.
inline std::string utf8_text(const std::string& text) {
    return nlohmann::json::parse(json_text(text)).get<std::string>();
}

}  // namespace thalweg::tool
