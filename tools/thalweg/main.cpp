#include <fmt/core.h>

#include <array>
#include <cstdio>
#include <exception>
#include <new>
#include <vector>

#include "base/text.h"
#include "json_text.h"
#include "thalweg/thalweg.h"
#include "verb.h"

namespace thalweg::tool {

namespace {

constexpr Verb verbs[] = {
#define VERB(name, summary) {#name, summary, name##_main},
#include "verbs.def"
#undef VERB
};

const Verb* find_verb(std::string_view name) {
    for (const Verb& verb : verbs)
        if (verb.name == name) return &verb;
    return nullptr;
}

void print_help() {
    fmt::print(
        "Thalweg makes MPI programs communicate faster without changing them.\n\n"
        "  mpiexec -n 64 thalweg run ./app\n\n"
        "Usage: thalweg VERB [OPTIONS]\n\n");
    for (const Verb& verb : verbs) fmt::print("  {:<10}{}\n", verb.name, verb.summary);
    fmt::print("  {:<10}{}\n  {:<10}{}\n\n", "help",
               "this text; `thalweg help VERB` for one verb, `thalweg help bench bcast` for a part",
               "--version", "the version");
    fmt::print(
        "Sizes are written 65536, 64K, 4M (powers of 1024); rates 100mbit, 12GB/s; times carry their unit\n"
        "in the name. The settings of `thalweg run` are environment variables, too: see `thalweg info`.\n");
}

int unknown_verb(std::string_view name) {
    if (name.empty()) {
        fmt::print(stderr, "thalweg: the verb is empty: a variable that should name it may not be set\n");
        return exit_usage;
    }
    std::vector<std::string_view> names;
    for (const Verb& verb : verbs) names.push_back(verb.name);
    const std::string_view nearest = nearest_name(name, names);
    if (nearest.empty())
        fmt::print(stderr, "thalweg: there is no verb {}; `thalweg help` lists them\n", name);
    else
        fmt::print(stderr, "thalweg: there is no verb {}; maybe {}?\n", name, nearest);
    return exit_usage;
}

// argv: a verb and the word behind it, if there is one. Of run and info that is a program, which is not to be
// started for its help.
int help_of(const Verb& verb, int argc, char** argv) {
    char help[] = "--help";
    const bool own_words = verb.name != "run" && verb.name != "info";
    const bool named = own_words && argc > 1 && argv[1][0] != '-' && argv[1][0] != '\0';
    std::array<char*, 4> arguments = {argv[0], named ? argv[1] : help, named ? help : nullptr, nullptr};
    return verb.main(named ? 3 : 2, arguments.data());
}

}  // namespace

int tool_main(int argc, char** argv) {
    const std::string_view name = argc > 1 ? argv[1] : "help";
    if (name == "--version" || name == "version") {
        fmt::print("thalweg {}.{}.{}\n", THALWEG_VERSION_MAJOR, THALWEG_VERSION_MINOR, THALWEG_VERSION_PATCH);
        return exit_ok;
    }
    if (name == "help" || name == "--help" || name == "-h") {
        if (argc <= 2) {
            print_help();
            return argc > 1 ? exit_ok : exit_usage;
        }
        const Verb* verb = find_verb(argv[2]);
        if (verb == nullptr) return unknown_verb(argv[2]);
        return help_of(*verb, argc - 2, argv + 2);
    }
    const Verb* verb = find_verb(name);
    return verb == nullptr ? unknown_verb(name) : verb->main(argc - 1, argv + 1);
}

}  // namespace thalweg::tool

// What nobody expected ends in a sentence too, and only when all that was open is closed: a lab's hosts are
// gone.
int main(int argc, char** argv) {
    using namespace thalweg::tool;
    const std::string_view verb = argc > 1 ? argv[1] : "";
    try {
        return finish_output(verb, tool_main(argc, argv));
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "thalweg {}: this needs more memory than there is: ask for less, or allow more\n",
                   verb);
        return exit_failure;
    } catch (const std::exception& error) {
        if (std::ferror(stdout) != 0) return finish_output(verb, exit_failure);  // fmt::print throws then
        fmt::print(
            stderr,
            "thalweg {}: cannot go on: {}; look for a damaged file among those that were named, and if there "
            "is none, report it as a fault of Thalweg\n",
            verb, plain_words(error.what()));
        return exit_failure;
    }
}
