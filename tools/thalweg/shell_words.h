// The words of a shell script, as far as it can be read without running it; and one for a shell to read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "environment.h"

namespace thalweg::tool {

struct ShellWord {
    std::string text;   // without its quotes, variables replaced
    bool known = true;  // false: something in it is known only when the script runs ($1, $(…), ${x:-y})
};

// The words of one line: quoted parts belong to the word they are in, $NAME and ${NAME} have the values of
// `environment`, the empty text where it has none. What separates commands separates words; a comment ends
// the line.
std::vector<ShellWord> shell_words(std::string_view line, const Environment& environment);

// One word that a shell reads as `text`, whatever is in it.
std::string shell_quoted(std::string_view text);

// NAME=value, as a word before a command or behind `export`.
bool is_assignment(std::string_view word);

// How many words of the command of a shell are itself and its options. Sets `is_command` where the one behind
// them is to be run as it stands (-c), and is no script's name.
std::size_t end_of_options(const std::vector<std::string>& command, bool& is_command);

}  // namespace thalweg::tool
