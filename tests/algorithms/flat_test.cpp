// Every broadcast without parts: proved, compared with its claim and run by the oracle.
#include "algorithms/cases.h"

namespace thalweg {
namespace {

class Flat : public testing::TestWithParam<Choice> {};

TEST_P(Flat, EveryRootOfUpTo17Ranks) {
    for (int p = 1; p <= 17; ++p)
        for (int root = 0; root < p; ++root)
            for (std::uint64_t bytes : sizes_for(p)) {
                check(GetParam(), {0, p, root, bytes}, Topology{}, bytes % 2 == 1 ? 1 : 0);
                if (HasFatalFailure()) return;
            }
}

// The oracle runs every fourth problem: at least one of each number of ranks, and each size on several.
TEST_P(Flat, AFewRootsOfUpTo130Ranks) {
    int problems = 0;
    for (std::uint64_t p = 18; p <= 130; ++p)
        for (const std::uint64_t bytes :
             {std::uint64_t{0}, std::uint64_t{1}, p - 1, p, std::uint64_t{131}, std::uint64_t{263}}) {
            if ((bytes == 131 && p % 2 == 0) || (bytes == 263 && p % 8 > 1)) continue;
            const auto root = static_cast<int>((bytes * 7 + 3) % p);
            check(GetParam(), {0, static_cast<int>(p), root, bytes}, Topology{}, ++problems % 4 == 0 ? 1 : 0);
            if (HasFatalFailure()) return;
        }
}

INSTANTIATE_TEST_SUITE_P(Choices, Flat, testing::ValuesIn(flat_choices(Collective::bcast)),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace thalweg
