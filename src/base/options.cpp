#include "base/options.h"

#include <cstring>
#include <type_traits>

#include "base/float_modes.h"

namespace thalweg {

static_assert(std::is_trivially_copyable_v<Settings>, "settings travel between ranks as bytes");
static_assert(std::is_standard_layout_v<Settings>, "fields are found by their offset");

namespace {

constexpr Option rows[] = {
#define OPTION(kind, field, variable, standard, accepted, unit, scope, when, text)                         \
    {OptionKind::kind,         #field, variable, standard, accepted, unit, Scope::scope, When::when, text, \
     offsetof(Settings, field)},
#include "base/options.def"
#undef OPTION
};

constexpr std::string_view prefix = "THALWEG";

// Names of ours that are no options: what the lab and `thalweg run` tell the programs they start, switches of
// tests, and settings of libucp for our use of it; then those by which modules and CMake's find_package name
// an installation, and those of scripts/. A trailing underscore stands for all names that begin so.
constexpr std::string_view other_names[] = {"THALWEG_LAB_",     "THALWEG_TEST_",     "THALWEG_UCX_",
                                            "THALWEG_SABOTEUR", "THALWEG_MPI_ROOTS", "THALWEG_PRELOADED_MPI",
                                            "THALWEG_ROOT",     "THALWEG_DIR",       "THALWEG_VERSION",
                                            "THALWEG_JOBS",     "THALWEG_PYTHON",    "THALWEG_FUZZ_SECONDS"};

bool is_other_name(std::string_view name) {
    for (std::string_view other : other_names)
        if (other.back() == '_' ? name.substr(0, other.size()) == other : name == other) return true;
    return false;
}

template <typename Field>
Field& field_at(Settings& settings, const Option& option) {
    return *reinterpret_cast<Field*>(reinterpret_cast<char*>(&settings) + option.offset);
}

template <typename Field>
const Field& field_at(const Settings& settings, const Option& option) {
    return *reinterpret_cast<const Field*>(reinterpret_cast<const char*>(&settings) + option.offset);
}

bool is_word_kind(OptionKind kind) {
    return kind == OptionKind::on_off || kind == OptionKind::level || kind == OptionKind::waiting ||
           kind == OptionKind::transport || kind == OptionKind::inside || kind == OptionKind::between ||
           kind == OptionKind::agent || kind == OptionKind::presence || kind == OptionKind::setup ||
           kind == OptionKind::float_order || kind == OptionKind::call_through;
}

std::string_view word_at(std::string_view accepted, int index) {
    while (index-- > 0) accepted.remove_prefix(accepted.find('|') + 1);
    return accepted.substr(0, accepted.find('|'));
}

int index_of_word(std::string_view accepted, std::string_view word) {
    for (int index = 0;; ++index) {
        const std::size_t bar = accepted.find('|');
        if (equal_ignoring_case(accepted.substr(0, bar), word)) return index;
        if (bar == std::string_view::npos) return -1;
        accepted.remove_prefix(bar + 1);
    }
}

template <typename Value, typename Parse>
bool parse_within(const Option& option, std::string_view text, Parse parse, Value& value) {
    const std::size_t dots = option.accepted.find("..");
    const auto parsed = parse(text);
    // "Within" rather than "not outside": hundreds of digits make a double that is neither (infinity /
    // infinity).
    if (!parsed || !(*parsed >= *parse(option.accepted.substr(0, dots)) &&
                     *parsed <= *parse(option.accepted.substr(dots + 2))))
        return false;
    value = *parsed;
    return true;
}

template <typename Field>
bool store_text(Settings& settings, const Option& option, std::string_view value, std::string& why) {
    Field& field = field_at<Field>(settings, option);
    if (value.size() >= field.data.size() || value.find_first_of('\n') != std::string_view::npos) {
        why = "expected one line of at most " + std::to_string(field.data.size() - 1) + " bytes";
        return false;
    }
    field = Field(value);
    return true;
}

// Stores a well-formed value; else returns false, with `why` set when there is more to say than the accepted
// form: what is wrong, as a sentence after a colon.
bool store(Settings& settings, const Option& option, std::string_view value, std::string& why,
           OptionCheck check) {
    switch (option.kind) {
        case OptionKind::on_off:
        case OptionKind::level:
        case OptionKind::waiting:
        case OptionKind::transport:
        case OptionKind::inside:
        case OptionKind::between:
        case OptionKind::presence:
        case OptionKind::setup:
        case OptionKind::float_order:
        case OptionKind::call_through:
        case OptionKind::agent: {
            const int index = index_of_word(option.accepted, value);
            if (index < 0) return false;
            field_at<std::uint8_t>(settings, option) = static_cast<std::uint8_t>(index);
            return true;
        }
        case OptionKind::bytes:
            return parse_within(option, value, parse_bytes, field_at<std::uint64_t>(settings, option));
        case OptionKind::count:
            return parse_within(option, value, parse_count, field_at<std::uint64_t>(settings, option));
        case OptionKind::duration_us:
        case OptionKind::rate: {
            double& field = field_at<double>(settings, option);
            if (value == "auto") {
                field = 0;
                return true;
            }
            return in_standard_modes([&] {
                return option.kind == OptionKind::rate ? parse_within(option, value, parse_rate, field)
                                                       : parse_within(option, value, parse_number, field);
            });
        }
        case OptionKind::algorithm:
            if (check != nullptr && value != "auto" && value != "native" && !check(option, value, why))
                return false;
            return store_text<option_field::algorithm>(settings, option, value, why);
        case OptionKind::text:
            if (check != nullptr && !value.empty() && !check(option, value, why)) return false;
            return store_text<option_field::text>(settings, option, value, why);
        case OptionKind::path:
            return store_text<option_field::path>(settings, option, value, why);
    }
    return false;
}

// FNV-1a over what determines the layout and meaning of Settings.
constexpr std::uint64_t digest_of_rows() {
    std::uint64_t hash = 14695981039346656037u;
    auto mix = [&hash](std::uint64_t byte) { hash = (hash ^ byte) * 1099511628211u; };
    for (const Option& option : rows) {
        for (char c : option.variable) mix(static_cast<unsigned char>(c));
        for (char c : option.accepted) mix(static_cast<unsigned char>(c));
        mix(static_cast<std::uint64_t>(option.kind));
        mix(option.offset);
    }
    mix(sizeof(Settings));
    return hash;
}

std::string_view nearest_variable(std::string_view variable) {
    std::array<std::string_view, option_count> names;
    for (std::size_t i = 0; i < option_count; ++i) names[i] = rows[i].variable;
    return nearest_name(variable, names);
}

}  // namespace

std::string_view name_of(Origin origin) {
    switch (origin) {
        case Origin::standard:
            return "default";
        case Origin::environment:
            return "environment";
        case Origin::command_line:
            return "command line";
        case Origin::program:
            return "program";
        case Origin::rank0:
            return "rank 0";
    }
    return "unknown";
}

std::span<const Option> options() { return rows; }

const Option* find_option(std::string_view variable) {
    for (const Option& option : rows)
        if (option.variable == variable) return &option;
    return nullptr;
}

Status Settings::set(std::string_view variable, std::string_view value, Origin who, std::string& why,
                     OptionCheck check) {
    const Option* option = find_option(variable);
    if (option == nullptr) {
        const std::string_view nearest = nearest_variable(variable);
        why = std::string(variable) + " is not an option" +
              (nearest.empty() ? "; `thalweg info` lists them" : "; maybe " + std::string(nearest) + "?");
        return Status::not_found;
    }
    if (value.empty()) {
        value = option->standard;
        who = Origin::standard;
    }
    std::string detail;
    if (!store(*this, *option, value, detail, check)) {
        why = std::string(variable) + "=" + std::string(value.substr(0, 80)) +
              " is not valid: " + (detail.empty() ? "expected " + accepted_form(*option) : detail);
        return Status::invalid_argument;
    }
    origin[static_cast<std::size_t>(option - rows)] = who;
    return Status::ok;
}

Settings Settings::from_environment(const char* const* environment, std::vector<Complaint>& complaints,
                                    OptionCheck check) {
    Settings settings;
    for (; environment != nullptr && *environment != nullptr; ++environment) {
        const std::string_view entry(*environment);
        const std::size_t equals = entry.find('=');
        if (entry.substr(0, prefix.size()) != prefix || equals == std::string_view::npos) continue;
        const std::string_view name = entry.substr(0, equals);
        // THALWEGS_OWN is somebody else's name; THALWEG and THALWEG_* are ours.
        if (name.size() > prefix.size() && name[prefix.size()] != '_') continue;
        if (is_other_name(name)) continue;
        std::string why;
        const Status status = settings.set(name, entry.substr(equals + 1), Origin::environment, why, check);
        if (status == Status::not_found) complaints.push_back({LogLevel::warn, why});
        if (status == Status::invalid_argument) {
            const Option* option = find_option(name);
            complaints.push_back(
                {LogLevel::warn,
                 why + "; using " +
                     (option->standard.empty() ? std::string("none") : std::string(option->standard))});
        }
    }
    return settings;
}

std::string Settings::value_text(std::size_t index) const {
    const Option& option = rows[index];
    if (is_word_kind(option.kind))
        return std::string(word_at(option.accepted, field_at<std::uint8_t>(*this, option)));
    switch (option.kind) {
        case OptionKind::bytes:
            return bytes_text(field_at<std::uint64_t>(*this, option));
        case OptionKind::count:
            return std::to_string(field_at<std::uint64_t>(*this, option));
        case OptionKind::duration_us:
        case OptionKind::rate: {
            const double value = field_at<double>(*this, option);
            if (value == 0) return "auto";
            return in_standard_modes(
                [&] { return option.kind == OptionKind::rate ? rate_text(value) : number_text(value); });
        }
        case OptionKind::algorithm:
            return std::string(field_at<option_field::algorithm>(*this, option).view());
        case OptionKind::text:
            return std::string(field_at<option_field::text>(*this, option).view());
        case OptionKind::path:
            return std::string(field_at<option_field::path>(*this, option).view());
        default:
            return {};
    }
}

SettingsBlob Settings::to_blob() const {
    SettingsBlob blob;
    blob.options_digest = digest_of_rows();
    blob.settings = *this;
    return blob;
}

Status Settings::adopt(const SettingsBlob& blob, std::vector<std::string_view>& differing) {
    if (blob.options_digest != digest_of_rows()) return Status::mismatch;
    for (std::size_t i = 0; i < option_count; ++i) {
        const Option& option = rows[i];
        if (option.scope != Scope::agreed) continue;
        // Numbers may have the same text, which has few digits, and be others.
        if (value_text(i) != blob.settings.value_text(i)) {
            differing.push_back(option.variable);
            origin[i] = Origin::rank0;
        }
        auto copy = [&]<typename Field>(Field*) {
            field_at<Field>(*this, option) = field_at<Field>(blob.settings, option);
        };
        switch (option.kind) {
            case OptionKind::bytes:
            case OptionKind::count:
                copy(static_cast<std::uint64_t*>(nullptr));
                break;
            case OptionKind::duration_us:
            case OptionKind::rate:
                copy(static_cast<double*>(nullptr));
                break;
            case OptionKind::algorithm:
                copy(static_cast<option_field::algorithm*>(nullptr));
                break;
            case OptionKind::text:
                copy(static_cast<option_field::text*>(nullptr));
                break;
            case OptionKind::path:
                copy(static_cast<option_field::path*>(nullptr));
                break;
            default:
                copy(static_cast<std::uint8_t*>(nullptr));
                break;
        }
    }
    return Status::ok;
}

std::string flag_of(const Option& option) {
    std::string flag = "--";
    const std::string_view name =
        option.variable == prefix ? option.variable : option.variable.substr(prefix.size() + 1);
    for (char c : name) flag += c == '_' ? '-' : lower(c);
    return flag;
}

std::string accepted_form(const Option& option) {
    const std::string accepted(option.accepted);
    const std::size_t dots = accepted.find("..");
    const std::string range = dots == std::string::npos
                                  ? ""
                                  : ", from " + accepted.substr(0, dots) + " to " + accepted.substr(dots + 2);
    switch (option.kind) {
        case OptionKind::bytes:
            return std::string(bytes_form) + range;
        case OptionKind::count:
            return std::string(count_form) + range;
        case OptionKind::duration_us:
            return std::string(number_form) + " (" + std::string(option.unit) + ")" + range + ", or auto";
        case OptionKind::rate:
            return std::string(rate_form) + range + ", or auto";
        case OptionKind::algorithm:
            return "auto, native, or an algorithm such as chain:chunk_bytes=64K";
        case OptionKind::text:
        case OptionKind::path:
            return accepted;
        default:
            break;
    }
    std::string words;
    for (std::string_view rest = option.accepted;;) {
        const std::size_t bar = rest.find('|');
        words += rest.substr(0, bar);
        if (bar == std::string_view::npos) return words;
        rest.remove_prefix(bar + 1);
        words += rest.find('|') == std::string_view::npos ? " or " : ", ";
    }
}

std::string options_markdown() {
    std::string out =
        "# Options\n\n"
        "Made from `src/base/options.def`; `thalweg info` prints what is in effect. Every option is an "
        "environment\n"
        "variable and a flag of `thalweg run`. An unknown `THALWEG_*` name is reported with the nearest real "
        "one; a\n"
        "malformed value is refused with the accepted form, and the default stays. Where ranks differ, rank "
        "0's\n"
        "value counts for the options marked *job*.\n\n"
        "| variable | flag | default | accepted | unit | for | changes | meaning |\n"
        "|---|---|---|---|---|---|---|---|\n";
    for (const Option& option : rows) {
        std::string accepted;
        for (char c : option.accepted) accepted += c == '|' ? std::string("\\|") : std::string(1, c);
        out += "| `" + std::string(option.variable) + "` | `" + flag_of(option) + "` | " +
               (option.standard.empty() ? std::string("none") : "`" + std::string(option.standard) + "`") +
               " | `" + accepted + "` | " + std::string(option.unit) + " | " +
               (option.scope == Scope::agreed ? "job" : "process") + " | " +
               (option.when == When::anytime ? "any time" : "at start") + " | " + std::string(option.text) +
               " |\n";
    }
    out += "\nBytes are written " + std::string(bytes_form).substr(18) + ". Rates are written " +
           std::string(rate_form).substr(15) + ".\n";
    return out;
}

}  // namespace thalweg
