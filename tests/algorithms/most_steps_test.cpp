// The bound that decides whether a plan is made holds for every rank of every broadcast, allgather and
// allreduce, and is not far above the busiest.
#include "algorithms/most_steps.h"

#include "algorithms/cases.h"

namespace thalweg {
namespace {

// Every algorithm as it stands, and with pieces where it has them.
std::vector<Choice> choices() {
    std::vector<Choice> all;
    for (const Algorithm& row : algorithms()) {
        if (row.collective != Collective::bcast) continue;
        all.push_back(standard_choice(row));
        for (std::size_t i = 0; i < row.parameters.size(); ++i)
            if (row.parameters[i].name == "chunk_bytes") {
                all.push_back(standard_choice(row));
                all.back().values[i] = 100;
            }
    }
    for (const char* text :
         {"knomial:radix=5:chunk_bytes=500", "kary:fanout=3:chunk_bytes=700",
          "chain:chunk_bytes=100:chains=3", "node_leader(intra=linear,inter=chain:chunk_bytes=100)",
          "node_leader(intra=binomial,inter=scatter_ring)",
          "node_leader(intra=chain:chunk_bytes=50,inter=chain:chunk_bytes=100)",
          "node_leader(intra=chain:chunk_bytes=0,inter=scatter_ring_trimmed)",
          "node_leader(intra=chain:chunk_bytes=0,inter=circulant:chunk_bytes=500)",
          "node_leader(intra=scatter_ring,inter=circulant:chunk_bytes=500)"})
        all.push_back(choice_of(text));
    return all;
}

TEST(MostSteps, BoundsEveryRanksPart) {
    for (const Choice& choice : choices())
        for (const char* hosts :
             {"node:1 core:1", "node:1 core:3", "node:1 core:7", "node:13 core:1", "node:4 core:2",
              "node:3 core:5", "node:2 core:16", "ranks:0,1,0,2,1,2,2"}) {
            const Topology topology = topology_of(hosts);
            for (std::uint64_t bytes : {0u, 1u, 7u, 1000u, 12345u, 100000u}) {
                Problem problem;
                problem.size = topology.size();
                problem.bytes = bytes;
                if (!refuse(choice, problem, topology).empty()) continue;
                const std::uint64_t bound = most_steps(choice, problem, topology);
                for (problem.rank = 0; problem.rank < problem.size; ++problem.rank)
                    EXPECT_LE(build(choice, problem, topology).steps().size(), bound)
                        << to_text(choice) << " on " << hosts << ", " << bytes << " bytes, rank "
                        << problem.rank;
            }
        }
}

// Flat ones with their parameters moved, and what combines two levels.
std::vector<Choice> choices_of(Collective collective) {
    std::vector<Choice> all = flat_choices(collective);
    std::vector<const char*> texts;
    if (collective == Collective::allgather)
        texts = {"node_leader",
                 "node_leader(intra=linear,inter=ring:chunk_bytes=100)",
                 "node_leader(intra=chain:chunk_bytes=50,inter=ring:chunk_bytes=100)",
                 "node_leader(intra=binomial,inter=spread)",
                 "node_leader(intra=chain:chunk_bytes=0,inter=ring:chunk_bytes=100)",
                 "node_leader(intra=scatter_ring,inter=bruck:ports=2)",
                 "node_leader(intra=linear,inter=kport_ring:chunk_bytes=100)",
                 "hierarchical",
                 "hierarchical(intra=chain:chunk_bytes=50,inter=ring:chunk_bytes=100)"};
    else
        texts = {"node_leader",
                 "node_leader(intra=linear,inter=ring:chunk_bytes=100):leaders=1",
                 "node_leader(intra=chain:chunk_bytes=50,inter=ring:chunk_bytes=100):chunk_bytes=64",
                 "node_leader(intra=chain:chunk_bytes=0,inter=ring:chunk_bytes=100)",
                 "node_leader(intra=binomial,inter=recursive_doubling):leaders=2",
                 "node_leader(intra=scatter_ring,inter=rabenseifner)"};
    for (const char* text : texts) all.push_back(choice_of(text, collective));
    return all;
}

TEST(MostSteps, BoundsAllgathersAndAllreduces) {
    for (const Collective collective : {Collective::allgather, Collective::allreduce})
        for (const Choice& choice : choices_of(collective))
            for (const char* hosts : {"node:1 core:1", "node:1 core:7", "node:6 core:1", "node:4 core:2",
                                      "node:2 core:5", "ranks:0,1,0,2,1,2,2"}) {
                const Topology topology = topology_of(hosts);
                oracle::Random random(7);
                for (const std::uint64_t bytes : {0u, 8u, 600u, 601u}) {
                    Problem problem;
                    problem.size = topology.size();
                    problem.bytes = bytes;
                    std::vector<Block> blocks;
                    if (bytes % 8 != 0 && collective == Collective::allreduce) continue;
                    if (bytes % 8 != 0) {  // blocks that differ, here and there
                        blocks = random_blocks(random, problem.size, bytes, true);
                        problem.blocks = blocks;
                        problem.bytes = mean_bytes(blocks);
                    }
                    problem.element_bytes = collective == Collective::allreduce ? 8 : 1;
                    if (!refuse(choice, problem, topology).empty()) continue;
                    const std::uint64_t bound = most_steps(choice, problem, topology);
                    for (problem.rank = 0; problem.rank < problem.size; ++problem.rank)
                        EXPECT_LE(build(choice, problem, topology).steps().size(), bound)
                            << to_text(choice) << " on " << hosts << ", " << bytes << " bytes, rank "
                            << problem.rank;
                }
            }
}

TEST(MostSteps, IsNotFarAboveTheBusiestRank) {
    const auto ratio = [](const std::string& text, const std::string& hosts, std::uint64_t bytes, int rank,
                          Collective collective = Collective::bcast) {
        const Topology topology = topology_of(hosts);
        Problem problem;
        problem.size = topology.size();
        problem.bytes = bytes;
        problem.rank = rank;
        const Choice choice = choice_of(text, collective);
        return static_cast<double>(most_steps(choice, problem, topology)) /
               static_cast<double>(build(choice, problem, topology).steps().size());
    };
    EXPECT_LT(ratio("chain:chunk_bytes=8K", "node:8 core:1", 8u << 20, 1), 3);
    EXPECT_LT(ratio("circulant:chunk_bytes=8K", "node:8 core:1", 8u << 20, 1), 3);
    EXPECT_LT(ratio("node_leader(intra=linear,inter=chain:chunk_bytes=16K)", "node:4 core:48", 32u << 20, 48),
              2);
    EXPECT_LT(ratio("ring:chunk_bytes=32K", "node:16 core:1", 4u << 20, 1, Collective::allgather), 2);
    EXPECT_LT(ratio("node_leader(intra=linear,inter=ring:chunk_bytes=64K)", "node:4 core:8", 1u << 20, 0,
                    Collective::allgather),
              2);
    EXPECT_LT(ratio("ring:chunk_bytes=32K", "node:16 core:1", 32u << 20, 1, Collective::allreduce), 2);
    EXPECT_LT(ratio("node_leader", "node:4 core:8", 32u << 20, 0, Collective::allreduce), 4);
}

// However long a chain is, a rank receives a piece once and passes it on once: what the cost model takes
// among hosts of many ranks had been counted as too much for a plan, and was left to the MPI library.
TEST(MostSteps, AChainInsideWideHostsTakesTwoStepsOfAPiece) {
    constexpr std::uint64_t steps_of_a_plan = 65536;  // plan/reserve.h
    struct Case {
        Collective collective;
        const char* text;
        std::uint64_t bytes;
    };
    const Topology topology = topology_of("node:16 core:48");
    for (const Case& it :
         {Case{Collective::allgather, "node_leader(intra=chain:chunk_bytes=0,inter=ring:chunk_bytes=512K)",
               1u << 20},
          Case{Collective::bcast, "node_leader(intra=chain:chunk_bytes=0,inter=chain:chunk_bytes=128K)",
               32u << 20}}) {
        const Choice choice = choice_of(it.text, it.collective);
        Problem problem;
        problem.size = topology.size();
        problem.bytes = it.bytes;
        ASSERT_TRUE(refuse(choice, problem, topology).empty()) << it.text;
        const std::uint64_t bound = most_steps(choice, problem, topology);
        EXPECT_LE(bound, steps_of_a_plan) << it.text;
        for (problem.rank = 0; problem.rank < 3; ++problem.rank) {
            const std::uint64_t steps = build(choice, problem, topology).steps().size();
            EXPECT_LE(steps, bound) << it.text << ", rank " << problem.rank;
            EXPECT_LT(bound, 4 * steps) << it.text << ", rank " << problem.rank;
        }
    }
}

// Each of 128 leaders of a host sends its own share to 127 ranks, and receives 127 others. As if each sent
// all shares, sums of 16 MiB had been too much for a plan.
TEST(MostSteps, LeadersOfASumHandOutTheirOwnShareAlone) {
    const Topology topology = topology_of("node:8 core:128");
    const Choice choice = choice_of("node_leader(intra=linear,inter=ring)", Collective::allreduce);
    Problem problem;
    problem.size = topology.size();
    problem.bytes = 16 << 20;
    problem.element_bytes = 8;
    const std::uint64_t bound = most_steps(choice, problem, topology);
    for (problem.rank = 0; problem.rank < 2; ++problem.rank) {
        const std::uint64_t steps = build(choice, problem, topology).steps().size();
        EXPECT_LE(steps, bound) << problem.rank;
        EXPECT_LT(bound, 4 * steps) << problem.rank;
    }
}

// Of seventeen hosts the last one receives what all others have in one message, and hands it out in pieces.
// The largest message had been taken for that of the last host.
TEST(MostSteps, AnExchangeOfAnOddNumberOfHostsBringsManyBlocksAtOnce) {
    const Topology topology = topology_of("node:17 core:3");
    const Choice choice =
        choice_of("node_leader(intra=chain:chunk_bytes=50,inter=standard_exchange)", Collective::allgather);
    Problem problem;
    problem.size = topology.size();
    problem.bytes = 600;
    ASSERT_TRUE(refuse(choice, problem, topology).empty());
    const std::uint64_t bound = most_steps(choice, problem, topology);
    for (problem.rank = 0; problem.rank < problem.size; ++problem.rank)
        EXPECT_LE(build(choice, problem, topology).steps().size(), bound) << problem.rank;
}

}  // namespace
}  // namespace thalweg
