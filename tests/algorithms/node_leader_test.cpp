// node_leader over hosts of all shapes: ragged, permuted, one rank, one host.
#include "algorithms/cases.h"

namespace thalweg {
namespace {

Choice combined(const std::string& inside, const std::string& between) {
    return choice_of("node_leader(intra=" + inside + ",inter=" + between + ")");
}

const std::vector<std::string> parts = {"linear",
                                        "binomial",
                                        "binomial:chunk_bytes=7",
                                        "knomial:radix=3",
                                        "kary:fanout=2:chunk_bytes=16",
                                        "split_binary:chunk_bytes=8",
                                        "chain:chunk_bytes=16",
                                        "chain:chunk_bytes=5:chains=2",
                                        "circulant:chunk_bytes=16",
                                        "circulant:chunk_bytes=3",
                                        "scatter_ring",
                                        "scatter_ring_trimmed",
                                        "scatter_recursive_doubling"};

class NodeLeader : public testing::TestWithParam<std::string> {};

TEST_P(NodeLeader, WithEveryIntraOnRandomTopologies) {
    oracle::Random random(std::hash<std::string>{}(GetParam()));
    for (const std::string& inside : parts)
        for (int i = 0; i < 40; ++i) {
            const int size = 1 + static_cast<int>(random.below(i < 30 ? 12 : 40));
            const Topology topology = random_topology(random, size);
            const int root = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
            const std::uint64_t bytes = i % 7 == 0 ? random.below(3) : random.below(120);
            SCOPED_TRACE(topology.to_text());
            check(combined(inside, GetParam()), {0, size, root, bytes}, topology, 1);
            if (HasFatalFailure()) return;
        }
}

TEST_P(NodeLeader, EveryRootOfRegularAndRaggedHosts) {
    for (const char* hosts : {"node:1 core:5", "node:5 core:1", "node:4 core:2", "node:3 core:3 map:cyclic",
                              "node:3 core:1,2,4", "ranks:0,1,0,2,1,2,2,0"}) {
        const Topology topology = topology_of(hosts);
        for (int root = 0; root < topology.size(); ++root)
            for (std::uint64_t bytes : {0, 1, 5, 64, 97}) {
                SCOPED_TRACE(hosts);
                check(combined("binomial", GetParam()), {0, topology.size(), root, bytes}, topology, 1);
                if (HasFatalFailure()) return;
            }
    }
}

INSTANTIATE_TEST_SUITE_P(Inter, NodeLeader, testing::ValuesIn(parts), [](const auto& info) {
    std::string name = info.param;
    for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return name;
});

TEST(NodeLeaderShape, EveryByteCrossesALinkOnceAndPiecesFlow) {
    const Topology topology = topology_of("node:4 core:3 map:cyclic");
    const Problem problem{0, 12, 5, 160};
    const Choice choice = combined("linear", "chain:chunk_bytes=16");
    const std::vector<Schedule> schedules = build_all(choice, problem, topology);
    std::vector<std::uint64_t> leaving(4), entering(4);
    for (const Schedule& schedule : schedules)
        for (const Step& step : schedule.steps()) {
            const int mine = topology.node_of(schedule.rank()), theirs = topology.node_of(step.peer);
            if (mine == theirs) continue;
            (step.kind == StepKind::send ? leaving : entering)[static_cast<std::size_t>(mine)] +=
                step.source.bytes + step.target.bytes;
        }
    const auto root_node = static_cast<std::size_t>(topology.node_of(5));
    for (std::size_t node = 0; node < 4; ++node) {
        EXPECT_EQ(entering[node], node == root_node ? 0u : 160u);
        EXPECT_LE(leaving[node], 160u);
    }
    // A middle leader: receive a chunk, send it on, then to its own ranks, before the next chunk.
    const int middle = topology.ranks_on((topology.node_of(5) + 1) % 4).front();
    const auto steps = schedules[static_cast<std::size_t>(middle)].steps();
    ASSERT_EQ(steps.size(), 10u * 4u);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const bool remote = topology.node_of(steps[i].peer) != topology.node_of(middle);
        EXPECT_EQ(steps[i].kind, i % 4 == 0 ? StepKind::recv : StepKind::send) << i;
        EXPECT_EQ(remote, i % 4 < 2) << i;
        EXPECT_EQ((i % 4 == 0 ? steps[i].target : steps[i].source).offset, i / 4 * 16) << i;
    }
    // The longest chain is three links and one message inside the last host, whatever the number of chunks.
    EXPECT_EQ(validate(schedules, oracle::contracts_for(Collective::bcast, problem)).rounds, 4u);
    EXPECT_EQ(claim(choice, problem, topology).rounds, 4u);
}

TEST(NodeLeaderShape, RoundsAreExactWhereHostsAreAlike) {
    const Topology topology = topology_of("node:6 core:4");
    for (const char* between : {"linear", "binomial", "chain:chunk_bytes=16", "circulant:chunk_bytes=16"})
        for (const char* inside : {"linear", "binomial", "chain:chunk_bytes=0"}) {
            const Choice choice = combined(inside, between);
            const Problem problem{0, 24, 9, 96};
            const Verdict verdict = validate(build_all(choice, problem, topology),
                                             oracle::contracts_for(Collective::bcast, problem));
            EXPECT_EQ(verdict.rounds, claim(choice, problem, topology).rounds) << to_text(choice);
        }
}

TEST(NodeLeaderShape, RefusesItselfAsAPartAndAForeignTopology) {
    const Topology topology = topology_of("node:2 core:2");
    EXPECT_NE(refuse(choice_of("node_leader(inter=node_leader)"), {0, 4, 0, 8}, topology), "");
    EXPECT_NE(refuse(choice_of("node_leader"), {0, 5, 0, 8}, topology), "");
    EXPECT_EQ(refuse(choice_of("node_leader"), {0, 4, 0, 8}, topology), "");
}

// The numbers of a pair's messages are shared by pieces and what a piece takes inside a host: one where it is
// not cut again, so that hosts of many ranks get the chunk that is asked for.
TEST(NodeLeaderPieces, FollowTheChunkOnHostsOfManyRanks) {
    const Topology topology = topology_of("node:2 core:112");
    const auto pieces = [&](const std::string& inside) {
        std::uint64_t received = 0;  // by the leader of the second host
        const Schedule schedule =
            build(combined(inside, "chain:chunk_bytes=8K"), {112, 224, 0, 4 << 20}, topology);
        for (const Step& step : schedule.steps())
            received += step.kind == StepKind::recv && topology.node_of(step.peer) == 0;
        return received;
    };
    EXPECT_EQ(pieces("linear"), 512u);
    EXPECT_EQ(pieces("chain:chunk_bytes=0"), 512u);
    EXPECT_EQ(pieces("binomial"), 512u);
    // A ring inside sends a pair as many blocks per piece as there are ranks.
    EXPECT_LE(pieces("scatter_ring"), max_messages_per_pair / 112);
}

}  // namespace
}  // namespace thalweg
