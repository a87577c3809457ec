// The settings of a process, made from options.def. Settings is a plain struct: trivially copyable and
// constant initialised, so that a preload object can hold one without a constructor running before main. The
// environment is read when from_environment is called and never otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text.h"

namespace thalweg {

// Values of the options that are one word of a list, in the order of the row's `accepted`.
enum class Switch : std::uint8_t { off, on };
enum class LogLevel : std::uint8_t { error, warn, info, debug };
enum class WaitSetting : std::uint8_t { automatic, spin, sleep };
enum class AgentSetting : std::uint8_t { automatic, off, sleep, sibling, core };
enum class SetupSetting : std::uint8_t { lazy, early };
enum class FloatOrder : std::uint8_t { stable, native, free };
enum class CallThrough : std::uint8_t { next, pmpi };
enum class PresenceSetting : std::uint8_t { store, assume };
enum class TransportSetting : std::uint8_t { automatic, ucx, mpi, shm };
enum class InsideSetting : std::uint8_t { automatic, eager, cma_get, cma_put, coop, direct };
enum class BetweenSetting : std::uint8_t { automatic, eager, get, put };

// Text with its room inside, at most `capacity - 1` bytes.
template <std::size_t capacity>
struct FixedText {
    std::array<char, capacity> data{};

    constexpr FixedText() = default;
    constexpr explicit FixedText(std::string_view text) {
        for (std::size_t i = 0; i < text.size() && i + 1 < capacity; ++i) data[i] = text[i];
    }
    constexpr std::string_view view() const { return std::string_view(data.data()); }
    constexpr const char* c_str() const { return data.data(); }
    constexpr bool empty() const { return data[0] == '\0'; }
    bool operator==(const FixedText& other) const { return view() == other.view(); }
};

enum class OptionKind : std::uint8_t {
    on_off,
    level,
    waiting,
    transport,
    inside,
    between,
    presence,
    setup,
    float_order,
    call_through,
    agent,  // one word of a list
    bytes,
    count,  // std::uint64_t
    duration_us,
    rate,  // double; 0 = auto
    algorithm,
    text,
    path  // FixedText
};
enum class Scope : std::uint8_t { agreed, local };
enum class When : std::uint8_t { anytime, start };
enum class Origin : std::uint8_t { standard, environment, command_line, program, rank0 };
std::string_view name_of(Origin origin);

// The type of a field and its value from text, by kind.
namespace option_field {
using on_off = Switch;
using level = LogLevel;
using waiting = WaitSetting;
using transport = TransportSetting;
using inside = InsideSetting;
using between = BetweenSetting;
using setup = SetupSetting;
using float_order = FloatOrder;
using call_through = CallThrough;
using presence = PresenceSetting;
using agent = AgentSetting;
using bytes = std::uint64_t;
using count = std::uint64_t;
using duration_us = double;
using rate = double;
using algorithm = FixedText<512>;
using text = FixedText<1024>;
using path = FixedText<1024>;
}  // namespace option_field

// One row of options.def.
struct Option {
    OptionKind kind;
    std::string_view field;     // "credit_bytes"
    std::string_view variable;  // "THALWEG_CREDIT_BYTES"
    std::string_view standard;  // the default as text
    std::string_view accepted;  // "4K..1G", "off|on", "FILE"
    std::string_view unit;      // may be empty
    Scope scope;
    When when;
    std::string_view text;  // one sentence
    std::size_t offset;     // of the field in Settings
};

// Checks the text of an option of kind algorithm or text beyond what base can know: returns false and sets
// `why` (one clause with the accepted form) to refuse it. base includes no algorithms, so whoever has them
// passes this.
using OptionCheck = bool (*)(const Option& option, std::string_view value, std::string& why);

// What reading the settings found wrong. `sentence` is complete, without the prefix "thalweg: ".
struct Complaint {
    LogLevel level = LogLevel::warn;
    std::string sentence;
};

namespace detail {

// The default of a row as a constant. A malformed default does not compile.
template <typename Field>
constexpr Field option_default(OptionKind kind, std::string_view text, std::string_view accepted) {
    if constexpr (std::is_same_v<Field, std::uint64_t>) {
        return kind == OptionKind::bytes ? parse_bytes(text).value() : parse_count(text).value();
    } else if constexpr (std::is_same_v<Field, double>) {
        if (text == "auto") return 0;
        return kind == OptionKind::rate ? parse_rate(text).value() : parse_number(text).value();
    } else if constexpr (std::is_enum_v<Field>) {
        int index = 0;
        for (std::string_view rest = accepted;; ++index) {
            const std::size_t bar = rest.find('|');
            if (rest.substr(0, bar) == text) return static_cast<Field>(index);
            if (bar == std::string_view::npos) throw "the default is not one of the accepted words";
            rest.remove_prefix(bar + 1);
        }
    } else {
        return Field(text);
    }
}

constexpr std::size_t count_options() {
    std::size_t count = 0;
#define OPTION(kind, field, variable, standard, accepted, unit, scope, when, text) ++count;
#include "base/options.def"
#undef OPTION
    return count;
}

}  // namespace detail

inline constexpr std::size_t option_count = detail::count_options();

// Where an option stands in options(): index_of::credit_bytes.
namespace index_of {
enum : std::size_t {
#define OPTION(kind, field, variable, standard, accepted, unit, scope, when, text) field,
#include "base/options.def"
#undef OPTION
};
}  // namespace index_of

struct SettingsBlob;

struct Settings {
#define OPTION(kind, field, variable, standard, accepted, unit, scope, when, text) \
    option_field::kind field =                                                     \
        detail::option_default<option_field::kind>(OptionKind::kind, standard, accepted);
#include "base/options.def"
#undef OPTION
    std::array<Origin, option_count> origin{};  // who set the value, by index_of

    // Sets the options named in `environment` (as environ: "NAME=value", ended by a null). A malformed value
    // keeps the default; an unknown THALWEG_* name is reported with the nearest real one. Appends to
    // `complaints`.
    static Settings from_environment(const char* const* environment, std::vector<Complaint>& complaints,
                                     OptionCheck check = nullptr);

    // Sets one option from text. not_found: no such option (`why` names the nearest). invalid_argument:
    // malformed; `why` is one sentence with the accepted form, nothing changed. The empty value restores the
    // default.
    Status set(std::string_view variable, std::string_view value, Origin origin, std::string& why,
               OptionCheck check = nullptr);

    // The value as `set` reads it back. Pre: index < option_count.
    std::string value_text(std::size_t index) const;

    // For agreeing on rank 0's settings: rank 0 broadcasts its blob (sizeof(SettingsBlob) bytes), the others
    // adopt the values of scope `agreed` from it. Appends the variables whose value was another here to
    // `differing`. mismatch: the blob comes from a build with other options (nothing changed).
    SettingsBlob to_blob() const;
    Status adopt(const SettingsBlob& blob, std::vector<std::string_view>& differing);
};

// Fixed size, no pointers.
struct SettingsBlob {
    std::uint64_t options_digest = 0;  // of options.def: equal digests mean equal layouts
    Settings settings;
};

// All rows in the order of options.def.
std::span<const Option> options();

// The row of "THALWEG_BCAST", or null.
const Option* find_option(std::string_view variable);

// The flag of `thalweg run` for an option: "--bcast-min-bytes"; "--thalweg" for THALWEG itself.
std::string flag_of(const Option& option);

// "a number of bytes such as …, from 4K to 1G": what a diagnostic says was expected.
std::string accepted_form(const Option& option);

// The text of docs/options.md. A test compares the file with it.
std::string options_markdown();

}  // namespace thalweg
