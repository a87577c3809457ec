// Choices as text: NAME[(PART=CHOICE,…)][:PARAMETER=VALUE…].
#include <initializer_list>
#include <optional>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/text.h"

namespace thalweg {
namespace {

std::string cat(std::initializer_list<std::string_view> parts) {
    std::string text;
    for (std::string_view part : parts) text += part;
    return text;
}

std::string quoted(std::string_view text) { return cat({"\"", text, "\""}); }

std::string listed(std::span<const std::string_view> names, std::string_view between,
                   std::string_view after) {
    std::string text;
    for (std::string_view name : names) text += cat({text.empty() ? "" : between, name, after});
    return text;
}

// How a diagnostic about a wrong word ends: with the nearest right one, or with all of them.
std::string instead(std::string_view word, std::span<const std::string_view> names) {
    const std::string_view near = nearest_name(word, names);
    return near.empty() ? cat({"; expected ", names.size() > 1 ? "one of " : "", listed(names, ", ", "")})
                        : cat({"; did you mean ", quoted(near), "?"});
}

bool is_bytes(const Parameter& parameter) { return parameter.name.ends_with("_bytes"); }

std::string value_text(const Parameter& parameter, std::uint64_t value) {
    return is_bytes(parameter) ? bytes_text(value) : std::to_string(value);
}

// A recursive descent over `rest`. The first error wins; every function returns false after one.
class Parser {
  public:
    Parser(Collective collective, std::string_view text) : collective_(collective), rest_(text) {}

    bool whole(Choice& choice) {
        if (!one(choice, collective_, 0)) return false;
        return rest_.empty() ||
               fail(cat({"unexpected ", quoted(rest_), " after ", quoted(choice.algorithm->name)}));
    }
    const std::string& why() const { return why_; }

  private:
    static constexpr int deepest = 4;  // of parts within parts: more is refused by every combinator

    bool fail(std::string why) {
        if (why_.empty()) why_ = std::move(why);
        return false;
    }

    bool take(char c) {
        if (rest_.empty() || rest_[0] != c) return false;
        rest_.remove_prefix(1);
        return true;
    }

    std::string_view word() {
        const std::size_t end = std::min(rest_.find_first_of("():=,"), rest_.size());
        const std::string_view result = rest_.substr(0, end);
        rest_.remove_prefix(end);
        return result;
    }

    bool one(Choice& choice, Collective collective, int depth) {
        const std::string_view name = word();
        const Algorithm* algorithm = find_algorithm(collective, name);
        if (algorithm == nullptr) {
            std::vector<std::string_view> names;
            for (const Algorithm& row : algorithms())
                if (row.collective == collective) names.push_back(row.name);
            return fail(cat({"there is no algorithm ", quoted(name), " for ", name_of(collective),
                             instead(name, names)}));
        }
        choice = standard_choice(*algorithm);
        if (take('(') && !parts(choice, depth)) return false;
        while (take(':'))
            if (!parameter(choice)) return false;
        return true;
    }

    bool parts(Choice& choice, int depth) {
        const std::string_view owner = choice.algorithm->name;
        if (choice.algorithm->parts.empty())
            return fail(cat({quoted(owner), " takes no algorithms in parentheses"}));
        if (depth >= deepest) return fail("parts within parts go too deep");
        do {
            const std::string_view name = word();
            std::vector<std::string_view> names;
            for (const Part& part : choice.algorithm->parts) names.push_back(part.name);
            std::size_t index = 0;
            while (index < names.size() && names[index] != name) ++index;
            if (index == names.size() || !take('=')) {
                return fail(cat({"expected ", owner, "(", listed(names, ",", "=ALGORITHM"), ") at ",
                                 quoted(name), instead(name, names)}));
            }
            const Collective collective = choice.algorithm->parts[index].collective;
            if (!one(choice.parts[index], collective, depth + 1)) return false;
        } while (take(','));
        return take(')') || fail(cat({"a closing parenthesis of ", quoted(owner), " is missing"}));
    }

    bool parameter(Choice& choice) {
        const Algorithm& algorithm = *choice.algorithm;
        const std::string_view name = word();
        std::vector<std::string_view> names;
        for (const Parameter& known : algorithm.parameters) names.push_back(known.name);
        std::size_t index = 0;
        while (index < names.size() && names[index] != name) ++index;
        if (names.empty()) return fail(cat({quoted(algorithm.name), " takes no parameters"}));
        if (index == names.size())
            return fail(
                cat({quoted(algorithm.name), " has no parameter ", quoted(name), instead(name, names)}));
        const Parameter& row = algorithm.parameters[index];
        const std::string form = cat({row.name, "=", is_bytes(row) ? bytes_form : count_form, ", from ",
                                      value_text(row, row.minimum), " to ", value_text(row, row.maximum)});
        if (!take('=')) return fail(cat({"expected ", form}));
        const std::string_view text = word();
        const std::optional<std::uint64_t> value = is_bytes(row) ? parse_bytes(text) : parse_count(text);
        if (!value || *value < row.minimum || *value > row.maximum)
            return fail(cat({"expected ", form, " instead of ", quoted(text)}));
        choice.values[index] = *value;
        return true;
    }

    Collective collective_;
    std::string_view rest_;
    std::string why_;
};

}  // namespace

Status parse_choice(Collective collective, std::string_view text, Choice& choice, std::string& why) {
    Parser parser(collective, text);
    Choice parsed;
    if (!parser.whole(parsed)) {
        why = parser.why();
        return Status::invalid_argument;
    }
    choice = std::move(parsed);
    return Status::ok;
}

// Leaves out what parse_choice would fill in by itself, except chunks: they are what people compare.
std::string to_text(const Choice& choice) {
    const Algorithm& algorithm = *choice.algorithm;
    std::string text(algorithm.name);
    for (std::size_t i = 0; i < choice.parts.size(); ++i)
        text += cat({i == 0 ? "(" : ",", algorithm.parts[i].name, "=", to_text(choice.parts[i])});
    if (!choice.parts.empty()) text += ")";
    for (std::size_t i = 0; i < algorithm.parameters.size(); ++i) {
        const Parameter& parameter = algorithm.parameters[i];
        const std::uint64_t value = choice.values[i];
        if (value == parameter.standard && !(parameter.name == "chunk_bytes" && value != 0)) continue;
        text += cat({":", parameter.name, "=", value_text(parameter, value)});
    }
    return text;
}

}  // namespace thalweg
