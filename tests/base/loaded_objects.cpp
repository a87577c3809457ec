// The files that the loader has in this process.
#include "base/loaded_objects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace thalweg {
namespace {

std::vector<std::string> loaded_files(const void* base = nullptr) {
    const LoadedFiles files(base);
    return {files.begin(), files.end()};
}

bool has(const std::vector<std::string>& files, const char* part) {
    return std::any_of(files.begin(), files.end(),
                       [&](const std::string& file) { return file.find(part) != std::string::npos; });
}

TEST(loaded_objects, are_all_those_or_those_behind_one) {
    EXPECT_TRUE(has(loaded_files(), "libc.so"));
    EXPECT_TRUE(has(loaded_files(), "libstdc++"));
    Dl_info standard;
    ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "_ZSt4cout"), &standard), 0);
    const std::vector<std::string> behind = loaded_files(standard.dli_fbase);
    EXPECT_LT(behind.size(), loaded_files().size());
    EXPECT_FALSE(has(behind, "libstdc++"));
    EXPECT_TRUE(has(behind, "libc.so")) << "which it depends on";
    EXPECT_TRUE(loaded_files(&standard).empty()) << "nothing is loaded there";
}

TEST(loaded_objects, tell_what_they_define) {
    const std::vector<std::string> files = loaded_files();
    const auto c = std::find_if(files.begin(), files.end(), [](const std::string& file) {
        return file.find("libc.so") != std::string::npos;
    });
    ASSERT_NE(c, files.end());
    // Nobody has a function of that name in front, as sanitizers have theirs.
    EXPECT_EQ(symbol_of(c->c_str(), "gnu_get_libc_version"), dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
    EXPECT_EQ(symbol_of(c->c_str(), "no_such_function"), nullptr);
    EXPECT_EQ(symbol_of("/no/such/file.so", "fopen"), nullptr);
}

// Who asks an object while the loader's list is locked waits for who loads one, and that one for the list.
TEST(loaded_objects, are_asked_while_others_load) {
    std::atomic<bool> over{false};
    std::thread other([&over] {
        while (!over)
            if (void* handle = dlopen("libdl.so.2", RTLD_LAZY)) dlclose(handle);
    });
    for (int i = 0; i < 300; ++i)
        for (const char* file : LoadedFiles()) symbol_of(file, "no_such_function");
    over = true;
    other.join();
}

}  // namespace
}  // namespace thalweg
