#include "shell_words.h"

namespace thalweg::tool {

namespace {

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }

std::size_t end_of_name(std::string_view text, std::size_t start) {
    std::size_t end = start;
    while (end < text.size() && (end == start ? begins_name(text[end]) : continues_name(text[end]))) ++end;
    return end;
}

// What stands behind the $ at `at`, which is moved to the last character that was read.
void expand(std::string_view line, std::size_t& at, const Environment& environment, ShellWord& word) {
    const bool braces = at + 1 < line.size() && line[at + 1] == '{';
    const std::size_t start = at + (braces ? 2 : 1), end = end_of_name(line, start);
    if (end == start || (braces && (end == line.size() || line[end] != '}'))) {
        word.known = false;
        word.text += '$';
        return;
    }
    word.text += environment.get(line.substr(start, end - start));
    at = braces ? end : end - 1;
}

}  // namespace

std::vector<ShellWord> shell_words(std::string_view line, const Environment& environment) {
    constexpr std::string_view separators = " \t\r;&|()<>`";
    std::vector<ShellWord> words;
    ShellWord word;
    bool begun = false;
    char quote = '\0';
    const auto end_word = [&] {
        if (begun) words.push_back(std::move(word));
        word = {};
        begun = false;
    };
    for (std::size_t at = 0; at < line.size(); ++at) {
        const char c = line[at];
        if (quote == '\0' && separators.find(c) != std::string_view::npos) {
            end_word();
            continue;
        }
        if (quote == '\0' && c == '#' && !begun) break;
        begun = true;
        if (c == quote || (quote == '\0' && (c == '"' || c == '\''))) {
            quote = c == quote ? '\0' : c;
        } else if (quote == '\'') {
            word.text += c;
        } else if (c == '\\' && at + 1 < line.size()) {
            word.text += line[++at];
        } else if (c == '$') {
            expand(line, at, environment, word);
        } else {
            if (c == '`') word.known = false;
            word.text += c;
        }
    }
    end_word();
    return words;
}

std::string shell_quoted(std::string_view text) {
    std::string word = "'";
    for (const char c : text) {
        if (c == '\'')
            word += "'\\''";
        else
            word += c;
    }
    return word + "'";
}

bool is_assignment(std::string_view word) {
    const std::size_t end = end_of_name(word, 0);
    return end > 0 && end < word.size() && word[end] == '=';
}

std::size_t end_of_options(const std::vector<std::string>& command, bool& is_command) {
    std::size_t at = 1;
    for (; at < command.size(); ++at) {
        const std::string& word = command[at];
        if (word == "-" || word == "--") return at + 1;
        if (word.size() < 2 || (word[0] != '-' && word[0] != '+')) return at;
        const bool is_long = word[1] == '-';
        is_command = is_command || (word[0] == '-' && !is_long && word.find('c') != std::string::npos);
        // These take the next word: -euo pipefail.
        at +=
            is_long ? word == "--rcfile" || word == "--init-file" : word.back() == 'o' || word.back() == 'O';
    }
    return at;
}

}  // namespace thalweg::tool
