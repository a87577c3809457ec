// The problems and choices that the tests of algorithms run over.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "oracle/oracle.h"
#include "schedule/validate.h"

namespace thalweg {

inline Choice choice_of(const std::string& text) {
    Choice choice;
    std::string why;
    EXPECT_EQ(parse_choice(Collective::bcast, text, choice, why), Status::ok) << text << ": " << why;
    return choice;
}

// Every row without parts: at its standard, with one parameter moved at a time, and with all of them moved at
// once.
inline std::vector<Choice> flat_choices() {
    std::vector<Choice> choices;
    const auto add = [&](const Choice& choice) {
        if (std::find(choices.begin(), choices.end(), choice) == choices.end()) choices.push_back(choice);
    };
    for (const Algorithm& row : algorithms()) {
        if (!row.parts.empty()) continue;
        add(standard_choice(row));
        Choice all = standard_choice(row);
        for (std::size_t i = 0; i < row.parameters.size(); ++i) {
            const Parameter& parameter = row.parameters[i];
            const bool bytes = parameter.name.ends_with("_bytes");
            for (std::uint64_t value :
                 bytes ? std::vector<std::uint64_t>{0, 3, 64} : std::vector<std::uint64_t>{1, 2, 3}) {
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

inline std::vector<Schedule> build_all(const Choice& choice, Problem problem, const Topology& topology) {
    return oracle::all_ranks(problem.size, [&](int rank) {
        problem.rank = rank;
        return build(choice, problem, topology);
    });
}

inline std::string text_of(const Choice& choice, const Problem& problem) {
    return to_text(choice) + " p=" + std::to_string(problem.size) + " root=" + std::to_string(problem.root) +
           " bytes=" + std::to_string(problem.bytes);
}

// Proves the schedules, compares them with the claim, and runs them `seeds` times in random orders.
inline void check(const Choice& choice, const Problem& problem, const Topology& topology, int seeds) {
    SCOPED_TRACE(text_of(choice, problem));
    const std::string_view refused = refuse(choice, problem, topology);
    ASSERT_EQ(refused, "");
    const std::vector<Schedule> schedules = build_all(choice, problem, topology);
    const Verdict verdict = validate(schedules, oracle::contracts_for(Collective::bcast, problem));
    ASSERT_EQ(verdict.status, Status::ok) << verdict.why;
    const Claim claimed = claim(choice, problem, topology);
    ASSERT_EQ(verdict.messages, claimed.messages);
    ASSERT_EQ(verdict.bytes, claimed.bytes);
    ASSERT_EQ(verdict.redundant_bytes, claimed.redundant_bytes);
    if (choice.parts.empty()) {
        ASSERT_EQ(verdict.rounds, claimed.rounds);
    } else if (claimed.redundant_bytes == 0) {
        ASSERT_LE(verdict.rounds, claimed.rounds);
    }
    for (const Schedule& schedule : schedules)
        for (const Step& step : schedule.steps())
            if (is_message(step.kind)) {
                ASSERT_NE(step.source.bytes + step.target.bytes, 0u) << "a message without bytes";
                ASSERT_LT(step.message, max_messages_per_pair);
            }
    for (int seed = 0; seed < seeds; ++seed)
        ASSERT_EQ(oracle::run(Collective::bcast, problem, schedules, static_cast<std::uint64_t>(seed)), "");
}

// 0, 1, fewer than p, p, p and one, primes, and the edges of chunks.
inline std::vector<std::uint64_t> sizes_for(int p) {
    const auto n = static_cast<std::uint64_t>(p);
    std::set<std::uint64_t> sizes = {0, 1, n - 1, n, n + 1, 64, 131};
    return {sizes.begin(), sizes.end()};
}

}  // namespace thalweg
