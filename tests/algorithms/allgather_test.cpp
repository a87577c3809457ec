// Every allgather without parts: proved, compared with its claim and run by the oracle, with blocks of all
// lengths in all places.
#include "algorithms/cases.h"
#include "algorithms/patterns/digits.h"

namespace thalweg {
namespace {

constexpr Collective allgather = Collective::allgather;

class Allgather : public testing::TestWithParam<Choice> {
  protected:
    // Nothing where the algorithm says that it cannot.
    void try_with(const Problem& problem, int seeds) {
        if (refuse(GetParam(), problem, Topology{}).empty()) check(GetParam(), problem, Topology{}, seeds);
    }
    void try_with(Problem problem, const std::vector<Block>& blocks, int seeds) {
        problem.bytes = mean_bytes(blocks);
        problem.blocks = blocks;
        try_with(problem, seeds);
    }
};

TEST_P(Allgather, BlocksAllAlike) {
    for (int p = 1; p <= 130; ++p)
        for (std::uint64_t bytes : {0, 1, 7}) {
            if (p > 24 && static_cast<int>(bytes % 3) != p % 3 - 1) continue;
            Problem problem{0, p, 0, bytes};
            problem.in_place = p % 2 == 0;
            try_with(problem, p % 4 < 2);
            if (HasFatalFailure()) return;
        }
}

TEST_P(Allgather, RaggedBlocksInAllPlaces) {
    oracle::Random random(7);
    for (int p = 1; p <= 130; p += p < 24 ? 1 : 5)
        for (bool mess : {false, true}) {
            Problem problem{0, p};
            problem.in_place = random.below(2) != 0;
            try_with(problem, random_blocks(random, p, 5, mess), 1);
            if (HasFatalFailure()) return;
        }
}

TEST_P(Allgather, OneRankContributesEverythingOrNothing) {
    for (int p : {2, 3, 6, 8, 13, 31})
        for (int one = 0; one < p; ++one)
            for (std::uint64_t others : {0, 3}) {
                std::vector<Block> blocks(static_cast<std::size_t>(p));
                std::uint64_t at = 0;
                for (int rank = 0; rank < p; ++rank) {
                    Block& block = blocks[static_cast<std::size_t>(rank)];
                    block = {at, rank == one ? 3 - others : others};
                    at += block.bytes;
                }
                try_with({0, p}, blocks, 1);
                if (HasFatalFailure()) return;
            }
}

// The standard lets every rank place blocks as it likes: only their lengths are common.
TEST_P(Allgather, PlacesThatDifferFromRankToRank) {
    oracle::Random random(11);
    for (int p : {2, 3, 4, 6, 7, 8, 12, 16, 19, 26}) {
        const std::vector<Block> lengths = random_blocks(random, p, 6, false);
        std::vector<std::vector<Block>> places;
        std::vector<Problem> problems;
        for (int rank = 0; rank < p; ++rank) {
            places.push_back(rank % 3 == 0 ? lengths : random_blocks(random, p, 6, true));
            std::uint64_t at = 1;
            for (std::size_t b = lengths.size(); rank % 3 != 0 && b-- > 0;) {
                places.back()[b] = {at, lengths[b].bytes};
                at += lengths[b].bytes + static_cast<std::uint64_t>(rank % 3 - 1);
            }
        }
        std::vector<Schedule> schedules;
        for (int rank = 0; rank < p; ++rank) {
            Problem problem{rank, p, 0, mean_bytes(lengths)};
            problem.blocks = places[static_cast<std::size_t>(rank)];
            problem.in_place = rank % 2 == 0;  // likewise nobody else's affair
            problems.push_back(problem);
            if (!refuse(GetParam(), problem, Topology{}).empty()) return;
            schedules.push_back(build(GetParam(), problem, Topology{}));
        }
        for (std::uint64_t seed = 0; seed < 4; ++seed)
            ASSERT_EQ(oracle::run(allgather, problems, schedules, seed), "") << p;
    }
}

INSTANTIATE_TEST_SUITE_P(Choices, Allgather, testing::ValuesIn(flat_choices(allgather)),
                         [](const auto& info) { return test_name(info.param); });

// Figures of the literature, for blocks of 5 bytes.
TEST(AllgatherFigures, RoundsAndMessages) {
    const auto claimed = [](const char* text, int p) {
        const Problem problem{0, p, 0, 5};
        const Choice choice = choice_of(text, allgather);
        EXPECT_EQ(refuse(choice, problem, Topology{}), "");
        return claim(choice, problem, Topology{});
    };
    for (int p = 2; p <= 70; ++p) {
        const auto n = static_cast<std::uint64_t>(p);
        EXPECT_EQ(claimed("ring", p).rounds, n - 1);
        EXPECT_EQ(claimed("spread:ports=0", p).rounds, 1u);
        EXPECT_EQ(claimed("kport_ring:ports=3", p).rounds, (n + 1) / 3);
        // The last round brings what is missing: few blocks are together earlier than many.
        const auto rounds = [](std::uint64_t radix, std::uint64_t ranks) {
            std::uint64_t width = 1;
            while (width * radix < ranks) width *= radix;
            const std::uint64_t missing = std::min(width, ranks - width);
            return std::max(patterns::ceil_log(radix, width), 1 + patterns::ceil_log(radix, missing));
        };
        EXPECT_EQ(claimed("bruck", p).rounds, rounds(2, n));
        EXPECT_EQ(claimed("bruck:ports=3", p).rounds, rounds(4, n));
        for (const char* text : {"ring", "spread", "kport_ring", "bruck", "standard_exchange:ports=2"})
            EXPECT_EQ(claimed(text, p).bytes, n * (n - 1) * 5) << text;
        EXPECT_GE(claimed("standard_exchange", p).rounds, patterns::ceil_log(2, n));
        EXPECT_LE(claimed("standard_exchange", p).rounds, 2 * patterns::ceil_log(2, n));
    }
    for (int p : {2, 4, 8, 64}) {
        EXPECT_EQ(claimed("standard_exchange", p).rounds,
                  patterns::ceil_log(2, static_cast<std::uint64_t>(p)));
        EXPECT_EQ(claimed("standard_exchange", p).messages,
                  static_cast<std::uint64_t>(p) * patterns::ceil_log(2, static_cast<std::uint64_t>(p)));
        EXPECT_EQ(claimed("neighbour_exchange", p).rounds, static_cast<std::uint64_t>(p) / 2);
    }
    EXPECT_EQ(claimed("standard_exchange:ports=2", 27).rounds, 3u);
    EXPECT_NE(refuse(choice_of("neighbour_exchange", allgather), {0, 7, 0, 5}, Topology{}), "");
}

// By the largest message the model cuts up what leaders hand out in their hosts.
TEST(AllgatherFigures, TheLargestMessageOfBruckIsThatOfItsSchedules) {
    for (const char* text : {"bruck", "bruck:ports=2", "bruck:ports=3"})
        for (int p = 2; p <= 40; ++p) {
            const Choice choice = choice_of(text, allgather);
            const Problem problem{0, p, 0, 5};
            std::uint64_t largest = 0;
            for (const Schedule& schedule : build_all(choice, problem, Topology{}))
                for (const Step& step : schedule.steps())
                    if (step.kind == StepKind::send) largest = std::max(largest, step.source.bytes);
            EXPECT_EQ(choice.algorithm->price(problem, Topology{}, choice).piece_bytes, largest)
                << text_of(choice, problem);
        }
}

// One rank's part must not grow with p where the algorithm is log-step, nor take long to build.
TEST(AllgatherBuilding, IsCheapForAMillionRanks) {
    const int p = 1'000'000;
    for (const char* text : {"bruck", "bruck:ports=3", "standard_exchange", "standard_exchange:ports=3"}) {
        const Choice choice = choice_of(text, allgather);
        for (int rank : {0, 1, p / 2 + 1, p - 1}) {
            const Problem problem{rank, p, 0, 8};
            ASSERT_EQ(refuse(choice, problem, Topology{}), "");
            EXPECT_LE(build(choice, problem, Topology{}).steps().size(), 20u * 3u * 4u + 40u)
                << text << " " << rank;
            EXPECT_LT(building_seconds(choice, problem), 1e-3) << text << ": tens of microseconds";
        }
    }
    EXPECT_NE(refuse(choice_of("ring", allgather), {0, p, 0, 8}, Topology{}), "");
}

}  // namespace
}  // namespace thalweg
