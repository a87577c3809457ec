// Machines as data, where ranks live on them, what the natives would run, and what command lines ask for.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/machine.h"
#include "sim/mapping.h"
#include "sim/natives.h"
#include "sim/request.h"

namespace thalweg::sim {
namespace {

std::string text_of(std::string_view name) {
    for (const auto& [known, json] : built_in_machines())
        if (known == name) return std::string(json);
    return {};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}

TEST(Machines, AreReadAndGiveTheModelWhatProductionWouldMeasure) {
    std::set<std::string> names;
    for (const auto& [name, json] : built_in_machines()) {
        SimMachine machine;
        std::string why;
        ASSERT_EQ(parse_machine(json, machine, why), Status::ok) << name << ": " << why;
        EXPECT_EQ(machine.name, name);
        names.emplace(name);
        const Machine model = machine.model();
        EXPECT_GE(model.inter.latency, 1'000'000u) << name;  // no network is quicker than a microsecond
        EXPECT_EQ(model.inter.bytes_per_second,
                  static_cast<std::uint64_t>(machine.flow_rate > 0 ? machine.flow_rate : machine.link_rate));
        EXPECT_LE(machine.copy_rate, machine.host_copy_rate) << name;
    }
    for (const char* name : {"dane", "xc40", "ib2304", "slingshot", "gbe8", "lab-100", "lab-50"})
        EXPECT_TRUE(names.contains(name)) << name;
    // No message is quicker than its link.
    SimMachine machine;
    std::string why;
    ASSERT_EQ(
        parse_machine(replaced(text_of("dane"), R"("flow_GBps": {"is": 12.3)", R"("flow_GBps": {"is": 50)"),
                      machine, why),
        Status::ok)
        << why;
    EXPECT_EQ(machine.model().inter.bytes_per_second, 12'300'000'000u);
}

TEST(Machines, WhatALibraryAsksIsItsOwn) {
    SimMachine lab, dane;
    std::string why;
    ASSERT_EQ(find_machine("lab-100", lab, why), Status::ok) << why;
    ASSERT_EQ(find_machine("dane", dane, why), Status::ok) << why;
    EXPECT_LT(lab.under("openmpi").inter_eager, 65536u);  // it asks with 64 KiB (sim/results/wire.jsonl)
    EXPECT_GT(lab.under("openmpi").inter_eager, 64800u);
    EXPECT_GE(lab.under("mpich").inter_eager, 1u << 20);
    EXPECT_EQ(dane.under("mpich").inter_eager, dane.inter_eager);
    // Intel MPI hands its messages to the kernel as MPICH does, and lets nothing overtake.
    EXPECT_EQ(lab.under("impi").inter_eager, lab.under("mpich").inter_eager);
    EXPECT_TRUE(lab.under("mpich").adds_receipts(true));
    EXPECT_FALSE(lab.under("mpich").adds_receipts(false));
    EXPECT_FALSE(dane.under("mpich").adds_receipts(true));  // no kernel sends there
    for (const char* mpi : {"openmpi", "impi"}) EXPECT_FALSE(lab.under(mpi).adds_receipts(true)) << mpi;
    EXPECT_TRUE(lab.under("openmpi").synchronous_asks);
    EXPECT_FALSE(lab.under("impi").synchronous_asks);
    // Over libucp it is the same under all of them.
    for (const char* mpi : {"mpich", "openmpi", "impi"}) {
        const SimMachine over = lab.under(mpi).over_libucp();
        EXPECT_EQ(over.inter_eager, UINT64_MAX) << mpi;
        EXPECT_TRUE(over.puts) << mpi;
        EXPECT_FALSE(over.adds_receipts(true)) << mpi;
        EXPECT_FALSE(over.synchronous_asks) << mpi;
        EXPECT_GT(over.start_seconds, lab.start_seconds) << mpi;
        EXPECT_LT(over.post_of(true), over.post_of(false)) << mpi;
        EXPECT_GT(over.post_of(true), lab.post_of(true)) << mpi;
    }
    EXPECT_LT(lab.complete_of(true), lab.complete_of(false));
    EXPECT_EQ(dane.complete_of(true), dane.complete_of(false));
    EXPECT_FALSE(dane.puts);
    EXPECT_TRUE(dane.over_libucp().puts);
    EXPECT_EQ(dane.over_libucp().post_seconds, dane.post_seconds);
    EXPECT_EQ(dane.over_libucp().inter_eager, dane.inter_eager);
}

TEST(Machines, ANumberWithoutItsSourceIsRefused) {
    SimMachine machine;
    std::string why;
    const std::string dane = text_of("dane");
    EXPECT_EQ(
        parse_machine(replaced(dane, R"("from": "one adapter per host")", R"("from": "")"), machine, why),
        Status::invalid_argument);
    EXPECT_NE(why.find("\"rails\""), std::string::npos) << why;
    EXPECT_EQ(parse_machine(replaced(dane, "\"copy_GBps\"", "\"kopy_GBps\""), machine, why),
              Status::invalid_argument);
    EXPECT_NE(why.find("\"copy_GBps\""), std::string::npos) << why;
    EXPECT_EQ(parse_machine(replaced(dane, "\"rails\"", "\"rail\": 1, \"rails\""), machine, why),
              Status::invalid_argument);
    EXPECT_NE(why.find("unknown field \"rail\""), std::string::npos) << why;
    EXPECT_EQ(parse_machine("[1]", machine, why), Status::invalid_argument);
    EXPECT_EQ(why, "a machine is a JSON object");
    EXPECT_EQ(parse_machine("{\"name\": \"x\",\n\"hosts\": }", machine, why), Status::invalid_argument);
    EXPECT_EQ(why.rfind("no JSON: parse error at line 2", 0), 0u) << why;
    EXPECT_EQ(parse_machine("", machine, why), Status::invalid_argument);
    EXPECT_TRUE(machine.name.empty());
    // More groups than SimGrid's routers have links for would run past its arrays.
    EXPECT_EQ(
        parse_machine(replaced(text_of("slingshot"), "[4, 1, 32, 16]", "[64, 1, 32, 16]"), machine, why),
        Status::invalid_argument);
    EXPECT_EQ(
        parse_machine(replaced(text_of("slingshot"), "[4, 1, 32, 16]", "[4, 4096, 4096, 256]"), machine, why),
        Status::invalid_argument);
    EXPECT_EQ(why, "\"dragonfly\" has groups of more than 1048576 places");
}

// A known field without the one that it goes with, and a source that says nothing.
TEST(Machines, WhatIsMissingIsWhatIsNamed) {
    const auto why_not = [](const std::string& text) {
        SimMachine machine;
        std::string why;
        EXPECT_EQ(parse_machine(text, machine, why), Status::invalid_argument);
        return why;
    };
    const std::string lab = text_of("lab-100"), dane = text_of("dane");
    EXPECT_EQ(why_not(replaced(lab, "\"frame_bytes\"", "\"frames\"")),
              R"("frame_bytes" must be {"is": a number, "from": its source})");
    EXPECT_EQ(why_not(replaced(lab, "\"libucp_start_us\"", "\"libucp_begin_us\"")),
              R"("libucp_start_us" must be {"is": a number, "from": its source})");
    EXPECT_EQ(why_not(replaced(dane, R"("from": "one adapter per host")", R"("from": "assumed")")),
              R"("from" of "rails" is too short to be a source: expected 8 letters or more)");
}

// What would count for nothing is a mistake, too.
TEST(Machines, AFieldIsThereOnceAndSaysNothingElse) {
    const auto why_not = [](const std::string& to) {
        SimMachine machine;
        std::string why;
        const std::string rails = R"("rails": {"is": 1, "from": "one adapter per host"})";
        EXPECT_EQ(parse_machine(replaced(text_of("dane"), rails, to), machine, why),
                  Status::invalid_argument);
        return why;
    };
    const std::string two = R"("rails": {"is": 2, "from": "two adapters per host"})";
    EXPECT_EQ(why_not(two + ", " + two), R"("rails" is there twice)");
    EXPECT_EQ(why_not(R"("rails": {"is": 2, "is": 1, "from": "one adapter per host"})"),
              R"("is" of "rails" is there twice)");
    EXPECT_EQ(why_not(R"("rails": {"is": 1, "unit": "hundreds", "from": "one adapter per host"})"),
              R"("rails" has more than its number, "is", and its source, "from")");
}

TEST(Machines, NumbersThatNoMachineHasAreRefused) {
    const std::string dane = text_of("dane");
    const auto refused = [&](const std::string& from, const std::string& to, const std::string& sentence) {
        SimMachine machine;
        std::string why;
        EXPECT_EQ(parse_machine(replaced(dane, from, to), machine, why), Status::invalid_argument) << to;
        EXPECT_NE(why.find(sentence), std::string::npos) << why;
        EXPECT_EQ(why.find('\n'), std::string::npos);
        EXPECT_TRUE(machine.name.empty());
    };
    const std::string cores = R"("cores_per_host": {"is": 112)", rails = R"("rails": {"is": 1)";
    refused(cores, R"("cores_per_host": {"is": 0)",
            "\"cores_per_host\" must be a whole number from 1 to 4096");
    refused(cores, R"("cores_per_host": {"is": 1.5)", "\"cores_per_host\" must be a whole number");
    refused(cores, R"("cores_per_host": {"is": 1e300)", "\"cores_per_host\" is too large to be true");
    refused(rails, R"("rails": {"is": 65)", "\"rails\" must be a whole number from 1 to 64");
    refused(rails, R"("rails": {"is": -1)", "\"rails\" must not be negative");
    refused(rails, R"("rails": {"is": "1")", "\"rails\" must be {\"is\": a number");
    // Rates and times that the cost model's whole numbers do not hold, and rates that would be none.
    refused(R"("copy_GBps": {"is": 10)", R"("copy_GBps": {"is": 1e12)",
            "\"copy_GBps\" is too large to be true");
    refused(R"("flow_GBps": {"is": 12.3)", R"("flow_GBps": {"is": 1e-10)",
            "\"flow_GBps\" is too small to be true");
    refused(R"("inter_latency_us": {"is": 1.0)", R"("inter_latency_us": {"is": 2e6)",
            "\"inter_latency_us\" is too large to be true");
    refused("[32, 16]", "[32, 16, 8]", "\"fat_tree\" must be a list of 2 whole numbers from 1 to 4096");
    refused("[32, 16]", "[32, 5000]", "\"fat_tree\" must be a list of 2");
    refused(R"("fabric": "fat_tree")", R"("fabric": "torus")",
            "\"fabric\" must be star, fat_tree or dragonfly");
    refused(R"("host_copy_GBps": {"is": 200)", R"("host_copy_GBps": {"is": 2)",
            "must not be less than \"copy_GBps\"");
}

TEST(Machines, AreFoundByNameAndAMisspeltOneIsGuessed) {
    SimMachine machine;
    std::string why;
    EXPECT_EQ(find_machine("xc40", machine, why), Status::ok);
    EXPECT_EQ(machine.cores_per_host, 24);
    EXPECT_EQ(find_machine("slingshoot", machine, why), Status::invalid_argument);
    EXPECT_NE(why.find("maybe slingshot?"), std::string::npos) << why;
    EXPECT_EQ(find_machine("/nowhere/at.json", machine, why), Status::invalid_argument);
    EXPECT_EQ(why, "cannot read /nowhere/at.json");
}

Topology mapped(std::string_view mapping, int ranks, int per_host, std::uint64_t seed = 1) {
    Topology topology;
    std::string why;
    EXPECT_EQ(map_ranks(mapping, ranks, per_host, 1 << 20, seed, topology, why), Status::ok) << why;
    return topology;
}

TEST(Mapping, BlockCyclicPermutedRagged) {
    EXPECT_EQ(mapped("block", 6, 2).to_text(), "node:3 core:2");
    EXPECT_EQ(mapped("cyclic", 6, 2).to_text(), "node:3 core:2 map:cyclic");
    EXPECT_EQ(mapped("block", 7, 4).ranks_on(1).size(), 3u);
    const Topology ragged = mapped("ragged", 30, 8);
    EXPECT_EQ(ragged.ranks_on(0).size(), 8u);
    EXPECT_EQ(ragged.ranks_on(1).size(), 4u);
    EXPECT_EQ(ragged.ranks_on(2).size(), 6u);
    // A permutation keeps the numbers of ranks per host, and the same seed gives the same one.
    const Topology one = mapped("permuted", 24, 4), same = mapped("permuted", 24, 4),
                   other = mapped("permuted", 24, 4, 2);
    EXPECT_EQ(one.nodes(), 6);
    for (int host = 0; host < 6; ++host) EXPECT_EQ(one.ranks_on(host).size(), 4u);
    EXPECT_EQ(one.to_text(), same.to_text());
    EXPECT_NE(one.to_text(), other.to_text());
    EXPECT_NE(one.to_text(), mapped("block", 24, 4).to_text());
}

TEST(Mapping, SaysWhatDoesNotFit) {
    Topology topology;
    std::string why;
    EXPECT_EQ(map_ranks("block", 9, 2, 4, 1, topology, why), Status::invalid_argument);
    EXPECT_EQ(why,
              "9 ranks need 5 hosts of 2; the machine has 4: ask for fewer ranks, for more per host or for "
              "another machine");
    EXPECT_EQ(map_ranks("random", 9, 2, 8, 1, topology, why), Status::invalid_argument);
    EXPECT_NE(why.find("ragged"), std::string::npos);
    EXPECT_EQ(map_ranks("block", 9, 0, 8, 1, topology, why), Status::invalid_argument);
}

// None: it can be answered.
std::optional<int> asked(std::vector<std::string> words, Request& request) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    return parse_request(static_cast<int>(arguments.size()), arguments.data(), request);
}

TEST(Requests, KeysThatAreSortedAndFacesAreOfOneRank) {
    const auto status = [](const char* app, const char* bytes) {
        Request request;
        return asked({"sim", "app", app, "--machine", "slingshot", "--ranks", "2048", "--bytes", bytes},
                     request);
    };
    EXPECT_FALSE(status("sort", "1G"));
    EXPECT_EQ(status("sort", "2048G"), 2);
    EXPECT_EQ(status("cg", "1G"), 2);  // everybody has all of it
    for (const char* app : {"stencil", "amr"}) {
        EXPECT_FALSE(status(app, "1G")) << app;
        EXPECT_EQ(status(app, "2048G"), 2) << app;
    }
}

TEST(Requests, NoBytesOfMemoryAreNoLimitAsNoSecondsAreNone) {
    Request request;
    EXPECT_FALSE(
        asked({"sim", "barrier", "--ranks", "4", "--most-memory", "0", "--most-seconds", "0"}, request));
    EXPECT_EQ(request.most_seconds, 0u);
    EXPECT_EQ(request.most_memory, std::numeric_limits<std::uint64_t>::max());
}

TEST(Natives, FollowTheLibrariesRules) {
    const Topology hosts8x4 = mapped("block", 32, 4), hosts3x4 = mapped("block", 12, 4),
                   flat = mapped("block", 16, 1);
    const auto bcast = [](std::string_view family, std::uint64_t bytes, const Topology& topology) {
        return native_choice(family, Collective::bcast, bytes, topology);
    };
    // MPICH: 12,288 and 524,288 bytes are the edges, and powers of two keep the tree longer.
    EXPECT_EQ(bcast("mpich", 12287, hosts8x4), "node_leader(intra=binomial,inter=binomial)");
    EXPECT_EQ(bcast("mpich", 12288, hosts8x4),
              "node_leader(intra=binomial,inter=scatter_recursive_doubling)");
    EXPECT_EQ(bcast("mpich", 524288, hosts8x4), "scatter_ring");
    EXPECT_EQ(bcast("mpich", 12288, hosts3x4), "scatter_ring");
    EXPECT_EQ(bcast("mpich", 12288, flat), "scatter_recursive_doubling");
    EXPECT_EQ(bcast("mpich", 64 << 20, mapped("block", 7, 1)), "binomial");
    // Open MPI: linear among up to four hosts' leaders, else by tables; 4x1 to 8x1, 4x2 and 3x3 are what the
    // lab measured (sim/results/natives.jsonl).
    EXPECT_EQ(bcast("openmpi", 65535, hosts8x4), "node_leader(intra=binomial,inter=binomial)");
    EXPECT_EQ(bcast("openmpi", 65536, hosts8x4), "node_leader(intra=binomial,inter=chain:chunk_bytes=8K)");
    EXPECT_EQ(bcast("openmpi", 32 << 20, hosts3x4), "node_leader(intra=binomial,inter=linear)");
    EXPECT_EQ(bcast("openmpi", 65536, mapped("block", 4, 1)), "linear");
    EXPECT_EQ(bcast("openmpi", 1 << 20, mapped("block", 5, 1)), "chain:chunk_bytes=0");
    EXPECT_EQ(bcast("openmpi", 1 << 20, mapped("block", 8, 1)), "linear");
    EXPECT_EQ(bcast("openmpi", 4095, flat), "knomial:radix=4");
    EXPECT_EQ(bcast("openmpi", 4096, flat), "binomial");
    EXPECT_EQ(bcast("openmpi", 1 << 20, flat), "scatter_recursive_doubling");
    EXPECT_EQ(bcast("openmpi", 16 << 10, mapped("block", 512, 1)), "split_binary:chunk_bytes=0");
    EXPECT_EQ(bcast("openmpi", 1 << 30, mapped("block", 8192, 1)), "scatter_recursive_doubling");
    const auto allgather = [](std::string_view family, std::uint64_t bytes, const Topology& topology) {
        return native_choice(family, Collective::allgather, bytes, topology);
    };
    EXPECT_EQ(allgather("mpich", 16383, hosts8x4), "standard_exchange");
    EXPECT_EQ(allgather("mpich", 16384, hosts8x4), "ring");
    EXPECT_EQ(allgather("mpich", 6826, hosts3x4), "bruck");
    EXPECT_EQ(allgather("mpich", 6827, hosts3x4), "ring");
    EXPECT_EQ(allgather("openmpi", 1 << 20, mapped("block", 12, 1)), "bruck");  // doubling needs 2^k ranks
    EXPECT_EQ(allgather("openmpi", 1 << 20, mapped("block", 12, 12)), "bruck");
    EXPECT_EQ(allgather("openmpi", 1 << 20, flat), "standard_exchange");
    EXPECT_EQ(allgather("openmpi", 4096, mapped("block", 64, 1)), "neighbour_exchange");
    EXPECT_EQ(allgather("openmpi", 4096, mapped("block", 65, 1)), "ring");
    EXPECT_EQ(allgather("openmpi", 1 << 20, mapped("block", 64, 1)), "ring");
    EXPECT_EQ(native_choice("openmpi", Collective::allreduce, 65536, flat), "rabenseifner");
    EXPECT_EQ(native_choice("openmpi", Collective::allreduce, 64, mapped("block", 256, 4)), "");
    EXPECT_EQ(native_choice("openmpi", Collective::alltoallv, 8, mapped("block", 100, 4)), "pairwise");
    EXPECT_EQ(native_choice("openmpi", Collective::alltoallv, 8, mapped("block", 224, 4)),
              "spread:in_flight=0");
    EXPECT_EQ(native_choice("mvapich", Collective::bcast, 8, flat), "");
    EXPECT_EQ(native_model("lam"), nullptr);
    EXPECT_TRUE(native_in_turn("mpich", Collective::bcast));
    EXPECT_FALSE(native_in_turn("mpich", Collective::alltoallv));
    EXPECT_FALSE(native_in_turn("openmpi", Collective::bcast));
    EXPECT_EQ(native_posting("mpich", "spread:in_flight=32", false), Posting::falling);
    EXPECT_EQ(native_posting("mpich", native_faces, true), Posting::listed);
    EXPECT_EQ(native_posting("openmpi", "spread:in_flight=0", false), Posting::listed);
    EXPECT_EQ(native_posting("openmpi", "pairwise", false), Posting::as_built);
    EXPECT_EQ(native_posting("", "spread", false), Posting::as_built);
}

// Open MPI's hierarchical allgather: by the ranks of a host and the whole result inside it, by the hosts and
// what each has between them; and not where hosts differ.
TEST(Natives, OpenMpiGathersByHostsWhereTheyAreAlike) {
    const auto allgather = [](std::uint64_t bytes, const Topology& topology) {
        return native_choice("openmpi", Collective::allgather, bytes, topology);
    };
    EXPECT_EQ(allgather(64 << 10, mapped("block", 8, 2)),
              "hierarchical(intra=binomial,inter=standard_exchange)");
    EXPECT_EQ(allgather(64 << 10, mapped("cyclic", 8, 2)), allgather(64 << 10, mapped("block", 8, 2)));
    EXPECT_EQ(allgather(256 << 10, mapped("block", 8, 2)),
              "hierarchical(intra=kary:fanout=2:chunk_bytes=0,inter=standard_exchange)");
    EXPECT_EQ(allgather(1 << 20, mapped("block", 12, 4)),
              "hierarchical(intra=chain:chunk_bytes=0,inter=bruck)");
    EXPECT_EQ(allgather(4096, mapped("block", 64, 4)), "hierarchical(intra=linear,inter=standard_exchange)");
    // 512 blocks of 1 KiB are 512 KiB to hand out; 128 hosts exchange 4 KiB each.
    EXPECT_EQ(allgather(1 << 10, mapped("block", 512, 4)),
              "hierarchical(intra=linear,inter=neighbour_exchange)");
    EXPECT_EQ(allgather(4096, mapped("block", 65, 4)), "ring");  // the last host has one rank
    EXPECT_EQ(allgather(64 << 10, mapped("ragged", 30, 8)), "bruck");
}

TEST(Natives, AreChoicesThatCanRun) {
    for (const NativeModel& model : native_models())
        for (const Collective collective : {Collective::bcast, Collective::allgather, Collective::allreduce,
                                            Collective::barrier, Collective::alltoallv})
            for (const int ranks : {2, 3, 7, 8, 12, 32, 33})
                for (const std::uint64_t bytes : {8u, 4096u, 65536u, 1u << 20, 16u << 20}) {
                    const Topology topology = mapped("block", ranks, 4);
                    const std::string text = native_choice(model.family, collective, bytes, topology);
                    if (text.empty()) continue;
                    Choice choice;
                    std::string why;
                    ASSERT_EQ(parse_choice(collective, text, choice, why), Status::ok) << text << ": " << why;
                    Problem problem;
                    problem.size = ranks;
                    problem.bytes = bytes;
                    EXPECT_EQ(refuse(choice, problem, topology), "") << text << " of " << ranks;
                }
}

}  // namespace
}  // namespace thalweg::sim
