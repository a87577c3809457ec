#include "script.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "verb.h"

namespace thalweg::tool {

int run_script(std::string_view verb, std::string_view script, std::vector<std::string> words) {
    namespace fs = std::filesystem;
    const fs::path binary = fs::read_symlink("/proc/self/exe").parent_path();
    fs::path found, python = "python3";
    std::error_code none;  // a folder that may not be entered holds nothing of ours
    for (const fs::path& root : {binary / "../..", binary / "../share/thalweg"}) {
        if (!fs::exists(root / script, none)) continue;
        found = fs::canonical(root / script);
        // Of a prefix the folder around it is somebody else's, and so is an environment in it.
        if (fs::exists(root / ".venv/bin/python", none)) python = fs::canonical(root) / ".venv/bin/python";
    }
    if (found.empty()) {
        fmt::print(stderr, "thalweg {}: the plotting script {} is not installed\n", verb, script);
        return exit_failure;
    }
    words.insert(words.begin(), {python.string(), found.string()});
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    fmt::print(stderr, "thalweg {}: {} cannot be started; install Python 3 with matplotlib\n", verb,
               python.string());
    return exit_failure;
}

}  // namespace thalweg::tool
