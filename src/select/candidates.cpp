#include "select/candidates.h"

#include <algorithm>
#include <string_view>

#include "model/cost.h"

namespace thalweg {
namespace {

// Below this a piece costs more in headers, short segments and polls than its shorter way saves: chains of 3,
// 4 and 6 KiB were never faster than one of 8 to 12 KiB, from 64 KiB to 1 MiB over TCP on 4 hosts.
constexpr std::uint64_t smallest_chunk = 8 << 10;
constexpr std::uint64_t most_pieces = 4096;      // of one message
constexpr std::uint64_t most_played = 20000;     // messages of the whole group, and ranks
constexpr std::uint64_t most_counted = 1 << 18;  // messages between hosts that a claim is counted from

// The algorithms that are looked at, in the order of their robustness: between hosts, and broadcasts that
// hand out inside hosts.
std::vector<std::string_view> between_hosts(Collective collective) {
    switch (collective) {
        case Collective::bcast:
            return {"chain", "circulant", "binomial", "scatter_ring_trimmed"};
        case Collective::allgather:
            return {"ring", "kport_ring", "neighbour_exchange", "spread", "bruck", "standard_exchange"};
        case Collective::allreduce:
            return {"ring", "rabenseifner", "recursive_doubling"};
        case Collective::barrier:
            return {"dissemination"};
        case Collective::alltoallv:
            return {"spread", "node_leader", "pairwise"};
    }
    return {};
}
constexpr std::string_view inside_hosts[] = {"linear", "binomial", "chain"};

std::uint64_t* find_value(Choice& choice, std::string_view parameter) {
    const auto& parameters = choice.algorithm->parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (parameters[i].name == parameter) return &choice.values[i];
    return nullptr;
}
std::uint64_t* chunk_of(Choice& choice) { return find_value(choice, "chunk_bytes"); }
std::uint64_t value_of(Choice choice, std::string_view parameter) {
    const std::uint64_t* const value = find_value(choice, parameter);
    return value == nullptr ? 0 : *value;
}

// Pieces of equal size, in round figures.
std::uint64_t even_chunk(std::uint64_t bytes, std::uint64_t pieces) {
    const std::uint64_t chunk = (bytes + pieces - 1) / pieces;
    const std::uint64_t grain = chunk >= 8192 ? 1024 : 64;
    return (chunk + grain - 1) / grain * grain;
}

// Sets the chunk that predict() finds cheapest, of `tuned`, which is `whole` or a part of it. A pipeline's
// time falls, then rises with the number of pieces: numbers are tried in steps of about √2, and round chunks;
// the larger chunk of equals wins.
Picoseconds tune(Choice& whole, Choice& tuned, const Problem& problem, const Topology& topology,
                 const Machine& machine) {
    std::uint64_t* chunk = chunk_of(tuned);
    if (chunk == nullptr) return predict(whole, problem, topology, machine);
    Picoseconds best = ~Picoseconds{0};
    std::uint64_t best_chunk = 0;
    const auto attempt = [&](std::uint64_t bytes) {
        *chunk = bytes;
        const Picoseconds time = predict(whole, problem, topology, machine);
        if (time < best || (time == best && bytes > best_chunk)) best = time, best_chunk = bytes;
    };
    const std::uint64_t limit =
        std::min(most_pieces, std::max<std::uint64_t>(problem.bytes / smallest_chunk, 1));
    for (std::uint64_t pieces = 1; pieces <= limit; pieces += std::max<std::uint64_t>(pieces * 2 / 5, 1))
        attempt(even_chunk(problem.bytes, pieces));
    const auto doubled = [&problem](std::uint64_t bytes) {
        return bytes > problem.bytes / 2 ? problem.bytes : 2 * bytes;
    };
    for (std::uint64_t bytes = smallest_chunk; bytes < problem.bytes; bytes = doubled(bytes))
        if (problem.bytes / bytes <= most_pieces) attempt(bytes);
    *chunk = best_chunk >= problem.bytes ? 0 : best_chunk;
    // Blocks of a whole host are larger than what one rank contributes: not cutting them at all may cost
    // more.
    if (*chunk == 0 && predict(whole, problem, topology, machine) > best) *chunk = best_chunk;
    return best;
}

Choice standard(Collective collective, std::string_view name) {
    return standard_choice(*find_algorithm(collective, name));
}

std::vector<Candidate> tuned_candidates(Collective collective, const Problem& problem,
                                        const Topology& topology, const Machine& machine) {
    std::vector<Candidate> result;
    const auto add = [&](Choice choice, bool combined) {
        Candidate candidate;
        Choice& outer = combined ? choice.parts.back() : choice;
        if (std::uint64_t* ports = find_value(outer, "ports"))
            *ports = std::max<std::uint64_t>(machine.inter.ports, 1);
        candidate.refused = refuse(choice, problem, topology);
        if (!candidate.refused.empty()) return;
        // What an exchange gains from pieces is the time of handshakes, of which the model knows nothing: the
        // algorithm's own size of pieces is what was measured.
        candidate.predicted = collective == Collective::alltoallv
                                  ? predict(choice, problem, topology, machine)
                                  : tune(choice, outer, problem, topology, machine);
        candidate.choice = std::move(choice);
        result.push_back(std::move(candidate));
    };
    for (std::string_view outer : between_hosts(collective)) {
        if (topology.max_ranks_per_node() == 1 || collective == Collective::barrier ||
            collective == Collective::alltoallv) {
            add(standard(collective, outer), false);
            continue;
        }
        for (std::string_view inner : inside_hosts) {
            Choice choice = standard(collective, "node_leader");
            choice.parts = {standard(Collective::bcast, inner), standard(collective, outer)};
            // Pieces arrive in the outer algorithm's chunks; cutting them again inside a host gains nothing.
            if (std::uint64_t* chunk = chunk_of(choice.parts.front())) *chunk = 0;
            add(choice, true);
            if (std::uint64_t* leaders = find_value(choice, "leaders")) *leaders = 1, add(choice, true);
        }
    }
    // Leaders of very many hosts have not the numbers for an allgather's messages: ranks have, of some.
    if (result.empty())
        for (std::string_view outer : between_hosts(collective)) add(standard(collective, outer), false);
    return result;
}

// Whether what the whole group does is known at once. The combinators count theirs in the schedules of the
// leaders of all hosts.
bool quickly_counted(const Choice& choice, const Problem& problem, const Topology& topology) {
    if (choice.parts.empty()) return true;
    Problem between;
    between.size = topology.nodes();
    between.bytes = problem.bytes;
    const auto ranks = static_cast<std::uint64_t>(topology.max_ranks_per_node());
    std::uint64_t leaders = 1;  // of a host, each with messages of its own
    if (choice.algorithm->collective == Collective::allgather) between.bytes *= ranks;
    if (choice.algorithm->collective == Collective::allreduce)
        if (leaders = value_of(choice, "leaders"); leaders == 0) leaders = ranks;
    return leaders * claim(choice.parts.back(), between, Topology{}).messages <= most_counted;
}

}  // namespace

// The candidates stand in the order of their robustness: what a chain loses to a late rank it makes up for,
// while rounds that wait for one another add every delay up. So a later one must be cheaper by a quarter: on
// 8 hosts whose ranks sleep while they wait, the circulant broadcast of 256 KiB was predicted 12 % cheaper
// than the chain and took 16 % longer. What a full host's memory takes longer than the network does not
// count: every candidate pays it.
RobustCandidate robust_candidate(Collective collective, const Problem& problem, const Topology& topology,
                                 const Machine& machine) {
    const std::vector<Candidate> candidates = tuned_candidates(collective, problem, topology, machine);
    const Picoseconds copies = copy_limit(collective, problem.bytes, topology, machine);
    const Picoseconds wire = wire_limit(collective, problem.bytes, topology, machine);
    const Picoseconds paid = copies > wire ? copies - wire : 0;
    const Candidate* best = &candidates.front();
    const Candidate* cheapest = best;
    for (const Candidate& candidate : candidates) {
        const Picoseconds own = best->predicted - std::min(paid, best->predicted);
        if (candidate.predicted < best->predicted - own / 4) best = &candidate;
        if (candidate.predicted < cheapest->predicted) cheapest = &candidate;
    }
    RobustCandidate taken{*best, std::nullopt};
    if (cheapest->predicted < best->predicted) taken.cheapest = cheapest->choice;
    return taken;
}

std::vector<Candidate> all_candidates(Collective collective, const Problem& problem, const Topology& topology,
                                      const Machine& machine, const std::optional<Choice>& also) {
    std::vector<Candidate> result;
    if (topology.nodes() > 1 && problem.bytes > 0)
        result = tuned_candidates(collective, problem, topology, machine);
    const auto add = [&](const Choice& choice) {
        if (std::any_of(result.begin(), result.end(), [&](const Candidate& c) { return c.choice == choice; }))
            return;
        Candidate candidate;
        candidate.choice = choice;
        candidate.refused = refuse(choice, problem, topology);
        if (candidate.refused.empty()) candidate.predicted = predict(choice, problem, topology, machine);
        result.push_back(std::move(candidate));
    };
    for (const Algorithm& row : algorithms())
        if (row.collective == collective) add(standard_choice(row));
    if (also) add(*also);

    for (Candidate& candidate : result) {
        if (!candidate.refused.empty()) continue;
        if (!quickly_counted(candidate.choice, problem, topology)) continue;
        candidate.claim = claim(candidate.choice, problem, topology);
        const std::uint64_t messages = candidate.claim->messages + candidate.claim->signals;
        if (std::max<std::uint64_t>(messages, topology.size()) > most_played) continue;
        std::vector<Schedule> schedules;
        Problem of_rank = problem;
        for (of_rank.rank = 0; of_rank.rank < problem.size; ++of_rank.rank)
            schedules.push_back(build(candidate.choice, of_rank, topology));
        candidate.evaluated = play(schedules, topology, machine);
    }
    std::stable_sort(result.begin(), result.end(), [](const Candidate& a, const Candidate& b) {
        return a.refused.empty() != b.refused.empty() ? a.refused.empty() : a.predicted < b.predicted;
    });
    return result;
}

}  // namespace thalweg
