// Numbers with units as people write them, and the nearest of a list of names. Independent of the locale.
//
// The parsers are constexpr, so that the defaults in options.def are checked when the project is compiled.
// They take the whole text or nothing: on failure the result is empty.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace thalweg {

// Accepted forms, for diagnostics.
inline constexpr std::string_view bytes_form = "a number of bytes such as 65536, 64K, 4M or 1G (K = 1024)";
inline constexpr std::string_view count_form = "a whole number such as 64";
inline constexpr std::string_view number_form = "a number such as 2 or 1.5";
inline constexpr std::string_view rate_form = "a rate such as 100mbit, 25gbit, 12GB/s or 900MB/s";

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (lower(a[i]) != lower(b[i])) return false;
    return true;
}

constexpr std::optional<std::uint64_t> parse_count(std::string_view text) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    if (text.empty()) return std::nullopt;
    std::uint64_t value = 0;
    for (char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        const std::uint64_t digit = static_cast<std::uint64_t>(c - '0');
        if (value > (most - digit) / 10) return std::nullopt;
        value = value * 10 + digit;
    }
    return value;
}

// "65536", "64K", "64KiB", "1m", "3G", "2T". Units are powers of 1024. KB is refused: half of its readers
// mean 1000.
constexpr std::optional<std::uint64_t> parse_bytes(std::string_view text) {
    std::size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
    const std::optional<std::uint64_t> value = parse_count(text.substr(0, digits));
    const std::string_view unit = text.substr(digits);
    if (!value) return std::nullopt;
    if (unit.empty() || unit == "B") return value;
    unsigned shift = 0;
    switch (lower(unit[0])) {
        case 'k':
            shift = 10;
            break;
        case 'm':
            shift = 20;
            break;
        case 'g':
            shift = 30;
            break;
        case 't':
            shift = 40;
            break;
        default:
            return std::nullopt;
    }
    if (unit.size() != 1 && !equal_ignoring_case(unit.substr(1), "ib")) return std::nullopt;
    if (*value > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
    return *value << shift;
}

// A decimal number without sign or exponent: "2", "0.75". One with more digits than doubles have room for is
// none.
constexpr std::optional<double> parse_number(std::string_view text) {
    double value = 0, place = 1;
    bool digit_seen = false, point_seen = false;
    for (char c : text) {
        if (c == '.' && !point_seen) {
            point_seen = true;
        } else if (c >= '0' && c <= '9') {
            digit_seen = true;
            value = value * 10 + (c - '0');
            if (point_seen) place *= 10;
        } else {
            return std::nullopt;
        }
    }
    constexpr double most = std::numeric_limits<double>::max();
    if (!digit_seen || value > most || place > most) return std::nullopt;
    return value / place;
}

// A rate in bytes per second: "100mbit", "25Gbit/s", "12GB/s", "900MB/s", "3GiB/s". bit and B are decimal, iB
// is binary. A bare number is refused, because nobody agrees whether it counts bits or bytes.
constexpr std::optional<double> parse_rate(std::string_view text) {
    std::size_t digits = 0;
    while (digits < text.size() && ((text[digits] >= '0' && text[digits] <= '9') || text[digits] == '.'))
        ++digits;
    const std::optional<double> value = parse_number(text.substr(0, digits));
    std::string_view unit = text.substr(digits);
    if (!value || unit.empty()) return std::nullopt;
    if (unit.size() > 2 && unit.substr(unit.size() - 2) == "/s") unit.remove_suffix(2);
    int power = 0;
    switch (lower(unit[0])) {
        case 'k':
            power = 1;
            break;
        case 'm':
            power = 2;
            break;
        case 'g':
            power = 3;
            break;
        case 't':
            power = 4;
            break;
        default:
            break;
    }
    if (power > 0) unit.remove_prefix(1);
    const bool bits = equal_ignoring_case(unit, "bit");
    const bool binary = unit == "iB";
    if (!bits && !binary && unit != "B") return std::nullopt;
    double scale = bits ? 0.125 : 1;
    for (int i = 0; i < power; ++i) scale *= binary ? 1024 : 1000;
    const double rate = *value * scale;
    return rate > std::numeric_limits<double>::max() ? std::nullopt : std::optional(rate);
}

// The shortest exact form that parse_bytes reads back: 65536 -> "64K", 1000 -> "1000".
std::string bytes_text(std::uint64_t bytes);

// The shortest form that parse_rate reads back: 12500000 -> "100mbit".
std::string rate_text(double bytes_per_second);

// The shortest form that parse_number reads back, at most six decimals.
std::string number_text(double value);

// The one of `names` that differs from `name` by the fewest inserted, dropped, changed or swapped letters, or
// an empty view when none is near enough to be a slip (more than a third of the letters, at least 2). Case is
// ignored.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names);

}  // namespace thalweg
