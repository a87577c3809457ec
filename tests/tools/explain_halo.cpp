// What `thalweg explain halo` says of grids of which some ranks alone have neighbours on other hosts.
#include <gtest/gtest.h>

#include <string>

#include "shell.h"

namespace thalweg::test {
namespace {

std::string explained(const std::string& arguments) {
    return shell("'" + thalweg + "' explain halo " + arguments).text;
}

// Rank 1, which has the most of what stays inside, sends nothing to the other host.
TEST(explain_halo, what_leaves_a_host_is_told_of_a_rank_that_sends_it) {
    const std::string row = explained("--grid 8x1 --cells 16x8 --ranks-per-host 4");
    EXPECT_NE(row.find("inside the host: rank 1, "), std::string::npos) << row;
    EXPECT_NE(row.find("rank 3 sends 1 messages there, 0 of them strided"), std::string::npos) << row;
    EXPECT_NE(row.find("all ranks send 2 there"), std::string::npos) << row;
    const std::string across = explained("--grid 1x8 --cells 16x8 --ranks-per-host 4");
    EXPECT_NE(across.find("rank 3 sends 1 messages there, 1 of them strided"), std::string::npos) << across;
    // One that sends some is the one that is shown.
    const std::string every = explained("--grid 4x2 --cells 16 --ranks-per-host 2");
    EXPECT_NE(every.find("inside the host: rank 0, "), std::string::npos) << every;
    EXPECT_NE(every.find("rank 0 sends 1 messages there"), std::string::npos) << every;
    const std::string alone = explained("--grid 2x2 --cells 16 --ranks-per-host 4");
    EXPECT_EQ(alone.find("messages there"), std::string::npos) << alone;
}

}  // namespace
}  // namespace thalweg::test
