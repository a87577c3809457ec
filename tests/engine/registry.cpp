// Every algorithm of the registry, as rows appear: run by the engine over a network that delays and reorders,
// for groups of 1 to 16, whole and in pieces, in the smallest window, again and again with other buffers.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "algorithms/algorithm.h"
#include "engine/group.h"
#include "engine/orderly.h"
#include "engine/window.h"
#include "oracle/definition.h"
#include "schedule/passes.h"
#include "transport/saboteur/saboteur.h"

namespace thalweg {
namespace {

using oracle::Definition;
using test::Bytes;
using test::Group;
using test::GroupOptions;

constexpr std::size_t guard_bytes = 64;
constexpr std::uint8_t guard = 0xc3;

struct Case {
    const Algorithm* algorithm;
    Problem problem;
    Topology topology;
    std::uint64_t chunk_bytes;  // 0: as built

    std::string text() const {
        return std::string(name_of(algorithm->collective)) + "/" + std::string(algorithm->name) + " of " +
               std::to_string(problem.bytes) + " bytes on " + topology.to_text() + ", root " +
               std::to_string(problem.root) + ", chunks of " + std::to_string(chunk_bytes);
    }
    bool refused() const { return !algorithm->refuse(problem, topology, choice()).empty(); }
    // In pieces by the algorithm's own parameter where it has one, by the pass where it has none.
    Choice choice() const {
        Choice made = standard_choice(*algorithm);
        for (std::size_t i = 0; i < algorithm->parameters.size(); ++i) {
            if (algorithm->parameters[i].name == "chunk_bytes") made.values[i] = chunk_bytes;
        }
        return made;
    }
    bool cuts_itself() const {
        for (const Parameter& parameter : algorithm->parameters) {
            if (parameter.name == "chunk_bytes") return true;
        }
        return false;
    }
    std::vector<Schedule> schedules() const {
        std::vector<Schedule> all;
        for (int rank = 0; rank < problem.size; ++rank) {
            Problem mine = problem;
            mine.rank = rank;
            all.push_back(algorithm->build(mine, topology, choice()));
        }
        if (chunk_bytes != 0 && !cuts_itself()) {
            for (Schedule& schedule : all) schedule = chunked(schedule, chunk_bytes, problem.bytes);
        }
        return all;
    }
};

// Every third rank shares a host: permuted and, but for multiples of 3, ragged.
Topology topology_of_three(int size) {
    std::vector<std::uint64_t> host(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank)
        host[static_cast<std::size_t>(rank)] = static_cast<std::uint64_t>(rank % 3);
    return Topology::from_table(host);
}

template <class Visit>
void for_every_case(Visit visit) {
    for (const Algorithm& algorithm : algorithms()) {
        for (int size : {1, 2, 3, 5, 8, 13, 16}) {
            for (int root : {0, size / 2, size - 1}) {
                if (algorithm.collective != Collective::bcast && root != 0) continue;
                for (std::uint64_t bytes : {0u, 1u, 7u, 4099u}) {
                    if (algorithm.collective == Collective::barrier && bytes != 0) continue;
                    for (std::uint64_t chunk_bytes : {0u, 1000u}) {
                        const Topology topology =
                            size % 2 ? topology_of_three(size) : Topology::single_node(size);
                        Case one{&algorithm, {0, size, root, bytes}, topology, chunk_bytes};
                        one.problem.in_place = size % 3 == 2;
                        if (!one.refused()) visit(one);
                    }
                }
            }
        }
    }
}

// One run of a case on `group`, with poisoned buffers between guards; empty, or what went wrong.
class Runner {
  public:
    Runner(const Case& one, Group& group) : one_(one), group_(group) {
        for (Schedule& schedule : one.schedules()) {
            const int rank = static_cast<int>(executions_.size());
            executions_.push_back(std::make_unique<Execution>(
                std::make_shared<const Schedule>(std::move(schedule)), group.channel(rank)));
        }
    }

