// Prices where ranks, ports and pieces do not divide: against the schedules, played.
#include "algorithms/cases.h"
#include "model/cost.h"

namespace thalweg {
namespace {

// It takes as long as the others. A block in equal pieces leaves no port idle but for the last few of these.
TEST(Prices, ALastRoundMayHaveFewerMessagesThanPorts) {
    Machine machine;
    machine.intra = {0, 0};
    const auto check = [&](const std::string& text, Collective collective, std::uint64_t rails,
                           int fewest = 2) {
        const Choice choice = choice_of(text, collective);
        for (int p = fewest; p <= 20; ++p)
            for (const Picoseconds latency : {0, 1000}) {
                machine.inter = {latency, 1'000'000'000'000, rails};  // 1 ps per byte
                Problem problem{0, p, 0, 100};
                problem.in_place = collective == Collective::allgather;
                const Topology topology = hosts_of_one(p);
                EXPECT_EQ(play(build_all(choice, problem, topology), topology, machine),
                          predict(choice, problem, topology, machine))
                    << text_of(choice, problem) << " over " << rails << " at " << latency;
            }
    };
    for (const std::uint64_t rails : {1, 2, 3, 5}) {
        for (const char* ports : {"1", "2", "3", "4", "5", "8"}) {
            check(std::string("spread:ports=") + ports, Collective::allgather, rails);
            check(std::string("spread:in_flight=") + ports, Collective::alltoallv, rails);
        }
        const std::string as_many = "kport_ring:ports=" + std::to_string(rails);
        check(as_many, Collective::allgather, rails);
        check(as_many + ":chunk_bytes=25", Collective::allgather, rails, static_cast<int>(rails) + 1);
        // Twice as many ports as there are: a round takes two turns, the last one perhaps one.
        check("kport_ring:ports=" + std::to_string(2 * rails), Collective::allgather, rails);
    }
}

// On one port each piece and each signal takes its latency, and several carry several of them.
TEST(Prices, PiecesAndSignalsOfAlltoallsTakeTurnsAtPorts) {
    Machine machine;
    machine.intra = {0, 0};
    const auto check = [&](const std::string& text, std::uint64_t rails) {
        machine.inter.ports = rails;
        const Choice choice = choice_of(text, Collective::alltoallv);
        for (int p = 2; p <= 20; ++p) {
            const Problem problem{0, p, 0, 100};
            const Topology topology = hosts_of_one(p);
            EXPECT_EQ(play(build_all(choice, problem, topology), topology, machine),
                      predict(choice, problem, topology, machine))
                << text_of(choice, problem) << " over " << rails;
        }
    };
    for (const std::uint64_t rails : {1, 2, 3, 5}) {
        machine.inter = {1000, 0};
        check("notify", rails);
        for (const char* ahead : {"1", "2", "3", "8"}) {
            machine.inter = {1000, 1'000'000'000'000};  // 1 ps per byte
            check(std::string("pairwise:chunk_bytes=25:ahead=") + ahead, rails);
        }
    }
}

// Places that have no partner get blocks from those that have in as many rounds as it takes to double these
// until all have them: one for 7 places, of which three of the first four have a partner.
TEST(Prices, ScattersAmongAnyNumberOfRanksPassOnNoFurtherThanNeeded) {
    const Choice choice = choice_of("scatter_recursive_doubling");
    const auto rounds = [&](int p) {
        return choice.algorithm->price({0, p, 0, 1000 * static_cast<std::uint64_t>(p)}, Topology{}, choice)
            .rounds;
    };
    EXPECT_EQ(rounds(7), 8u);
    EXPECT_EQ(rounds(12), 9u);
    EXPECT_EQ(rounds(13), 11u);
    Machine machine;
    for (const auto& [latency, rate] :
         {std::pair<Picoseconds, std::uint64_t>{1000, 0}, {0, 1'000'000'000'000}}) {
        machine.inter = {latency, rate};  // 1 ns a message, or 1 ps per byte
        for (int p = 2; p <= 40; ++p) {
            const Problem problem{0, p, 0, 1000 * static_cast<std::uint64_t>(p)};
            const Topology topology = hosts_of_one(p);
            const auto played =
                static_cast<double>(play(build_all(choice, problem, topology), topology, machine));
            const auto predicted = static_cast<double>(predict(choice, problem, topology, machine));
            EXPECT_LE(played, 1.3 * predicted) << text_of(choice, problem) << " at " << latency;
            EXPECT_GE(played, 0.83 * predicted) << text_of(choice, problem) << " at " << latency;
        }
    }
}

// Pieces and the swap as they are sent, also where the last piece is short: two ranks take the message's
// time.
TEST(Prices, BytesOfSplitTreesAmongAnyNumberOfRanks) {
    Machine machine;
    machine.inter = {0, 1'000'000'000'000};  // 1 ps per byte
    for (const char* chunk : {"0", "1000", "3000", "7000"}) {
        const Choice choice = choice_of(std::string("split_binary:chunk_bytes=") + chunk);
        EXPECT_EQ(predict(choice, {0, 2, 0, 20'000}, hosts_of_one(2), machine), 20'000u) << chunk;
        for (int p = 2; p <= 40; ++p) {
            const Problem problem{0, p, 0, 20'000};
            const Topology topology = hosts_of_one(p);
            const auto played =
                static_cast<double>(play(build_all(choice, problem, topology), topology, machine));
            const auto predicted = static_cast<double>(predict(choice, problem, topology, machine));
            EXPECT_LE(played, 1.15 * predicted) << text_of(choice, problem);
            EXPECT_GE(played, 0.7 * predicted) << text_of(choice, problem);
        }
    }
}

TEST(Prices, TheLargestMessageOfAScatterIsThatOfItsSchedules) {
    const Choice choice = choice_of("scatter_recursive_doubling");
    for (int p = 2; p <= 20; ++p)
        for (const std::uint64_t bytes : {1, 7, 1000}) {
            const Problem problem{0, p, 0, bytes};
            std::uint64_t largest = 0, numbers = 0;
            for (const Schedule& schedule : build_all(choice, problem, Topology{}))
                for (const Step& step : schedule.steps()) {
                    largest = std::max(largest, step.source.bytes);
                    numbers = std::max<std::uint64_t>(numbers, step.message + 1);
                }
            EXPECT_EQ(choice.algorithm->price(problem, Topology{}, choice).piece_bytes, largest)
                << text_of(choice, problem);
            Problem fewer = problem;
            fewer.messages_per_pair = numbers - 1;
            EXPECT_NE(refuse(choice, fewer, Topology{}), "") << text_of(choice, problem);
        }
}

// Pieces of both halves come in turn: twice as many as the busiest rank sends on.
TEST(Prices, PiecesOfSplitTreesAreHandedOutAsTheyCome) {
    const Choice choice = choice_of("node_leader(intra=linear,inter=split_binary:chunk_bytes=32K)");
    for (const Machine& machine : {Machine{}, Machine::from_options(50, 12.5e6)})
        for (const char* hosts : {"node:2 core:2", "node:3 core:3", "node:4 core:4", "node:5 core:3",
                                  "node:8 core:2", "node:8 core:4", "node:13 core:4", "node:4 core:16"})
            for (const std::uint64_t bytes : {64u << 10, 256u << 10, 1u << 20}) {
                const Topology topology = topology_of(hosts);
                const Problem problem{0, topology.size(), 0, bytes};
                const auto played =
                    static_cast<double>(play(build_all(choice, problem, topology), topology, machine));
                const auto predicted = static_cast<double>(predict(choice, problem, topology, machine));
                EXPECT_LE(played, 1.3 * predicted) << text_of(choice, problem) << " " << hosts;
                EXPECT_GE(played, 0.6 * predicted) << text_of(choice, problem) << " " << hosts;
            }
}

}  // namespace
}  // namespace thalweg
