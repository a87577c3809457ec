// alltoallv/node_leader: equal pairs, sparse ones whose bytes the leaders know, and neighbourhoods, of which
// they know the edges; on hosts of all shapes.
#include "algorithms/exchanges.h"

namespace thalweg {
namespace {

std::uint64_t between_hosts(const Choice& choice, const std::vector<Problem>& problems,
                            const Topology& topology) {
    std::uint64_t messages = 0;
    for (const Problem& problem : problems) {
        const Schedule schedule = build(choice, problem, topology);
        for (const Step& step : schedule.steps())
            messages +=
                step.kind == StepKind::send && topology.node_of(problem.rank) != topology.node_of(step.peer);
    }
    return messages;
}

TEST(AlltoallvByHosts, EqualPairs) {
    const Choice choice = choice_of("node_leader", Collective::alltoallv);
    for (const char* text : {"node:2 core:1", "node:2 core:2", "node:4 core:2", "node:3 core:3",
                             "node:3 core:1,2,4", "ranks:0,1,0,2,1", "node:5 core:3 map:cyclic"}) {
        const Topology topology = topology_of(text);
        for (std::uint64_t bytes : {0, 1, 24}) {
            Problem problem;
            problem.size = topology.size();
            problem.bytes = bytes;
            check(choice, problem, topology, 3);
            if (HasFatalFailure()) return;
        }
    }
}

TEST(AlltoallvByHosts, RandomSparsePairsOfUpTo40RanksOnRaggedHosts) {
    const Choice choice = choice_of("node_leader", Collective::alltoallv);
    oracle::Random random(5);
    for (int p = 2; p <= 40; ++p)
        for (std::uint64_t sparse : {1, 3, 12}) {
            const Topology topology = random_topology(random, p);
            if (topology.nodes() < 2) continue;
            Group group(p, 8);
            randomise(group, random, sparse, p % 3 == 0 ? 3 : 1, 17);
            group.inform(topology);
            check_group(choice, group, topology, 1 + p % 2);
            if (HasFatalFailure()) return;
        }
}

TEST(AlltoallvByHosts, OneMessageForEveryPairOfHosts) {
    const Topology topology = topology_of("node:4 core:3");
    Problem problem;
    problem.size = 12;
    problem.bytes = 256;
    std::vector<Problem> problems(12, problem);
    for (int rank = 0; rank < 12; ++rank) problems[static_cast<std::size_t>(rank)].rank = rank;
    EXPECT_EQ(between_hosts(choice_of("node_leader", Collective::alltoallv), problems, topology), 4u * 3u);
    EXPECT_EQ(between_hosts(choice_of("spread", Collective::alltoallv), problems, topology), 12u * 9u);
}

TEST(AlltoallvByHosts, NeedsLeadersThatKnow) {
    const Topology topology = topology_of("node:2 core:2");
    Group group(4, 8);
    const Choice choice = choice_of("node_leader", Collective::alltoallv);
    EXPECT_NE(refuse(choice, group.problems[0], topology), "");
    group.inform(topology);
    EXPECT_EQ(refuse(choice, group.problems[0], topology), "");
    EXPECT_NE(refuse(choice, group.problems[0], Topology::single_node(4)), "");
}

// Neighbourhoods whose sizes no leader knows: several edges of a pair, edges to oneself, edges of no bytes,
// messages that no slot has room for.
TEST(AlltoallvByHosts, EdgesInSlotsOfUpTo40RanksOnRaggedHosts) {
    const Choice choice = choice_of("node_leader", Collective::alltoallv);
    oracle::Random random(8);
    for (int p = 2; p <= 40; ++p)
        for (std::uint64_t slot : {1, 12, 17}) {
            const Topology topology = random_topology(random, p);
            if (topology.nodes() < 2) continue;
            Group group(p, 8);
            randomise(group, random, 1 + random.below(9), p % 3 == 0 ? 3 : 1, 17);
            group.inform(topology, slot);
            place_empty(group);
            check_group(choice, group, topology, 1 + p % 2);
            if (HasFatalFailure()) return;
        }
}

// A ring of 4 hosts of 3 ranks: each rank has two edges to its like on the next host and one to itself.
struct RingOfHosts : Group {
    explicit RingOfHosts(std::uint64_t bytes) : Group(12, bytes) {
        for (int rank = 0; rank < 12; ++rank) {
            const int next = (rank + 3) % 12, previous = (rank + 9) % 12;
            of(rank).outgoing = {{next, 0, bytes}, {rank, 0, bytes}, {next, bytes, bytes}};
            of(rank).incoming = {{previous, 0, bytes}, {previous, bytes, bytes}, {rank, 2 * bytes, bytes}};
        }
    }
};

TEST(AlltoallvByHosts, OneMessageForEveryPairOfHostsThatAreNeighbours) {
    const Topology topology = topology_of("node:4 core:3");
    const Choice leaders = choice_of("node_leader", Collective::alltoallv);
    const Choice straight = choice_of("spread", Collective::alltoallv);
    for (std::uint64_t slot : {0, 256, 300}) {
        RingOfHosts group(256);
        EXPECT_EQ(between_hosts(straight, group.problems, topology), 12u * 2u);
        group.inform(topology, slot);
        EXPECT_EQ(between_hosts(leaders, group.problems, topology), 4u) << slot;
        check_group(leaders, group, topology, 2);
    }
    // What no slot has room for goes straight, beside what then has nothing to say.
    RingOfHosts large(256);
    large.inform(topology, 255);
    EXPECT_EQ(between_hosts(leaders, large.problems, topology), 12u * 2u + 4u);
    check_group(leaders, large, topology, 2);
    // Edges of no bytes: nothing where leaders know, empty slots where they do not.
    RingOfHosts empty(0);
    empty.inform(topology);
    EXPECT_EQ(between_hosts(leaders, empty.problems, topology), 0u);
    check_group(leaders, empty, topology, 2);
    empty.inform(topology, 8);
    EXPECT_EQ(between_hosts(leaders, empty.problems, topology), 4u);
}

// The steps of a rank follow its edges, those of a leader the edges of its host; not the number of ranks.
TEST(AlltoallvByHosts, StepsFollowTheRealNeighbours) {
    const auto steps = [](int hosts) {
        const Topology topology = topology_of("node:" + std::to_string(hosts) + " core:3");
        const int p = 3 * hosts;
        Exchange exchange;
        exchange.hosts_informed = true;
        for (int rank = 0; rank < 3; ++rank) {
            exchange.crossing.push_back({rank, rank + 3, 8});
            exchange.crossing.push_back({rank + p - 3, rank, 8});
        }
        exchange.outgoing = {{3, 0, 8}};
        exchange.incoming = {{p - 3, 0, 8}};
        Problem problem;
        problem.size = p;
        problem.exchange = &exchange;
        return build(choice_of("node_leader", Collective::alltoallv), problem, topology).steps().size();
    };
    EXPECT_EQ(steps(4), steps(4000));
}

}  // namespace
}  // namespace thalweg
