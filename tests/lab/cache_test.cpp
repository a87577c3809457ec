// What was measured of this machine once, and is kept for the next lab.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "lab/lab.h"

namespace fs = std::filesystem;
using namespace thalweg::lab;

// No lab would start until somebody finds and removes it.
TEST(Cache, AFileOfSomethingElseIsNoFaultAndIsReplaced) {
    std::string folder = (fs::temp_directory_path() / "thalweg-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    ASSERT_EQ(setenv("XDG_CACHE_HOME", folder.c_str(), 1), 0);
    const fs::path path = fs::path(folder) / "thalweg/lab.json";
    const Network network;
    Calibration measured, found;
    measured.rate_bytes_per_s = 12e6;
    EXPECT_FALSE(cached_calibration(network, found));
    store_calibration(network, measured);
    ASSERT_TRUE(cached_calibration(network, found));
    std::ifstream file(path);
    const std::string key = nlohmann::json::parse(file)["calibration"].begin().key();
    const long now = static_cast<long>(std::time(nullptr));
    const nlohmann::json others[] = {
        5,
        {{"calibration", 5}},
        {{"calibration", {1, 2}}},
        {{"calibration", "text"}},
        {{"calibration", {{key, 5}}}},
        {{"calibration", {{key, {{"stored_at_s", "yesterday"}}}}}},
        {{"calibration", {{key, {{"stored_at_s", now}, {"rate_bytes_per_s", "fast"}}}}}}};
    for (const nlohmann::json& other : others) {
        SCOPED_TRACE(other.dump());
        std::ofstream(path) << other;
        EXPECT_FALSE(cached_calibration(network, found));
        store_calibration(network, measured);
        found.rate_bytes_per_s = 0;
        EXPECT_TRUE(cached_calibration(network, found));
        EXPECT_EQ(found.rate_bytes_per_s, 12e6);
    }
    unsetenv("XDG_CACHE_HOME");
    fs::remove_all(folder);
}
