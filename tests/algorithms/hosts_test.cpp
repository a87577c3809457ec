// The allgathers and the allreduce that know hosts, over hosts of all shapes: ragged, permuted, one rank, one
// host.
#include "algorithms/cases.h"

namespace thalweg {
namespace {

const std::vector<std::string> inside = {"linear", "binomial", "chain:chunk_bytes=5", "scatter_ring",
                                         "circulant:chunk_bytes=9"};
const std::vector<std::string> gathers = {
    "ring",  "kport_ring:ports=2", "spread", "neighbour_exchange", "standard_exchange",
    "bruck", "bruck:ports=2"};
const std::vector<std::string> reductions = {"recursive_doubling", "rabenseifner", "ring:chunk_bytes=0",
                                             "ring:chunk_bytes=16"};

void try_with(const Choice& choice, const Problem& problem, const Topology& topology, int seeds) {
    SCOPED_TRACE(topology.to_text());
    if (refuse(choice, problem, topology).empty()) check(choice, problem, topology, seeds);
}

TEST(AllgatherByHosts, RandomHostsAndBlocks) {
    oracle::Random random(3);
    for (const char* form : {"node_leader", "hierarchical"})
        for (const std::string& inter : gathers)
            for (const std::string& intra : inside)
                for (int i = 0; i < 30; ++i) {
                    const int size = 1 + static_cast<int>(random.below(i < 25 ? 12 : 40));
                    const Topology topology = random_topology(random, size);
                    const Choice choice =
                        choice_of(std::string(form) + "(intra=" + intra + ",inter=" + inter + ")",
                                  Collective::allgather);
                    Problem problem{0, size, 0, random.below(9)};
                    problem.in_place = random.below(2) != 0;
                    const auto blocks = random_blocks(random, size, 6, i % 3 == 2);
                    if (i % 3 != 0) problem.blocks = blocks, problem.bytes = mean_bytes(blocks);
                    try_with(choice, problem, topology, 1);
                    if (testing::Test::HasFatalFailure()) return;
                }
}

TEST(AllreduceByHosts, RandomHostsAndLengths) {
    oracle::Random random(5);
    int in_order = 0;
    for (const std::string& inter : reductions)
        for (const std::string& intra : inside)
            for (int i = 0; i < 60; ++i) {
                const int size = 1 + static_cast<int>(random.below(i < 50 ? 12 : 40));
                const Topology topology = random_topology(random, size);
                const Choice choice = choice_of("node_leader(intra=" + intra + ",inter=" + inter +
                                                    "):leaders=" + std::to_string(random.below(4)) +
                                                    ":chunk_bytes=" + std::to_string(random.below(3) * 13),
                                                Collective::allreduce);
                const std::uint64_t elements[] = {1, 4, 8};
                Problem problem{0, size};
                problem.element_bytes = elements[random.below(3)];
                problem.bytes = problem.element_bytes * random.below(i % 5 == 0 ? 3 : 40);
                problem.in_place = random.below(2) != 0;
                try_with(choice, problem, topology, 1);
                problem.commutative = problem.element_bytes != 8;
                if (!problem.commutative && refuse(choice, problem, topology).empty()) {
                    ++in_order;
                    try_with(choice, problem, topology, 2);
                }
                if (testing::Test::HasFatalFailure()) return;
            }
    EXPECT_GT(in_order, 20) << "hosts of consecutive ranks keep the order of ranks";
}

TEST(ByHosts, RegularAndRaggedHosts) {
    for (const char* hosts : {"node:1 core:5", "node:5 core:1", "node:4 core:2", "node:3 core:3 map:cyclic",
                              "node:3 core:1,2,4", "ranks:0,1,0,2,1,2,2,0", "node:16 core:8"})
        for (std::uint64_t bytes : {0, 1, 64}) {
            const Topology topology = topology_of(hosts);
            for (const char* text : {"node_leader", "hierarchical"})
                try_with(choice_of(text, Collective::allgather), {0, topology.size(), 0, bytes}, topology, 1);
            for (const char* text : {"node_leader", "node_leader:leaders=1"})
                try_with(choice_of(text, Collective::allreduce), {0, topology.size(), 0, bytes}, topology, 1);
            if (testing::Test::HasFatalFailure()) return;
        }
}

// Bytes that enter each host.
std::vector<std::uint64_t> entering(const std::vector<Schedule>& schedules, const Topology& topology) {
    std::vector<std::uint64_t> bytes(static_cast<std::size_t>(topology.nodes()));
    for (const Schedule& schedule : schedules)
        for (const Step& step : schedule.steps()) {
            const int mine = topology.node_of(schedule.rank());
            if (step.kind == StepKind::recv && topology.node_of(step.peer) != mine)
                bytes[static_cast<std::size_t>(mine)] += step.target.bytes;
        }
    return bytes;
}

// The least that must cross a link: the other hosts' blocks, and 2 n (h-1)/h of a reduction.
TEST(ByHosts, LinksCarryTheLeast) {
    for (const char* hosts : {"node:4 core:3", "node:4 core:3 map:cyclic", "node:8 core:2"}) {
        const Topology topology = topology_of(hosts);
        const auto h = static_cast<std::uint64_t>(topology.nodes()),
                   p = static_cast<std::uint64_t>(topology.size());
        const Problem blocks{0, topology.size(), 0, 10}, vector{0, topology.size(), 0, 24 * h};
        for (std::uint64_t bytes :
             entering(build_all(choice_of("node_leader", Collective::allgather), blocks, topology), topology))
            EXPECT_EQ(bytes, (p - p / h) * 10) << hosts;
        for (const char* text : {"node_leader(inter=ring)", "node_leader(inter=ring):leaders=1",
                                 "node_leader(inter=rabenseifner)"})
            for (std::uint64_t bytes :
                 entering(build_all(choice_of(text, Collective::allreduce), vector, topology), topology))
                EXPECT_EQ(bytes, 2 * 24 * (h - 1)) << hosts << " " << text;
    }
}

// Of a kibibyte per rank, where a pair may exchange 64 messages: all are numbered below that, and right; or
// it does not serve.
void check_numbers(Collective collective, const char* text, const char* hosts, bool serves) {
    SCOPED_TRACE(std::string(text) + " on " + hosts);
    const Topology topology = topology_of(hosts);
    const Choice choice = choice_of(text, collective);
    Problem problem{0, topology.size(), 0, 1024};
    problem.messages_per_pair = 64;
    ASSERT_EQ(refuse(choice, problem, topology).empty(), serves) << refuse(choice, problem, topology);
    if (!serves) return;
    const std::vector<Schedule> schedules = build_all(choice, problem, topology);
    for (const Schedule& schedule : schedules)
        for (const Step& step : schedule.steps()) ASSERT_LT(step.message, problem.messages_per_pair);
    const Verdict verdict = validate(schedules, oracle::contracts_for(collective, problem));
    EXPECT_EQ(verdict.status, Status::ok) << verdict.why;
    EXPECT_EQ(verdict.messages, claim(choice, problem, topology).messages);
}

// The pieces that are handed out on a host share the numbers of a pair with what its ranks exchange beside
// them: many hosts, several ports, and pieces that are cut again.
TEST(ByHosts, LongMessagesStayWithinTheMessagesOfAPair) {
    const struct {
        const char* text;
        const char* hosts;
        bool serves = true;
    } cases[] = {
        {"node_leader(intra=linear,inter=ring:chunk_bytes=1)", "node:2 core:2"},
        {"node_leader(intra=linear,inter=ring:chunk_bytes=1)", "node:3 core:2"},
        {"node_leader(intra=binomial,inter=ring:chunk_bytes=1)", "node:9 core:2"},
        {"node_leader(intra=linear,inter=kport_ring:ports=2:chunk_bytes=1)", "node:3 core:2"},
        {"node_leader(intra=linear,inter=kport_ring:ports=1024:chunk_bytes=1)", "node:4 core:1,2,3,2"},
        {"node_leader(intra=chain:chunk_bytes=1,inter=ring:chunk_bytes=16)", "node:3 core:3"},
        {"node_leader(intra=scatter_ring,inter=ring:chunk_bytes=16)", "node:3 core:4"},
        {"node_leader(intra=scatter_recursive_doubling,inter=ring:chunk_bytes=16)", "node:3 core:4"},
        {"node_leader(intra=scatter_recursive_doubling,inter=ring:chunk_bytes=16)", "node:3 core:3,1,2"},
        {"node_leader(intra=scatter_recursive_doubling,inter=ring)", "node:20 core:2", false},
    };
    for (const auto& [text, hosts, serves] : cases) check_numbers(Collective::allgather, text, hosts, serves);
}

// A piece of a broadcast may be two messages of a pair inside a host, or more.
TEST(ByHosts, LongBroadcastsStayWithinTheMessagesOfAPair) {
    for (const char* inside : {"linear", "binomial", "chain:chunk_bytes=1", "split_binary:chunk_bytes=1",
                               "circulant:chunk_bytes=1", "scatter_ring", "scatter_recursive_doubling"})
        for (const char* between : {"chain:chunk_bytes=1", "split_binary:chunk_bytes=1"})
            for (const char* hosts :
                 {"node:2 core:2", "node:3 core:3,1,2", "node:2 core:5", "node:4 core:7"}) {
                const std::string text =
                    "node_leader(intra=" + std::string(inside) + ",inter=" + between + ")";
                check_numbers(Collective::bcast, text.c_str(), hosts, true);
            }
}

// The same of reductions, where the leaders of a host hand out their pieces side by side.
TEST(ByHosts, LongVectorsStayWithinTheMessagesOfAPair) {
    const struct {
        const char* text;
        const char* hosts;
        bool serves = true;
    } cases[] = {
        {"node_leader(intra=linear,inter=ring:chunk_bytes=1):chunk_bytes=1", "node:2 core:4"},
        {"node_leader(intra=chain:chunk_bytes=1,inter=ring:chunk_bytes=1):chunk_bytes=1", "node:2 core:4"},
        {"node_leader(intra=chain:chunk_bytes=1,inter=ring:chunk_bytes=1)", "node:3 core:3,5,4"},
        {"node_leader(intra=chain:chunk_bytes=1,inter=ring:chunk_bytes=1):leaders=1", "node:2 core:4"},
        {"node_leader(intra=chain:chunk_bytes=1,inter=rabenseifner)", "node:4 core:3"},
        {"node_leader(intra=scatter_ring,inter=ring:chunk_bytes=0)", "node:2 core:3"},
        {"node_leader(intra=scatter_ring,inter=ring:chunk_bytes=1)", "node:2 core:4", false},
        {"node_leader(intra=scatter_recursive_doubling,inter=ring:chunk_bytes=1)", "node:2 core:4", false},
    };
    for (const auto& [text, hosts, serves] : cases) check_numbers(Collective::allreduce, text, hosts, serves);
}

// Where the numbers of a pair set the size of pieces, a share of one element more has fewer of them.
TEST(ByHosts, SharesOfDifferentNumbersOfPiecesAreCombinedWhole) {
    const Choice choice =
        choice_of("node_leader(intra=linear,inter=recursive_doubling):chunk_bytes=4", Collective::allreduce);
    for (const std::uint64_t leaders : {2, 3})
        for (std::uint64_t chunk = 1; chunk <= 5; ++chunk)
            for (std::uint64_t more = 0; more <= leaders; ++more)
                for (const bool in_place : {false, true}) {
                    const Topology topology = topology_of("node:2 core:" + std::to_string(leaders));
                    Problem problem{0, topology.size(), 0, 4 * (leaders * 6 * chunk + more)};
                    problem.element_bytes = 4;
                    problem.in_place = in_place;
                    problem.messages_per_pair = 2 * 6;
                    check(choice, problem, topology, 1);
                    if (HasFatalFailure()) return;
                }
    Problem problem{0, 4, 0, 8 * (max_messages_per_pair + 1)};
    problem.element_bytes = 8;
    check(choice_of("node_leader:chunk_bytes=8", Collective::allreduce), problem,
          topology_of("node:2 core:2"), 1);
}

// Of pieces that are larger than what there is.
TEST(ByHosts, TakeScratchByTheVectorAndNotByTheChunk) {
    const Topology topology = topology_of("node:2 core:4");
    for (const char* text : {"node_leader:chunk_bytes=1G", "node_leader:leaders=1:chunk_bytes=1G"})
        for (const Schedule& schedule :
             build_all(choice_of(text, Collective::allreduce), {0, topology.size(), 0, 64}, topology))
            EXPECT_LE(schedule.scratch_bytes(), 1024u) << text;
}

TEST(ByHosts, RefuseThemselvesAsPartsAndAForeignTopology) {
    const Topology topology = topology_of("node:2 core:2");
    for (Collective collective : {Collective::allgather, Collective::allreduce}) {
        EXPECT_NE(refuse(choice_of("node_leader(inter=node_leader)", collective), {0, 4, 0, 8}, topology),
                  "");
        EXPECT_NE(refuse(choice_of("node_leader(intra=node_leader)", collective), {0, 4, 0, 8}, topology),
                  "");
        EXPECT_NE(refuse(choice_of("node_leader", collective), {0, 5, 0, 8}, topology), "");
        EXPECT_EQ(refuse(choice_of("node_leader", collective), {0, 4, 0, 8}, topology), "");
    }
    EXPECT_NE(refuse(choice_of("node_leader(inter=neighbour_exchange)", Collective::allgather), {0, 6, 0, 8},
                     topology_of("node:3 core:2")),
              "");
}

}  // namespace
}  // namespace thalweg
