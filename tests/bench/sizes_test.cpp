// Sizes of the command line: what is measured, and what is refused before anything is launched.
#include "bench/sizes.h"

#include <gtest/gtest.h>

namespace thalweg::bench {
namespace {

TEST(Sizes, ComeInOrderAndOnce) {
    std::vector<std::uint64_t> sizes;
    std::string why;
    EXPECT_TRUE(read_sizes({"1M", "64K", "1024K", "3"}, "bcast", sizes, why)) << why;
    EXPECT_EQ(sizes, (std::vector<std::uint64_t>{3, 65536, 1048576}));
}

TEST(Sizes, ThatAreNoneAreNamed) {
    for (const char* wrong : {"x", "0", "-1", "2147483648", ""}) {
        std::vector<std::uint64_t> sizes;
        std::string why;
        EXPECT_FALSE(read_sizes({"64K", wrong}, "bcast", sizes, why)) << wrong;
        EXPECT_EQ(why, std::string("--bytes ") + wrong + ": give sizes from 1 to 2147483647, like 64K or 4M");
    }
}

// The programs on all ranks would end the launch of it.
TEST(Sizes, OfSumsAreWholeIntegers) {
    for (const char* sums : {"allreduce", "iallreduce"}) {
        std::vector<std::uint64_t> sizes;
        std::string why;
        EXPECT_TRUE(read_sizes({"8", "4K"}, sums, sizes, why)) << why;
        EXPECT_FALSE(read_sizes({"8", "12"}, sums, sizes, why));
        EXPECT_NE(why.find("--bytes 12: "), std::string::npos) << why;
        EXPECT_NE(why.find("multiples of 8"), std::string::npos) << why;
    }
}

}  // namespace
}  // namespace thalweg::bench
