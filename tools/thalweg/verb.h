// What the verbs of the command line share.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/options.h"

namespace thalweg::tool {

// Exit statuses of our own. A program's own status is never changed: `thalweg run` becomes the program.
inline constexpr int exit_ok = 0;
inline constexpr int exit_failure = 1;           // the work could not be done
inline constexpr int exit_usage = 2;             // the command line is wrong
inline constexpr int exit_not_executable = 126;  // as shells do
inline constexpr int exit_not_found = 127;

// One row of verbs.def.
struct Verb {
    std::string_view name;
    std::string_view summary;
    int (*main)(int argc, char** argv);
};

// Parses with CLI11. Returns the exit status when there is nothing more to do: 0 after --help, 2 after a
// mistake, which is told in one line. argv[0] is the verb.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

// Writes "thalweg <verb>: <sentence>" to standard error and returns exit_usage.
int usage_error(std::string_view verb, std::string_view sentence);

// The exit status of a verb that ended with `status`. Where standard output did not take everything (a full
// disk, a closed descriptor), a sentence on standard error says so, and 0 becomes exit_failure.
int finish_output(std::string_view verb, int status);

}  // namespace thalweg::tool

#define VERB(name, summary) int name##_main(int argc, char** argv);
#include "verbs.def"
#undef VERB