    std::string start(std::uint32_t operation, std::uint64_t seed) {
        definition_.emplace(one_.algorithm->collective, one_.problem, seed);
        in_.assign(executions_.size(), {});
        out_.assign(executions_.size(), {});
        for (int rank = 0; rank < group_.size(); ++rank) {
            out_[rank].assign(definition_->out_bytes(rank) + 2 * guard_bytes, guard);
            in_[rank].resize(definition_->in_bytes(rank));
            definition_->fill(rank, in_[rank].data(), out_[rank].data() + guard_bytes);
            const Reducer reducer{&Definition::combine, &*definition_, one_.problem.element_bytes};
            const Status status = executions_[rank]->start(
                {in_[rank].data(), out_[rank].data() + guard_bytes, reducer}, operation);
            if (status != Status::ok) return describe(status);
        }
        return {};
    }

    void add_to(std::vector<Execution*>& started) {
        for (auto& execution : executions_) started.push_back(execution.get());
    }

    std::string compare() {
        for (int rank = 0; rank < group_.size(); ++rank) {
            const Bytes& out = out_[rank];
            std::string why = definition_->compare(rank, in_[rank].data(), out.data() + guard_bytes);
            if (!why.empty()) return why;
            for (std::size_t i = 0; i < guard_bytes; ++i) {
                if (out[i] != guard || out[out.size() - 1 - i] != guard) return "a guard byte was written";
            }
        }
        return {};
    }

    std::string run(std::uint32_t operation, std::uint64_t seed) {
        std::string why = start(operation, seed);
        if (!why.empty()) return why;
        std::vector<Execution*> started;
        add_to(started);
        why = group_.run(started);
        return why.empty() ? compare() : why;
    }

  private:
    Case one_;
    Group& group_;
    std::optional<Definition> definition_;
    std::vector<Bytes> in_, out_;
    std::vector<std::unique_ptr<Execution>> executions_;
};

// What window.h needs of schedules for its proof: as they are built, and in pieces where they cut themselves.
TEST(registry, every_algorithm_is_orderly) {
    int cases = 0;
    for_every_case([&](const Case& one) {
        std::string why;
        if (one.chunk_bytes != 0 && !one.cuts_itself()) return;
        EXPECT_TRUE(orderly(one.schedules(), why)) << one.text() << ": " << why;
        ++cases;
    });
    EXPECT_GT(cases, 100);
}

TEST(registry, every_algorithm_runs_in_every_window) {
    std::uint64_t seed = 0;
    for_every_case([&](const Case& one) {
        if (testing::Test::HasFailure()) return;
        ++seed;
        GroupOptions options;
        options.seed = options.network.seed = seed;
        options.limits.in_flight = seed % 3 == 0 ? 64 : 1 + seed % 4;
        options.network.slots = std::max(smallest_window, options.limits.in_flight);
        // Orderly ones must do with the smallest window; others (pieces of a scatter) may widen theirs.
        std::string why;
        options.network.fixed_slots = orderly(one.schedules(), why);
        options.network.delay_polls = seed % 5;
        options.network.eager_bytes = seed % 2 ? 0 : 2000;
        options.network.max_message_bytes = seed % 7 ? 1 << 30 : 900;
        options.limits.credit_bytes = seed % 11 ? 1 << 20 : 3000;
        Group group(one.problem.size, options);
        Runner runner(one, group);
        for (std::uint32_t run = 0; run < 2; ++run) {
            EXPECT_EQ(runner.run(run, seed + run), "")
                << one.text() << ", in_flight " << options.limits.in_flight;
        }
    });
}

TEST(registry, operations_on_one_channel_overlap) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        GroupOptions options;
        options.seed = options.network.seed = seed;
        options.network.delay_polls = 4;
        options.network.slots = 6;
        constexpr int size = 6;
        Group group(size, options);
        std::vector<std::unique_ptr<Runner>> runners;
        std::vector<Execution*> started;
        for (const Algorithm& algorithm : algorithms()) {
            const int number = static_cast<int>(runners.size());
            const Case one{&algorithm, {0, size, number % size, 3000}, Topology::single_node(size), 500};
            if (one.refused()) continue;
            runners.push_back(std::make_unique<Runner>(one, group));
            ASSERT_EQ(runners.back()->start(number, seed * 100 + number), "");
            runners.back()->add_to(started);
        }
        ASSERT_GE(runners.size(), 3u);
        ASSERT_EQ(group.run(started), "");
        for (auto& runner : runners) ASSERT_EQ(runner->compare(), "");
    }
}

