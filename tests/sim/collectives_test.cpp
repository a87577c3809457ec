// Production's collectives on every built-in machine: they complete, no faster than the wire allows, the same
// every time, and what the cost model says of a lone pipeline is what the replay shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "built_in.h"
#include "model/cost.h"
#include "sim/halo.h"

namespace thalweg::sim {
namespace {

Outcome run(Collective collective, const std::string& text, std::uint64_t bytes, const Topology& topology,
            const SimMachine& machine) {
    Point point = point_of(collective, text);
    point.bytes = bytes;
    point.most_seconds = 30;
    return simulate(point, topology, machine).outcome;
}

// Seconds that the bytes need whatever the algorithm, without latencies.
double wire_seconds(Collective collective, std::uint64_t bytes, const Topology& topology,
                    const SimMachine& machine) {
    Machine model = machine.model();
    model.inter.latency = model.intra.latency = 0;
    model.inter.bytes_per_second = static_cast<std::uint64_t>(machine.link_rate);
    const double bucket = 2 * machine.burst_bytes / machine.link_rate;
    return static_cast<double>(wire_limit(collective, bytes, topology, model)) * 1e-12 - bucket;
}

TEST(Collectives, EveryAlgorithmRunsOnEveryMachineNoFasterThanTheWire) {
    for (const auto& [name, json] : built_in_machines()) {
        const SimMachine machine = machine_of(std::string(name));
        const Topology topology =
            machine.hosts == 1 ? mapped(machine, "block", machine.cores_per_host, machine.cores_per_host)
                               : mapped(machine, "ragged", 10, 4);
        for (const Algorithm& algorithm : algorithms()) {
            Problem problem;
            problem.size = topology.size();
            problem.bytes = algorithm.collective == Collective::barrier ? 0 : 40000;
            Point point;
            point.choice = standard_choice(algorithm);
            point.bytes = problem.bytes;
            if (!refuse(point.choice, problem, topology).empty()) continue;
            const Outcome outcome = simulate(point, topology, machine).outcome;
            const std::string what = std::string(name) + " " + to_text(point.choice);
            ASSERT_EQ(outcome.why, "") << what;
            EXPECT_GE(outcome.seconds, wire_seconds(algorithm.collective, problem.bytes, topology, machine))
                << what;
            EXPECT_GT(outcome.seconds, 0) << what;
            // What was sent is what the row of the algorithm claims.
            const Claim claimed = claim(point.choice, problem, topology);
            EXPECT_EQ(outcome.messages, claimed.messages) << what;
            EXPECT_EQ(outcome.bytes, claimed.bytes) << what;
        }
    }
}

TEST(Collectives, EveryMappingRunsOnEveryMachine) {
    constexpr int ranks = 12, per_host = 4;
    constexpr std::uint64_t bytes = 40000;
    const std::pair<Collective, const char*> flat[] = {{Collective::bcast, "chain:chunk_bytes=16K"},
                                                       {Collective::allgather, "ring"},
                                                       {Collective::alltoallv, "spread"}};
    for (const auto& [name, json] : built_in_machines()) {
        const SimMachine machine = machine_of(std::string(name));
        std::uint64_t faces = 0;
        for (const char* mapping : {"block", "cyclic", "permuted", "ragged"}) {
            if (machine.hosts == 1 && std::string_view(mapping) != "block") continue;
            const std::string what = std::string(name) + ", " + mapping;
            const int there = machine.hosts == 1 ? machine.cores_per_host : ranks;
            const Topology topology = mapped(machine, mapping, there, std::min(per_host, there));
            for (const auto& [collective, text] : flat) {
                const Outcome outcome = run(collective, text, bytes, topology, machine);
                ASSERT_EQ(outcome.why, "") << what << ", " << text;
                EXPECT_GE(outcome.seconds, wire_seconds(collective, bytes, topology, machine)) << what;
            }
            Point halo = point_of(Collective::alltoallv, "spread");
            halo.faces = Faces::alike(grid_of(there), bytes);
            const Outcome outcome = simulate(halo, topology, machine).outcome;
            ASSERT_EQ(outcome.why, "") << what;
            EXPECT_GE(outcome.seconds, halo_limit(topology, *halo.faces, machine) -
                                           2 * machine.burst_bytes / machine.link_rate);
            EXPECT_EQ(outcome.messages, faces == 0 ? outcome.messages : faces) << what;
            faces = outcome.messages;
        }
    }
}

TEST(Collectives, TheSameQuestionHasTheSameAnswerToTheLastDigit) {
    const SimMachine machine = machine_of("xc40");
    const Topology topology = mapped(machine, "permuted", 48, 24);
    std::set<double> seconds;
    for (int i = 0; i < 3; ++i)
        seconds.insert(run(Collective::bcast, "scatter_ring", 300001, topology, machine).seconds);
    EXPECT_EQ(seconds.size(), 1u);
}

TEST(Collectives, ALonePipelineTakesWhatTheModelSays) {
    SimMachine machine = machine_of("slingshot");
    machine.message_gap = 0;
    const Topology topology = mapped(machine, "block", 8, 1);
    const Outcome outcome = run(Collective::bcast, "chain:chunk_bytes=256K", 64 << 20, topology, machine);
    Choice choice;
    std::string why;
    ASSERT_EQ(parse_choice(Collective::bcast, "chain:chunk_bytes=256K", choice, why), Status::ok);
    Problem problem;
    problem.size = 8;
    problem.bytes = 64 << 20;
    const double predicted = static_cast<double>(predict(choice, problem, topology, machine.model())) * 1e-12;
    // The model pays a latency per piece; the replay's pieces follow one another.
    EXPECT_LT(outcome.seconds, predicted);
    EXPECT_GT(outcome.seconds, 0.75 * predicted);
}

TEST(Collectives, MoreRailsAndMorePortsHelpWhereTheWireIsTheLimit) {
    SimMachine machine = machine_of("ib2304");
    const Topology topology = mapped(machine, "block", 8, 1);
    const auto seconds = [&](const char* text) {
        return run(Collective::allgather, text, 1 << 20, topology, machine).seconds;
    };
    const double single = seconds("ring"), two_ports = seconds("kport_ring:ports=2");
    EXPECT_NEAR(two_ports / single, 1, 0.1);  // one link: ports share it
    machine.rails = 2;
    EXPECT_NEAR(seconds("kport_ring:ports=2") / single, 0.55, 0.1);
}

// From first principles, because no such host was measured: neighbours of one host copy through its memory,
// neighbours of two hosts all use the one link.
TEST(Collectives, RanksOfAFullHostShareItsMemoryAndItsLink) {
    constexpr std::uint64_t block = 256 << 10;
    for (const char* name : {"dane", "ib2304", "slingshot", "xc40"}) {
        const SimMachine machine = machine_of(name);
        const int ranks = machine.cores_per_host;
        const double copied = static_cast<double>(block) * (ranks - 1);
        const double one_copies = std::min(machine.copy_rate, machine.host_copy_rate / ranks);
        const double inside =
            run(Collective::allgather, "ring", block, mapped(machine, "block", ranks, ranks), machine)
                .seconds;
        EXPECT_GE(inside, copied / one_copies) << name;
        EXPECT_LE(inside, 1.1 * copied / one_copies) << name;

        constexpr int per_host = 24;
        const double sent = static_cast<double>(block) * per_host * (2 * per_host - 1);
        const double across = run(Collective::allgather, "ring", block,
                                  mapped(machine, "cyclic", 2 * per_host, per_host), machine)
                                  .seconds;
        EXPECT_GE(across, sent / machine.link_rate) << name;
        EXPECT_LE(across, 1.1 * sent / machine.link_rate) << name;
    }
}

TEST(Collectives, APointThatIsTooDearIsGivenUp) {
    const SimMachine machine = machine_of("ib2304");
    const Topology topology = mapped(machine, "block", 2304, 48);
    Point point = point_of(Collective::allgather, "ring");
    point.bytes = 8;
    point.most_memory = std::uint64_t{256} << 20;
    const PointResult result = simulate(point, topology, machine);
    EXPECT_TRUE(result.given_up);
    EXPECT_EQ(result.outcome.why, "takes more than 256 MiB");
    point.most_memory = std::uint64_t{8} << 30;
    point.most_seconds = 1;
    EXPECT_EQ(simulate(point, topology, machine).outcome.why, "takes more than 1 s of a processor");
}

}  // namespace
}  // namespace thalweg::sim
