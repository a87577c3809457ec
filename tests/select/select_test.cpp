// Decisions: tables first, then the model, native where native is best, the same on every rank.
#include "select/select.h"

#include <cstdio>
#include <set>

#include "model/cost.h"
#include "select/broadcast_at.h"

namespace thalweg {
namespace {

TEST(Decide, LeavesToTheNativeLibraryWhatItDoesBest) {
    EXPECT_EQ(broadcast_at("node:1 core:8", 16 << 20).reason, "one host");
    EXPECT_EQ(broadcast_at("node:1 core:1", 16 << 20).reason, "one rank");
    EXPECT_EQ(broadcast_at("node:2 core:1", 16 << 20).reason, "two ranks");
    EXPECT_EQ(broadcast_at("node:4 core:2", 65535).reason, "small message");
    EXPECT_EQ(broadcast_at("node:4 core:2", 0).reason, "no bytes");
    for (const char* hosts : {"node:1 core:8", "node:2 core:1"})
        EXPECT_FALSE(broadcast_at(hosts, 16 << 20).choice) << hosts;
    EXPECT_EQ(Selector(Collective::bcast, topology_of("node:1 core:8"), {}).native_below(),
              ~std::uint64_t{0});
    EXPECT_EQ(Selector(Collective::bcast, topology_of("node:4 core:2"), {}).native_below(), 65536u);
}

TEST(Decide, PipelinesWithinTheTargetsOnTheLabs) {
    // hosts, latency and rate as the emulated clusters have them; the ratio of predicted time to limit.
    const Selection lab{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    for (const char* hosts :
         {"node:4 core:1", "node:4 core:2", "node:5 core:1", "node:3 core:3", "node:8 core:1"}) {
        const Topology topology = topology_of(hosts);
        for (auto [bytes, target] :
             {std::pair{256u << 10, 1.5}, {1u << 20, 1.20}, {4u << 20, 1.10}, {16u << 20, 1.10}}) {
            const Explanation explanation = explain(Collective::bcast, bytes, topology, lab);
            ASSERT_TRUE(explanation.decision.choice) << hosts << " " << bytes;
            for (const Candidate& candidate : explanation.candidates) {
                if (!candidate.chosen) continue;
                const double limit = static_cast<double>(explanation.limit);
                EXPECT_LE(static_cast<double>(candidate.predicted), target * limit) << hosts << " " << bytes;
                ASSERT_TRUE(candidate.evaluated);
                EXPECT_LE(static_cast<double>(*candidate.evaluated), target * limit) << hosts << " " << bytes;
                // Nothing in the list is cheaper by more than the quarter that robustness may cost.
                EXPECT_LE(static_cast<double>(candidate.predicted),
                          4.0 / 3 * static_cast<double>(explanation.candidates.front().predicted))
                    << hosts << " " << bytes << " " << to_text(explanation.candidates.front().choice);
            }
        }
    }
}

TEST(Decide, AReasonNamesWhatIsCheaperAndStandsALateRankWorse) {
    const Selection fast{Machine::from_options(2, 12e9), "mpich", {}, {}};  // no table speaks
    const std::string_view words = ", which stands a late rank better than the cheapest predicted, ";
    int robust = 0, cheapest = 0;
    for (const char* hosts : {"node:8 core:1", "node:32 core:2"})
        for (const std::uint64_t bytes : {64u << 10, 4u << 20}) {
            const Explanation explanation = explain(Collective::bcast, bytes, topology_of(hosts), fast);
            ASSERT_TRUE(explanation.decision.choice) << hosts << " " << bytes;
            const std::string& reason = explanation.decision.reason;
            const auto told = reason.find(words);
            if (told == std::string::npos) {
                ++cheapest;
                continue;
            }
            ++robust;
            Picoseconds own = 0, named = 0;
            for (const Candidate& candidate : explanation.candidates) {
                if (candidate.chosen) own = candidate.predicted;
                if (to_text(candidate.choice) == reason.substr(told + words.size()))
                    named = candidate.predicted;
            }
            EXPECT_GT(named, 0u) << reason;
            EXPECT_LT(named, own) << reason;
        }
    EXPECT_GT(robust, 0);
    EXPECT_GT(cheapest, 0);
    // A demand is no decision of the model.
    Selection asked = fast;
    asked.forced = decide(Collective::bcast, 4 << 20, topology_of("node:8 core:1"), fast).choice;
    ASSERT_TRUE(asked.forced);
    EXPECT_EQ(explain(Collective::bcast, 4 << 20, topology_of("node:8 core:1"), asked).decision.reason,
              "asked for");
}

TEST(Decide, ChunksFollowLatencyTimesRate) {
    const auto chunk = [](double latency_us, double rate) {
        Selection selection{Machine::from_options(latency_us, rate), "", {}, {}};
        const Decision decision = decide(Collective::bcast, 4 << 20, topology_of("node:8 core:1"), selection);
        EXPECT_TRUE(decision.choice);
        return decision.choice->values[0];
    };
    // Only the product counts: a slow-motion cluster takes the chunks of the fast one.
    EXPECT_EQ(chunk(2, 12e9), chunk(2000, 12e6));
    EXPECT_GT(chunk(20, 12e9), 2 * chunk(2, 12e9));
}

TEST(Decide, SizesThatVaryALittleShareOneChoice) {
    const Selection selection{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    const Topology topology = topology_of("node:4 core:2");
    const auto choice = [&](std::uint64_t bytes) {
        return to_text(*decide(Collective::bcast, bytes, topology, selection).choice);
    };
    EXPECT_EQ(choice(1000001), choice(1000100));
    EXPECT_EQ(choice(1048575), choice(1 << 20));
    std::set<std::string> choices;
    for (std::uint64_t bytes = 1 << 20; bytes < 2 << 20; bytes += 1013) choices.insert(choice(bytes));
    EXPECT_LE(choices.size(), 9u);
}

TEST(Decide, MemoryCountsOnlyWhereManyRanksShareIt) {
    // What was measured has at most four ranks per host: there the memory's rate must not change a choice.
    for (const char* hosts : {"node:4 core:1", "node:4 core:2", "node:3 core:3", "node:8 core:4"})
        for (const Collective collective :
             {Collective::bcast, Collective::allgather, Collective::allreduce, Collective::alltoallv})
            for (std::uint64_t bytes : {64u << 10, 1u << 20, 16u << 20})
                for (const bool overlapped : {false, true})
                    for (Machine machine : {Machine::from_options(60, 11.95e6), Machine{}}) {
                        Selection selection{machine, "mpich", {}, {}, overlapped};
                        const Topology topology = topology_of(hosts);
                        const Decision limited = decide(collective, bytes, topology, selection);
                        selection.machine.host_bytes_per_second = 0;
                        const Decision unlimited = decide(collective, bytes, topology, selection);
                        EXPECT_EQ(limited.choice, unlimited.choice) << hosts << " " << bytes;
                    }
    // On a full host it does: pieces are handed out in other ways, and nothing takes less than its copies.
    const Topology full = topology_of("node:4 core:112");
    const Decision decision = decide(Collective::bcast, 4 << 20, full, {});
    ASSERT_TRUE(decision.choice);
    const Machine machine;
    EXPECT_GE(predict(*decision.choice, {0, full.size(), 0, 4 << 20}, full, machine),
              machine.copies(111 * std::uint64_t{4 << 20}));
}

TEST(Decide, ForcedChoicesCount) {
    Selection selection;
    selection.forced = choice_of("chain:chunk_bytes=16K");
    EXPECT_EQ(broadcast_at("node:1 core:3", 8, selection).choice, selection.forced);
    EXPECT_EQ(broadcast_at("node:1 core:3", 8, selection).reason, "asked for");
    EXPECT_EQ(Selector(Collective::bcast, topology_of("node:1 core:3"), selection).native_below(), 0u);
    selection.forced = choice_of("node_leader(inter=node_leader)");
    EXPECT_FALSE(broadcast_at("node:2 core:2", 8 << 20, selection).choice);
    EXPECT_NE(broadcast_at("node:2 core:2", 8 << 20, selection).reason.find("asked for, but"),
              std::string::npos);
}

// Open MPI asks for every large block, one after another: whole ones took 1.43 times as long.
TEST(Decide, LongBlockingReductionsGoInPiecesUnderOpenMpi) {
    const Selection lab{Machine::from_options(60, 11.95e6), "openmpi", {}, {}};
    const Decision decision = decide(Collective::allreduce, 1 << 20, topology_of("node:4 core:2"), lab);
    ASSERT_TRUE(decision.choice);
    EXPECT_NE(to_text(*decision.choice).find("inter=ring:chunk_bytes=32K"), std::string::npos)
        << to_text(*decision.choice);
}

TEST(Decide, OtherCollectivesGetTheirOwnAlgorithms) {
    const Selection lab{Machine::from_options(60, 11.95e6), "mpich", {}, {}};
    Selection overlapped = lab;
    overlapped.overlapped = true;
    for (const char* hosts : {"node:4 core:1", "node:4 core:2", "node:8 core:1", "node:3 core:1,2,4"})
        for (Collective collective : {Collective::allgather, Collective::allreduce})
            for (std::uint64_t bytes : {256u << 10, 1u << 20, 4u << 20}) {
                const Explanation explanation = explain(collective, bytes, topology_of(hosts), lab);
                ASSERT_TRUE(explanation.decision.choice) << hosts << " " << bytes;
                EXPECT_EQ(explanation.decision.choice->algorithm->collective, collective);
                for (const Candidate& candidate : explanation.candidates) {
                    if (!candidate.chosen) continue;
                    ASSERT_TRUE(candidate.evaluated);
                    EXPECT_LE(static_cast<double>(*candidate.evaluated),
                              1.25 * static_cast<double>(explanation.limit))
                        << hosts << " " << bytes << " " << to_text(candidate.choice);
                }
            }
    // Small ones are native, or hidden.
    const Topology topology = topology_of("node:4 core:2");
    EXPECT_FALSE(decide(Collective::allgather, 1 << 10, topology, lab).choice);
    EXPECT_TRUE(decide(Collective::allgather, 8 << 10, topology, overlapped).choice);
    EXPECT_TRUE(decide(Collective::allgather, 8 << 10, topology_of("node:3 core:1"), overlapped).choice);
    // The one message of two ranks progresses by itself where it is handed to the kernel in the call.
    const Topology two = topology_of("node:2 core:1");
    for (const std::uint64_t bytes : {8u << 10, 256u << 10, 1u << 20}) {
        const auto taken = [&](const char* family) {
            Selection selection = overlapped;
            selection.family = family;
            return decide(Collective::allgather, bytes, two, selection).choice.has_value();
        };
        EXPECT_EQ(taken("mpich"), bytes >= 1 << 20) << bytes;
        EXPECT_EQ(taken("impi"), bytes >= 1 << 20) << bytes;
        EXPECT_EQ(taken("openmpi"), bytes >= 256 << 10) << bytes;
    }
    EXPECT_EQ(decide(Collective::barrier, 0, topology, lab).reason, "small message");
    EXPECT_EQ(to_text(*decide(Collective::barrier, 0, topology, overlapped).choice), "dissemination");
    EXPECT_EQ(decide(Collective::allreduce, 0, topology, overlapped).reason, "no bytes");
}

TEST(Decide, PortsOfTheMachineAreUsed) {
    // A rate that no table speaks for.
    Selection fast{Machine::from_options(60, 119.5e6), "", {}, {}};
    fast.machine.inter.ports = 2;
    const Topology topology = topology_of("node:5 core:1");
    const Decision of_model = decide(Collective::allgather, 1 << 20, topology, fast);
    ASSERT_TRUE(of_model.choice);
    EXPECT_NE(to_text(*of_model.choice).find("kport_ring"), std::string::npos) << to_text(*of_model.choice);
    Selection rails{Machine::from_options(60, 11.95e6), "", {}, {}};
    rails.machine.inter.ports = 2;
    const Decision two = decide(Collective::allgather, 1 << 20, topology, rails);
    EXPECT_EQ(to_text(*two.choice), "ring:chunk_bytes=128K");  // of the table, which is of two links
    rails.machine.inter.ports = 1;
    const Decision one = decide(Collective::allgather, 1 << 20, topology, rails);
    EXPECT_EQ(to_text(*one.choice), "ring:chunk_bytes=32K");  // of the table, which is of one link
    rails.overlapped = true;
    const Decision beside_work = decide(Collective::allgather, 1 << 20, topology, rails);
    EXPECT_EQ(to_text(*beside_work.choice), "ring:chunk_bytes=128K");  // fewer wake-ups of the agent
}

// Whatever rounds of eight messages the number of hosts makes: 10 hosts had two whole rounds, and bundles of
// single ranks cost less.
TEST(Decide, AlltoallsBetweenSingleRanksHaveNobodyToLead) {
    Selection overlapped{Machine::from_options(30, 12e9), "mpich", {}, {}};  // no table speaks
    overlapped.overlapped = true;
    for (int hosts = 2; hosts <= 20; ++hosts)
        for (const std::uint64_t bytes : {8u << 10, 64u << 10, 1u << 20}) {
            const Decision decision = decide(Collective::alltoallv, bytes,
                                             topology_of("node:" + std::to_string(hosts)), overlapped);
            ASSERT_TRUE(decision.choice) << hosts << " " << bytes << " " << decision.reason;
            EXPECT_EQ(decision.choice->algorithm->name, "spread") << hosts << " " << bytes;
        }
}

// No allgather by leaders serves 8192 hosts. There was nothing to choose from then, and the program crashed.
TEST(Decide, AllgathersAmongVeryManyHostsHaveAChoice) {
    for (const char* hosts : {"node:8191 core:2", "node:8192 core:2", "node:9000 core:3"}) {
        const Topology topology = topology_of(hosts);
        const Decision decision = decide(Collective::allgather, 1 << 20, topology,
                                         {Machine::from_options(2, 12e9), "mpich", {}, {}});
        ASSERT_TRUE(decision.choice) << hosts;
        Problem problem;
        problem.size = topology.size();
        problem.bytes = 1 << 20;
        EXPECT_EQ(refuse(*decision.choice, problem, topology), "") << to_text(*decision.choice);
        EXPECT_EQ(decision.choice->parts.empty(), topology.nodes() > 8191) << hosts;
    }
}

// The table beside it rounds: of one figure both say the same.
TEST(Explain, AReasonRoundsWhatIsPredicted) {
    const Selection fast{Machine::from_options(2, 12e9), "mpich", {}, {}};  // no table speaks
    int told = 0;
    for (std::uint64_t grain = 8 << 10; grain <= 64 << 10; grain *= 2)
        for (std::uint64_t bytes = 8 * grain; bytes < 16 * grain; bytes += grain) {
            const Explanation explanation =
                explain(Collective::bcast, bytes, topology_of("node:8 core:1"), fast);
            for (const Candidate& candidate : explanation.candidates) {
                if (!candidate.chosen || candidate.predicted >= 999'000'000) continue;
                const auto hundredths = static_cast<unsigned>((candidate.predicted + 5'000) / 10'000);
                char text[64];
                std::snprintf(text, sizeof text, "cost model: %u.%02u us", hundredths / 100,
                              hundredths % 100);
                EXPECT_TRUE(explanation.decision.reason.starts_with(text))
                    << explanation.decision.reason << ", not " << text;
                ++told;
            }
        }
    EXPECT_GT(told, 16);
}

// A broadcast of a GiB runs as 32, each by what is chosen for one of them.
TEST(Explain, DecidesALargeBroadcastAsItsPiecesAre) {
    const Selection fast{Machine::from_options(2, 12e9), "mpich", {}, {}};  // no table speaks
    constexpr std::uint64_t giga = 1 << 30, piece = 32 << 20;
    const Topology topology = topology_of("node:8 core:1");
    const Explanation whole = explain(Collective::bcast, giga, topology, fast);
    const Decision of_a_piece = broadcast_at("node:8 core:1", piece, fast);
    ASSERT_TRUE(whole.decision.choice && of_a_piece.choice);
    EXPECT_EQ(to_text(*whole.decision.choice), to_text(*of_a_piece.choice));
    EXPECT_NE(to_text(*whole.decision.choice), to_text(*broadcast_at("node:8 core:1", giga, fast).choice));
    EXPECT_NE(whole.decision.reason.find(", for each of 32 pieces of up to 32M"), std::string::npos)
        << whole.decision.reason;
    EXPECT_EQ(std::count_if(whole.candidates.begin(), whole.candidates.end(),
                            [](const Candidate& candidate) { return candidate.chosen; }),
              1);
    EXPECT_EQ(explain(Collective::bcast, piece, topology, fast).decision.reason.find("pieces"),
              std::string::npos);
}

TEST(Explain, ListsEveryAlgorithmOnceAndMarksTheChoice) {
    for (const char* hosts : {"node:16 core:48", "node:4 core:2", "node:8 core:1", "node:1 core:4"})
        for (std::uint64_t bytes : {0u, 100u, 4u << 20}) {
            const Explanation explanation = explain(Collective::bcast, bytes, topology_of(hosts), {});
            std::set<std::string_view> names;
            std::set<std::string> texts;
            int chosen = 0;
            Picoseconds before = 0;
            for (const Candidate& candidate : explanation.candidates) {
                names.insert(candidate.choice.algorithm->name);
                EXPECT_TRUE(texts.insert(to_text(candidate.choice)).second) << to_text(candidate.choice);
                chosen += candidate.chosen;
                EXPECT_TRUE(candidate.refused.empty());
                EXPECT_LE(before, candidate.predicted);
                before = candidate.predicted;
            }
            EXPECT_EQ(names.size(), static_cast<std::size_t>(std::count_if(
                                        algorithms().begin(), algorithms().end(), [](const Algorithm& row) {
                                            return row.collective == Collective::bcast;
                                        })));
            EXPECT_EQ(chosen, explanation.decision.choice ? 1 : 0) << hosts << " " << bytes;
        }
}

}  // namespace
}  // namespace thalweg
