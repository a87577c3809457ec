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

TEST_P(Flat, AFewRootsOfUpTo130Ranks) {
    for (int p = 18; p <= 130; ++p)
        for (int size : {1, p - 1, 131, 263}) {
            const auto bytes = static_cast<std::uint64_t>(size);
            const int root = static_cast<int>((bytes * 7 + 3) % static_cast<std::uint64_t>(p));
            if (bytes == 263 && p % 8 > 1) continue;
            check(GetParam(), {0, p, root, bytes}, Topology{}, p % 4 == 0 ? 1 : 0);
            if (HasFatalFailure()) return;
        }
}

INSTANTIATE_TEST_SUITE_P(Choices, Flat, testing::ValuesIn(flat_choices(Collective::bcast)),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace thalweg
