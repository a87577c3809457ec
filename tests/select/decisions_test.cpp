// Decisions that are kept: each as if it were asked for, in bounded memory.
#include "select/decisions.h"

#include <algorithm>

#include "algorithms/cases.h"
#include "cpu_time.h"

namespace thalweg {
namespace {

// Sizes that no two calls have in common meet few classes, and each has the decision that was asked for it.
TEST(Decisions, SizesOfOneClassAreDecidedOnce) {
    const std::string table =
        R"({"collective":"allgather","machine":"test","date":"2025-01-01","method":"made up","commit":"0",)"
        R"("rows":[{"hosts":[2,9],"bytes":[100000,200000],"choice":"ring"},)"
        R"({"hosts":[2,9],"bytes":[150000,300001],"choice":"native"}]})";
    for (const bool overlapped : {false, true}) {
        Selection selection{Machine::from_options(20, 1e9), "mpich", {}, table};
        selection.overlapped = overlapped;
        const auto selector =
            std::make_shared<const Selector>(Collective::allgather, topology_of("node:4 core:2"), selection);
        Decisions decisions(selector);
        int asked = 0;
        for (std::uint64_t bytes = 0; bytes < 3'000'000; bytes += 1237, ++asked) {
            // The selector keeps what it has decided, too.
            const Decision own = asked % 20 != 0 ? selector->decide(bytes)
                                                 : decide(Collective::allgather, bytes,
                                                          topology_of("node:4 core:2"), selection);
            const Decision& kept = decisions.of(bytes);
            ASSERT_EQ(own.choice, kept.choice) << bytes;
            ASSERT_EQ(own.reason, kept.reason) << bytes;
        }
        for (const std::uint64_t edge : {1u, 99999u, 100000u, 200000u, 200001u, 300001u, 300002u}) {
            EXPECT_EQ(selector->decide(edge).choice, decisions.of(edge).choice) << edge;
            EXPECT_EQ(selector->decide(edge).reason, decisions.of(edge).reason) << edge;
        }
        EXPECT_GT(asked, 2000);
        EXPECT_LE(decisions.kept(), 100u);
    }
}

// The model searches among hundreds of choices, and a program may make the same communicator ten thousand
// times.
TEST(Decisions, CommunicatorsAlikeHaveTheModelSearchOnce) {
    const auto selector =
        std::make_shared<const Selector>(Collective::allgather, topology_of("node:1024 core:4"),
                                         Selection{Machine::from_options(20, 1e9), "mpich", {}, {}});
    const auto seconds_of = [&selector](int communicators) {
        const double begin = test::thread_cpu_seconds();
        for (int i = 0; i < communicators; ++i) {
            Decisions decisions(selector);
            EXPECT_TRUE(decisions.of(1 << 20).reason.starts_with("cost model"));
        }
        return test::thread_cpu_seconds() - begin;
    };
    const double first = seconds_of(1);
    EXPECT_LT(seconds_of(100), 20 * first);
}

// Where hosts have as many ranks each, that search looks at none of them.
TEST(Decisions, TheFirstAmongManyHostsTakesNoLongerThanAmongFew) {
    const auto least_seconds = [](Collective collective, const char* hosts) {
        const Topology topology = topology_of(hosts);
        double least = 1e9;
        for (int i = 0; i < 7; ++i) {
            const Selector selector(collective, topology, {Machine::from_options(20, 1e9), "mpich", {}, {}});
            const double begin = test::thread_cpu_seconds();
            EXPECT_TRUE(selector.decide(1 << 20).reason.starts_with("cost model")) << hosts;
            least = std::min(least, test::thread_cpu_seconds() - begin);
        }
        return least;
    };
    EXPECT_LT(least_seconds(Collective::allgather, "node:8000 core:4"),
              10 * least_seconds(Collective::allgather, "node:32 core:4"));
    EXPECT_LT(least_seconds(Collective::allreduce, "node:200000 core:4"),
              10 * least_seconds(Collective::allreduce, "node:32 core:4"));
}

TEST(Decisions, AskedForOnesAreKeptInBounds) {
    Selection selection;
    selection.forced = choice_of("ring", Collective::allgather);
    Decisions decisions(
        std::make_shared<const Selector>(Collective::allgather, topology_of("node:4 core:1"), selection));
    for (std::uint64_t bytes = 1; bytes < 5000; ++bytes)
        ASSERT_EQ(decisions.of(bytes).choice, selection.forced);
    EXPECT_LE(decisions.kept(), 1024u);
}

}  // namespace
}  // namespace thalweg
