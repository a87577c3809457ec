// Every allreduce and barrier without parts: proved, compared with its claim and run by the oracle.
#include "algorithms/cases.h"
#include "schedule/builder.h"

namespace thalweg {
namespace {

class Allreduce : public testing::TestWithParam<Choice> {
  protected:
    void try_with(const Problem& problem, int seeds) {
        if (refuse(GetParam(), problem, Topology{}).empty()) check(GetParam(), problem, Topology{}, seeds);
    }
};

TEST_P(Allreduce, EveryLengthForUpTo20Ranks) {
    for (int p = 1; p <= 20; ++p)
        for (std::uint64_t element : {1, 4, 8, 12})
            for (std::uint64_t elements : {0, 1, p - 1, p, p + 1, 23}) {
                Problem problem{0, p, 0, elements * element};
                problem.element_bytes = element;
                for (bool in_place : {false, true}) {
                    problem.in_place = in_place;
                    problem.commutative = true;
                    try_with(problem, 1);
                    problem.commutative = element != 8;
                    if (!problem.commutative) try_with(problem, 2);
                    if (HasFatalFailure()) return;
                }
            }
}

TEST_P(Allreduce, UpTo130Ranks) {
    for (int p = 21; p <= 130; ++p) {
        Problem problem{0, p, 0, p % 3 == 0 ? 131u * 8 : 8u * 5};
        problem.element_bytes = p % 5 == 0 ? 4 : 8;
        problem.in_place = p % 2 == 0;
        problem.commutative = p % 5 == 0;
        try_with(problem, p % 4 < 2);
        problem.commutative = true;
        if (p % 5 != 0 && p % 7 == 0) try_with(problem, 1);
        if (HasFatalFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(Choices, Allreduce, testing::ValuesIn(flat_choices(Collective::allreduce)),
                         [](const auto& info) { return test_name(info.param); });

TEST(AllreduceRefusals, ARingDoesNotKeepTheOrderOfRanks) {
    Problem problem{0, 4, 0, 64};
    problem.commutative = false;
    EXPECT_NE(refuse(choice_of("ring", Collective::allreduce), problem, Topology{}), "");
    EXPECT_EQ(refuse(choice_of("rabenseifner", Collective::allreduce), problem, Topology{}), "");
    EXPECT_EQ(refuse(choice_of("recursive_doubling", Collective::allreduce), problem, Topology{}), "");
}

// 2 n (p-1)/p per rank is the least that an allreduce can send.
TEST(AllreduceFigures, BytesOfTheOptimalOnes) {
    for (int p : {2, 3, 7, 8, 16, 30}) {
        const auto n = static_cast<std::uint64_t>(p);
        EXPECT_EQ(claim(choice_of("ring", Collective::allreduce), {0, p, 0, 960}, Topology{}).bytes,
                  2 * 960 * (n - 1));
    }
    for (int p : {2, 4, 8, 32}) {
        const auto n = static_cast<std::uint64_t>(p);
        EXPECT_EQ(claim(choice_of("rabenseifner", Collective::allreduce), {0, p, 0, 960}, Topology{}).bytes,
                  2 * 960 * (n - 1));
    }
}

// The operands of a million ranks: a schedule of log-step size.
TEST(AllreduceBuilding, IsCheapForAMillionRanks) {
    const int p = 1'000'000;
    for (const char* text : {"recursive_doubling", "rabenseifner"})
        for (int rank : {0, 1, p / 2 + 1, p - 1}) {
            const Problem problem{rank, p, 0, 1 << 20};
            const Choice choice = choice_of(text, Collective::allreduce);
            EXPECT_LE(build(choice, problem, Topology{}).steps().size(), 20u * 6u) << text;
            EXPECT_LT(building_seconds(choice, problem), 1e-3) << text << ": tens of microseconds";
        }
}

TEST(Barrier, NobodyEndsBeforeAllHaveBegun) {
    for (const Choice& choice : flat_choices(Collective::barrier))
        for (int p = 1; p <= 130; ++p) {
            check(choice, {0, p}, Topology{}, p <= 20);
            if (HasFatalFailure()) return;
        }
}

// What the check of the barrier is worth: without one of its messages somebody may end too early.
TEST(Barrier, AMissingSignalIsFound) {
    const Choice choice = choice_of("dissemination", Collective::barrier);
    const Problem problem{0, 6};
    std::vector<Schedule> schedules = build_all(choice, problem, Topology{});
    for (int from = 0; from < 6; ++from)
        for (int round = 0; round < 3; ++round) {
            // Both ends of the message are left out; the round's other steps stay.
            std::vector<Schedule> damaged;
            const int to = (from + (1 << round)) % 6;
            for (const Schedule& schedule : schedules) {
                Builder builder(schedule.rank(), 6);
                std::vector<StepId> heard, hearing;
                for (int i = 0, step = 1; i < 3; ++i, step *= 2) {
                    const int rank = schedule.rank();
                    heard.insert(heard.end(), hearing.begin(), hearing.end());
                    hearing.clear();
                    if (!(i == round && rank == from)) builder.send((rank + step) % 6, {}, heard);
                    if (!(i == round && rank == to))
                        hearing.push_back(builder.recv((rank - step + 6) % 6, {}));
                }
                damaged.push_back(std::move(builder).finish());
            }
            EXPECT_NE(validate(damaged, oracle::contracts_for(Collective::barrier, problem)).why, "");
            EXPECT_NE(oracle::run(Collective::barrier, problem, damaged, 1), "");
        }
}

}  // namespace
}  // namespace thalweg
