// The problems and choices that the tests of algorithms run over.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "cpu_time.h"
#include "oracle/oracle.h"
#include "schedule/validate.h"

namespace thalweg {

inline Choice choice_of(const std::string& text, Collective collective = Collective::bcast) {
    Choice choice;
    std::string why;
    EXPECT_EQ(parse_choice(collective, text, choice, why), Status::ok) << text << ": " << why;
    return choice;
}

// Every row of the collective without parts: at its standard, with one parameter moved at a time, and with
// all of them moved at once.
inline std::vector<Choice> flat_choices(Collective collective) {
    std::vector<Choice> choices;
    const auto add = [&](const Choice& choice) {
        if (std::find(choices.begin(), choices.end(), choice) == choices.end()) choices.push_back(choice);
    };
    for (const Algorithm& row : algorithms()) {
        if (row.collective != collective || !row.parts.empty()) continue;
        add(standard_choice(row));
        Choice all = standard_choice(row);
        for (std::size_t i = 0; i < row.parameters.size(); ++i) {
            const Parameter& parameter = row.parameters[i];
            const bool bytes = parameter.name.ends_with("_bytes");
            for (std::uint64_t value :
                 bytes ? std::vector<std::uint64_t>{0, 3, 64} : std::vector<std::uint64_t>{0, 1, 2, 3}) {
                if (value < parameter.minimum || value > parameter.maximum) continue;
                Choice choice = standard_choice(row);
                choice.values[i] = value;
                add(choice);
            }
            all.values[i] = bytes ? 16 : 5;
        }
        add(all);
    }
    return choices;
}

// A choice's text as the name of a test.
inline std::string test_name(const Choice& choice) {
    std::string name = to_text(choice);
    for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return name;
}

inline Topology topology_of(const std::string& text) {
    Topology topology;
    std::string why;
    EXPECT_EQ(Topology::from_text(text, topology, why), Status::ok) << text << ": " << why;
    return topology;
}

inline Topology hosts_of_one(int p) {
    std::vector<std::uint64_t> key(static_cast<std::size_t>(p));
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = i;
    return Topology::from_table(key);
}

// Ranks fall on hosts at random; some hosts are full, some nearly empty.
inline Topology random_topology(oracle::Random& random, int size) {
    const std::uint64_t hosts = 1 + random.below(static_cast<std::uint64_t>(size));
    std::vector<std::uint64_t> host(static_cast<std::size_t>(size));
    for (auto& key : host) key = random.below(2) ? random.below(hosts) : random.below(1 + hosts / 3);
    return Topology::from_table(host);
}

// Blocks of 0 … 2 * mean bytes, some empty, some alike; `mess`: not in the order of ranks, with gaps.
inline std::vector<Block> random_blocks(oracle::Random& random, int size, std::uint64_t mean, bool mess) {
    std::vector<Block> blocks(static_cast<std::size_t>(size));
    std::vector<std::size_t> order(blocks.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::size_t i = order.size(); mess && i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (Block& block : blocks) block.bytes = random.below(3) == 0 ? 0 : random.below(2 * mean + 1);
    std::uint64_t at = random.below(5);
    for (std::size_t i : order) {
        if (mess) at += random.below(3);
        blocks[i].offset = at;
        at += blocks[i].bytes;
    }
    return blocks;
}

inline std::uint64_t mean_bytes(const std::vector<Block>& blocks) {
    std::uint64_t total = 0;
    for (const Block& block : blocks) total += block.bytes;
    return (total + blocks.size() - 1) / blocks.size();
}

inline std::vector<Schedule> build_all(const Choice& choice, Problem problem, const Topology& topology) {
    return oracle::all_ranks(problem.size, [&](int rank) {
        problem.rank = rank;
        return build(choice, problem, topology);
    });
}

inline std::string text_of(const Choice& choice, const Problem& problem) {
    return to_text(choice) + " p=" + std::to_string(problem.size) + " root=" + std::to_string(problem.root) +
           " bytes=" + std::to_string(problem.bytes) + " element=" + std::to_string(problem.element_bytes) +
           (problem.blocks.empty() ? "" : " ragged") + (problem.in_place ? " in place" : "") +
           (problem.commutative ? "" : " in rank order");
}

// Seconds of the processor that building one rank's part takes, the best of several times.
inline double building_seconds(const Choice& choice, const Problem& problem) {
    double best = 1e9;
    for (int repeat = 0; repeat < 20; ++repeat) {
        const double start = test::thread_cpu_seconds();
        const Schedule schedule = build(choice, problem, Topology{});
        best = std::min(best, test::thread_cpu_seconds() - start);
    }
    return best;
}

// Proves the schedules, compares them with the claim, and runs them `seeds` times in random orders.
inline void check(const Choice& choice, const Problem& problem, const Topology& topology, int seeds) {
    SCOPED_TRACE(text_of(choice, problem));
    const std::string_view refused = refuse(choice, problem, topology);
    ASSERT_EQ(refused, "");
    const std::vector<Schedule> schedules = build_all(choice, problem, topology);
    const Verdict verdict = validate(schedules, oracle::contracts_for(choice.algorithm->collective, problem));
    ASSERT_EQ(verdict.status, Status::ok) << verdict.why;
    const Claim claimed = claim(choice, problem, topology);
    ASSERT_EQ(verdict.messages, claimed.messages);
    ASSERT_EQ(verdict.bytes, claimed.bytes);
    ASSERT_EQ(verdict.redundant_bytes, claimed.redundant_bytes);
    ASSERT_EQ(verdict.signals, claimed.signals);
    const bool all_contribute = std::none_of(problem.blocks.begin(), problem.blocks.end(),
                                             [](const Block& block) { return block.bytes == 0; });
    const bool exact =
        all_contribute && !(problem.in_place && choice.algorithm->collective == Collective::allreduce);
    if (choice.parts.empty() && exact) {
        ASSERT_EQ(verdict.rounds, claimed.rounds);
    } else if (claimed.redundant_bytes == 0) {
        ASSERT_LE(verdict.rounds, claimed.rounds);
    }
    for (const Schedule& schedule : schedules)
        for (const Step& step : schedule.steps())
            if (is_message(step.kind)) {
                ASSERT_TRUE(claimed.signals != 0 || step.source.bytes + step.target.bytes != 0)
                    << "a message without bytes";
                ASSERT_LT(step.message, max_messages_per_pair);
            }
    for (int seed = 0; seed < seeds; ++seed)
        ASSERT_EQ(
            oracle::run(choice.algorithm->collective, problem, schedules, static_cast<std::uint64_t>(seed)),
            "");
}

// 0, 1, fewer than p, p, p and one, primes, and the edges of chunks.
inline std::vector<std::uint64_t> sizes_for(int p) {
    const auto n = static_cast<std::uint64_t>(p);
    std::set<std::uint64_t> sizes = {0, 1, n - 1, n, n + 1, 64, 131};
    return {sizes.begin(), sizes.end()};
}

}  // namespace thalweg
