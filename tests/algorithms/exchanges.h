// Groups whose pairs exchange different amounts, for the tests of alltoallvs.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "algorithms/cases.h"
#include "algorithms/exchange.h"

namespace thalweg {

// What every rank of a group exchanges, each with its own memory.
struct Group {
    std::vector<Exchange> exchanges;
    std::vector<Problem> problems;

    Group(int size, std::uint64_t mean) : exchanges(static_cast<std::size_t>(size)) {
        for (int rank = 0; rank < size; ++rank) {
            Problem problem;
            problem.rank = rank;
            problem.size = size;
            problem.bytes = mean;
            problem.exchange = &exchanges[static_cast<std::size_t>(rank)];
            problems.push_back(problem);
        }
    }
    Group(const Group&) = delete;
    Exchange& of(int rank) { return exchanges[static_cast<std::size_t>(rank)]; }

    // What node_leader has its leaders know: bytes, or the edges, each with a slot of `slot_bytes`.
    void inform(const Topology& topology, std::uint64_t slot_bytes = 0) {
        for (Exchange& exchange : exchanges) {
            exchange.hosts_informed = true;
            exchange.slot_bytes = slot_bytes;
            exchange.empty_travel = slot_bytes != 0;
        }
        std::map<std::pair<int, int>, std::uint64_t> pairs;
        for (const Problem& problem : problems)
            for (const Parcel& parcel : problem.exchange->outgoing)
                if (topology.node_of(problem.rank) != topology.node_of(parcel.peer))
                    pairs[{problem.rank, parcel.peer}] += slot_bytes != 0 ? slot_bytes : parcel.bytes;
        for (const auto& [pair, bytes] : pairs)
            for (int rank : {pair.first, pair.second})
                if (bytes != 0)
                    of(topology.ranks_on(topology.node_of(rank)).front())
                        .crossing.push_back({pair.first, pair.second, bytes});
    }
};

// Of every pair `most` messages at most, in a random order of peers, with gaps; a pair has any with chance
// 1/`sparse`, and some of those have no bytes.
inline void randomise(Group& group, oracle::Random& random, std::uint64_t sparse, std::uint64_t most,
                      std::uint64_t largest) {
    const int size = static_cast<int>(group.problems.size());
    for (int from = 0; from < size; ++from)
        for (int to = 0; to < size; ++to) {
            if (random.below(sparse) != 0) continue;
            for (std::uint64_t k = 1 + random.below(most); k != 0; --k) {
                const std::uint64_t bytes = random.below(4) == 0 ? 0 : random.below(largest + 1);
                group.of(from).outgoing.push_back({to, 0, bytes});
                group.of(to).incoming.push_back({from, 0, bytes});
            }
        }
    for (Exchange& exchange : group.exchanges)
        for (std::vector<Parcel>* list : {&exchange.outgoing, &exchange.incoming}) {
            std::stable_sort(list->begin(), list->end(), [&](const Parcel& a, const Parcel& b) {
                return oracle::Random::mix(static_cast<std::uint64_t>(a.peer)) <
                       oracle::Random::mix(static_cast<std::uint64_t>(b.peer));
            });
            std::uint64_t at = random.below(5);
            for (Parcel& parcel : *list) {
                parcel.offset = at;
                at += parcel.bytes + random.below(3) / 2;
            }
        }
}

// What has no bytes lies within the memory where it travels, too.
inline void place_empty(Group& group) {
    for (Exchange& exchange : group.exchanges)
        for (std::vector<Parcel>* list : {&exchange.outgoing, &exchange.incoming})
            for (Parcel& parcel : *list)
                if (parcel.bytes == 0) parcel.offset = 0;
}

inline void check_group(const Choice& choice, const Group& group, const Topology& topology, int seeds) {
    SCOPED_TRACE(to_text(choice) + " on " + topology.to_text());
    std::vector<Schedule> schedules;
    Claim sum;
    for (const Problem& problem : group.problems) {
        ASSERT_EQ(refuse(choice, problem, topology), "");
        schedules.push_back(build(choice, problem, topology));
        const Claim own = claim(choice, problem, topology);
        sum.messages += own.messages;
        sum.bytes += own.bytes;
        sum.signals += own.signals;
        sum.rounds = std::max(sum.rounds, own.rounds);
    }
    std::vector<Contract> contracts = oracle::contracts_for(Collective::alltoallv, group.problems);
    for (std::size_t rank = 0; rank < contracts.size(); ++rank)
        if (const std::uint64_t slot = group.exchanges[rank].slot_bytes; slot != 0)
            contracts[rank].defined.push_back({Buffer::scratch, 0, slot});  // what fills slots up
    const Verdict verdict = validate(schedules, contracts);
    ASSERT_EQ(verdict.status, Status::ok) << verdict.why;
    ASSERT_EQ(verdict.messages, sum.messages);
    ASSERT_EQ(verdict.bytes, sum.bytes);
    ASSERT_EQ(verdict.redundant_bytes, 0u);
    ASSERT_EQ(verdict.signals, sum.signals);
    if (choice.algorithm->name != "pairwise") {
        ASSERT_LE(verdict.rounds, sum.rounds);
    }
    for (int seed = 0; seed < seeds; ++seed)
        ASSERT_EQ(
            oracle::run(Collective::alltoallv, group.problems, schedules, static_cast<std::uint64_t>(seed)),
            "");
}

}  // namespace thalweg
