#include "plan/report_text.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace thalweg {

void append(std::string& text, const char* format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text += line;
}

namespace {

// How many of the first bytes of `text` are one character of UTF-8; 0: they are none. No overlong forms, no
// surrogates, nothing beyond U+10FFFF (RFC 3629).
std::size_t character_length(std::string_view text) {
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return 1;
    const std::size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (length == 0 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
    const bool outside = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
    return overlong || outside ? 0 : length;
}

}  // namespace

std::string quoted(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        const std::size_t length = character_length(text);
        const char first = text.front();
        if (length == 0)
            out += "\\ufffd";
        else if (static_cast<unsigned char>(first) < 0x20)
            append(out, "\\u%04x", static_cast<unsigned>(first));
        else if (first == '"' || first == '\\')
            out.append({'\\', first});
        else
            out += text.substr(0, length);
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out += '"';
}

std::string printable(std::string_view text) {
    constexpr std::size_t most_bytes = 64;
    std::string out;
    while (!text.empty()) {
        const std::size_t length = character_length(text);
        const bool plain = length > 0 && static_cast<unsigned char>(text.front()) >= 0x20;
        const std::string_view shown = plain ? text.substr(0, length) : std::string_view("?");
        if (out.size() + shown.size() > most_bytes) break;
        out += shown;
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out;
}

std::string seconds_text(std::uint64_t time_ns) {
    const std::string decimals = std::to_string(1'000'000'000 + time_ns % 1'000'000'000);
    return std::to_string(time_ns / 1'000'000'000) + "." + decimals.substr(1);
}

}  // namespace thalweg
