// The search rules against the dynamic loader's own answer, for programs of this machine.
#include "loader.h"

#include <algorithm>
#include <map>

#include "shell.h"

extern char** environ;

namespace thalweg::test {
namespace {

std::map<std::string, std::string> asked(const std::string& program) {
    std::map<std::string, std::string> paths;
    const std::string text = shell("LD_TRACE_LOADED_OBJECTS=1 '" + program + "' 2>&1").text;
    for (std::string_view line : tool::split(text, "\n")) {
        const std::size_t arrow = line.find(" => ");
        if (arrow == std::string_view::npos) continue;
        const std::string name(
            line.substr(line.find_first_not_of("\t "), arrow - line.find_first_not_of("\t ")));
        const std::string_view rest = line.substr(arrow + 4);
        if (rest[0] == '/') paths[name] = fs::weakly_canonical(rest.substr(0, rest.find(' '))).string();
    }
    return paths;
}

TEST(loader, finds_every_library_of_many_programs_where_ld_so_finds_it) {
    std::vector<std::string> candidates;
    for (const auto& entry : fs::directory_iterator("/usr/bin")) candidates.push_back(entry.path().string());
    std::sort(candidates.begin(), candidates.end());
    std::size_t compared = 0, libraries = 0;
    const tool::Environment environment(environ);
    // Every seventh: enough kinds of programs in little time.
    for (std::size_t i = 0; i < candidates.size() && compared < 60; i += 7) {
        const auto file = tool::ElfFile::open(candidates[i]);
        if (file == nullptr || !file->native() || file->interpreter().empty()) continue;
        std::map<std::string, std::string> found;
        tool::Loader loader(environment);
        loader.load_program(candidates[i], [&found](const tool::LoadedObject& object) {
            if (object.loader != nullptr) found[object.requested] = tool::canonical(object.path);
            return true;
        });
        for (const auto& [name, path] : asked(candidates[i])) {
            EXPECT_EQ(found[name], path) << name << " of " << candidates[i];
            ++libraries;
        }
        ++compared;
    }
    EXPECT_GE(compared, 10u);
    EXPECT_GE(libraries, 30u);
}

TEST(loader, symbols_agree_with_nm) {
    const std::string library = shell("ldconfig -p 2>/dev/null | grep -m1 -o '/.*libstdc++.so.6$'").text;
    const std::string path = library.empty() ? "" : library.substr(0, library.size() - 1);
    if (path.empty()) GTEST_SKIP() << "no libstdc++.so.6";
    const auto file = tool::ElfFile::open(path);
    ASSERT_NE(file, nullptr);
    const std::string names =
        shell("nm -D --defined-only --without-symbol-versions '" + path + "' | awk '{print $3}'").text;
    std::size_t count = 0;
    for (std::string_view name : tool::split(names, "\n"))
        if (!name.empty()) {
            EXPECT_TRUE(file->exports(name)) << name;
            EXPECT_FALSE(file->exports(std::string(name) + "_not"));
            ++count;
        }
    EXPECT_GT(count, 1000u);
    EXPECT_FALSE(file->exports("malloc"));  // used, not defined
}

}  // namespace
}  // namespace thalweg::test
