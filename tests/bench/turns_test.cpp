// Before which timed calls an untimed one goes: where one of ours has it, all columns do.
#include <gtest/gtest.h>

#include "driver/config.h"

namespace thalweg::bench {
namespace {

Column native(const std::string& name) {
    Column column;
    column.name = name;
    return column;
}

Column ours(const std::string& name, const std::string& option) {
    Column column = native(name);
    column.native = false;
    column.option = option;
    return column;
}

// Halos of 4 KiB on one host took 0.66 to 0.91 of their time right behind an untimed call, which half of
// Thalweg's samples had and none of the library's.
TEST(Turns, AColumnOfOursHasNoUntimedCallThatOthersLack) {
    Config config;
    config.columns = {native("native"), native("native (A/A)"), ours("thalweg", "auto"),
                      ours("thalweg init", "auto"), ours("thalweg spread", "spread")};
    Point point;
    point.columns = {0, 1, 2, 3, 4};
    EXPECT_TRUE(choices_change(config, point));
    // One choice is made once.
    point.columns = {0, 1, 2, 3};
    EXPECT_FALSE(choices_change(config, point));
    point.columns = {0, 1, 4};
    EXPECT_FALSE(choices_change(config, point));
    // Natives have no choice of ours, whatever stands there.
    point.columns = {0, 1};
    EXPECT_FALSE(choices_change(config, point));
    EXPECT_FALSE(choices_change(config, {}));
}

}  // namespace
}  // namespace thalweg::bench