// Each way to damage a message is seen in each algorithm that sends at least two messages of several bytes.
TEST(registry, the_saboteur_is_seen_in_every_algorithm) {
    for (const Algorithm& algorithm : algorithms()) {
        if (algorithm.collective == Collective::barrier) continue;  // sends no bytes
        Case one{&algorithm, {0, 6, 1, 4099}, topology_of_three(6), 500};
        if (one.refused()) continue;
        for (Sabotage mode : every_sabotage) {
            GroupOptions options;
            options.wrap = [&](Transport& inner) { return make_saboteur(inner, {mode, 3}); };
            Group group(6, options);
            Runner runner(one, group);
            EXPECT_NE(runner.run(0, 1), "") << one.text() << ", " << name_of(mode);
        }
    }
}

// Real threads, blocking in wait(), back to back without a barrier: 4 different algorithms share a channel in
// turn.
TEST(registry, ranks_as_threads_wait) {
    constexpr int size = 8, rounds = 30;
    for (WaitPolicy policy : {WaitPolicy::sleep, WaitPolicy::spin}) {
        InprocOptions network_options;
        network_options.eager_bytes = 1000;
        network_options.delay_polls = 3;
        InprocNetwork network(size, network_options);
        std::atomic<int> wrong{0};
        std::atomic<std::uint64_t> sleeps{0};
        auto work = [&](int rank) {
            auto channel = make_channel(network.endpoint(rank), {});
            WaitStatistics statistics;
            std::uint32_t operation = 0;
            std::vector<std::unique_ptr<Execution>> executions;
            const Problem problem{rank, size, 3, 20'000};
            for (const Algorithm& algorithm : algorithms()) {
                if (algorithm.collective != Collective::bcast) continue;
                const Topology topology = Topology::single_node(size);
                const Choice choice = standard_choice(algorithm);
                if (!algorithm.refuse(problem, topology, choice).empty() || executions.size() == 4) continue;
                executions.push_back(std::make_unique<Execution>(
                    std::make_shared<const Schedule>(algorithm.build(problem, topology, choice)), channel));
            }
            for (int round = 0; round < rounds; ++round) {
                const Definition definition(Collective::bcast, problem, round);
                if (rank == size - 1 && round == rounds / 2) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                }
                for (auto& execution : executions) {
                    Bytes out(problem.bytes);
                    definition.fill(rank, nullptr, out.data());
                    if (execution->start({nullptr, out.data(), {}}, operation++) != Status::ok) ++wrong;
                    if (wait(*execution, policy, statistics) != Status::ok) ++wrong;
                    if (!definition.compare(rank, nullptr, out.data()).empty()) ++wrong;
                }
            }
            sleeps += statistics.sleeps;
        };
        std::vector<std::thread> threads;
        for (int rank = 0; rank < size; ++rank) threads.emplace_back(work, rank);
        for (auto& thread : threads) thread.join();
        EXPECT_EQ(wrong, 0) << name_of(policy);
        if (policy == WaitPolicy::spin)
            EXPECT_EQ(sleeps, 0u);
        else
            EXPECT_GT(sleeps, 0u);
    }
}

}  // namespace
}  // namespace thalweg
