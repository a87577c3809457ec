// What the published analyses say, as numbers: transfers of the two rings, rounds of the circulant broadcast.
#include "algorithms/cases.h"
#include "algorithms/patterns/circulant.h"
#include "algorithms/patterns/group.h"

namespace thalweg {
namespace {

// Messages of the ring alone: the scatter sends one to every rank but the root when no block is empty.
std::uint64_t ring_messages(const char* name, int p, Verdict& verdict) {
    const Problem problem{0, p, 0, static_cast<std::uint64_t>(p) * 16};
    verdict = validate(build_all(choice_of(name), problem, Topology{}),
                       oracle::contracts_for(Collective::bcast, problem));
    EXPECT_EQ(verdict.status, Status::ok) << verdict.why;
    return verdict.messages - static_cast<std::uint64_t>(p - 1);
}

TEST(Rings, TransfersOfThePaper) {
    // p, closed ring, trimmed ring (arXiv 1603.06809 and its analysis).
    const std::uint64_t table[][3] = {
        {8, 56, 44},         {9, 72, 59},         {10, 90, 75},       {16, 240, 208},   {17, 272, 239},
        {24, 552, 500},      {32, 992, 912},      {33, 1056, 975},    {64, 4032, 3840}, {65, 4160, 3967},
        {128, 16256, 15808}, {129, 16512, 16063}, {256, 65280, 64256}};
    for (const auto& [p, closed, trimmed] : table) {
        Verdict verdict;
        EXPECT_EQ(ring_messages("scatter_ring", static_cast<int>(p), verdict), closed) << p;
        EXPECT_EQ(verdict.redundant_messages, closed - trimmed) << p;
        EXPECT_EQ(verdict.redundant_bytes, (closed - trimmed) * 16) << p;
        EXPECT_EQ(ring_messages("scatter_ring_trimmed", static_cast<int>(p), verdict), trimmed) << p;
        EXPECT_EQ(verdict.redundant_messages, 0u) << p;
        EXPECT_EQ(verdict.redundant_bytes, 0u) << p;
    }
}

TEST(Rings, TheTrimmedOneMovesEveryByteOnce) {
    for (int p = 2; p <= 399; p += p < 40 ? 1 : 17) {
        Verdict verdict;
        std::uint64_t kept = 0;
        for (int v = 1; v < p; ++v) kept += static_cast<std::uint64_t>(std::min(v & -v, p - v) - 1);
        const auto n = static_cast<std::uint64_t>(p);
        EXPECT_EQ(ring_messages("scatter_ring_trimmed", p, verdict), n * (n - 1) - (n - 1) - kept) << p;
    }
}

// The four conditions of Träff's correctness proof, for more ranks than the oracle can run.
TEST(Circulant, SchedulesAreCorrectForManyRanks) {
    for (int p : {2, 3, 4, 5, 6, 7, 131, 255, 256, 257, 1000, 4097, 10007}) {
        const std::vector<int> skip = patterns::circulant_skips(p);
        const int q = static_cast<int>(skip.size()) - 1;
        ASSERT_EQ(q, patterns::ceil_log2(static_cast<std::uint64_t>(p)));
        std::vector<std::vector<int>> receives(static_cast<std::size_t>(p));
        for (int v = 1; v < p; ++v)
            receives[static_cast<std::size_t>(v)] = patterns::circulant_receives(v, skip);
        for (int v = 1; v < p; ++v) {
            const auto& mine = receives[static_cast<std::size_t>(v)];
            // q different blocks in q rounds, one of them of this phase.
            std::set<int> residues;
            int fresh = 0;
            for (int block : mine) {
                ASSERT_TRUE(-q <= block && block < q) << p << " " << v;
                residues.insert((block + q) % q);
                fresh += block >= 0;
            }
            ASSERT_EQ(static_cast<int>(residues.size()), q) << p << " " << v;
            ASSERT_EQ(fresh, 1) << p << " " << v;
            // The sender has it: received in an earlier round of this phase, or in the phase before.
            for (int k = 0; k < q; ++k) {
                const int from = (v - skip[static_cast<std::size_t>(k)] + p) % p,
                          block = mine[static_cast<std::size_t>(k)];
                if (from == 0) {
                    ASSERT_EQ(block, k) << p << " " << v;
                    continue;
                }
                const auto& theirs = receives[static_cast<std::size_t>(from)];
                bool has = false;
                for (int j = 0; j < q; ++j)
                    has = has || (j < k && theirs[static_cast<std::size_t>(j)] == block) ||
                          theirs[static_cast<std::size_t>(j)] - q == block;
                ASSERT_TRUE(has) << p << " " << v << " round " << k;
            }
        }
        for (int v = 0; v < p; v += 1 + p / 50) {
            const std::vector<int> sends = patterns::circulant_sends(v, skip);
            for (int k = 0; k < q; ++k) {
                const int to = (v + skip[static_cast<std::size_t>(k)]) % p;
                if (to == 0) continue;
                ASSERT_EQ(sends[static_cast<std::size_t>(k)],
                          receives[static_cast<std::size_t>(to)][static_cast<std::size_t>(k)]);
            }
        }
    }
}

TEST(Circulant, RoundsAreTheLowerBoundForEveryNumberOfRanksAndBlocks) {
    for (int p = 1; p <= 130; ++p)
        for (std::uint64_t blocks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 31, 64}) {
            if (p > 40 && blocks > 9 && (static_cast<std::uint64_t>(p) + blocks) % 8 != 0) continue;
            const Problem problem{0, p, p / 3, blocks * 8 - 3};
            const Verdict verdict =
                validate(build_all(choice_of("circulant:chunk_bytes=8"), problem, Topology{}),
                         oracle::contracts_for(Collective::bcast, problem));
            ASSERT_EQ(verdict.status, Status::ok) << p << " " << blocks << ": " << verdict.why;
            const auto q = static_cast<std::uint64_t>(patterns::ceil_log2(static_cast<std::uint64_t>(p)));
            ASSERT_EQ(verdict.rounds, p == 1 ? 0 : blocks - 1 + q) << p << " " << blocks;
            ASSERT_EQ(verdict.messages, blocks * static_cast<std::uint64_t>(p - 1)) << p << " " << blocks;
            ASSERT_EQ(verdict.redundant_bytes, 0u) << p << " " << blocks;
        }
}

TEST(Building, IsCheapForAMillionRanks) {
    // One rank's part must not grow with p where the algorithm is log-step.
    const int p = 1 << 20;
    for (const char* text :
         {"binomial", "knomial:radix=8", "kary:chunk_bytes=64K", "circulant:chunk_bytes=64K",
          "chain:chunk_bytes=64K", "scatter_recursive_doubling", "split_binary:chunk_bytes=64K"}) {
        const Choice choice = choice_of(text);
        for (int rank : {0, 1, p / 2 + 1, p - 1}) {
            const Problem problem{rank, p, 7, 4 << 20};
            ASSERT_EQ(refuse(choice, problem, Topology{}), "");
            EXPECT_LE(build(choice, problem, Topology{}).steps().size(), 64u * 22u)
                << text << " rank " << rank;
        }
    }
    EXPECT_NE(refuse(choice_of("scatter_ring"), {0, p, 0, 4 << 20}, Topology{}), "");
}

TEST(Building, LongMessagesStayWithinTheMessagesOfAPair) {
    for (const char* text :
         {"chain:chunk_bytes=1", "circulant:chunk_bytes=1", "split_binary:chunk_bytes=1"}) {
        const Problem problem{0, 2, 0, 10'000'000};
        for (const Schedule& schedule : build_all(choice_of(text), problem, Topology{}))
            for (const Step& step : schedule.steps()) ASSERT_LT(step.message, max_messages_per_pair) << text;
    }
}

// Where the numbers of a pair set the size of pieces, the half of one byte more has fewer of them than the
// other.
TEST(Building, HalvesOfDifferentNumbersOfPiecesArriveWhole) {
    const Choice choice = choice_of("split_binary:chunk_bytes=1");
    for (int p = 1; p <= 13; ++p)
        for (std::uint64_t chunk = 1; chunk <= 5; ++chunk)
            for (std::uint64_t more : {0, 1, 2}) {
                Problem problem{0, p, p / 2, 2 * 6 * chunk + more};
                problem.messages_per_pair = 2 * 6;
                check(choice, problem, Topology{}, 1);
                if (HasFatalFailure()) return;
            }
    check(choice, {0, 4, 0, max_messages_per_pair + 1}, Topology{}, 1);
}

}  // namespace
}  // namespace thalweg
