// Text for reports: JSON strings, names for a table, numbers that no locale changes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace thalweg {

// At most 511 bytes at a time.
[[gnu::format(printf, 2, 3)]] void append(std::string& text, const char* format, ...);

// A JSON string. Names come from the program, in any encoding: what is no UTF-8 becomes U+FFFD, byte by byte.
std::string quoted(std::string_view text);

// A name for the table, at most 64 bytes: one line of whole characters.
std::string printable(std::string_view text);

// Seconds with nine decimals. Not by printf: a program may have a locale that writes a decimal comma.
std::string seconds_text(std::uint64_t time_ns);

}  // namespace thalweg
