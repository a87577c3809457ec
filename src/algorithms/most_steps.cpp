#include "algorithms/most_steps.h"

#include <algorithm>

#include "algorithms/patterns/levels.h"

namespace thalweg {
namespace {

// Of one rank alone there are no messages, and no pieces of them. Where they would be too many, pieces are
// larger than the price says.
std::uint64_t pieces_of(const Price& price, const Problem& problem) {
    if (price.piece_bytes == 0 || problem.bytes == 0) return 1;
    return std::min<std::uint64_t>((problem.bytes + price.piece_bytes - 1) / price.piece_bytes,
                                   problem.messages_per_pair);
}

// In a tree a rank receives every piece once and sends it `degree` times. What scatters has few large pieces
// and many rounds: at most a send and a receive in each. The quarter is for the rounds in which a pipeline
// fills.
std::uint64_t of_one_level(const Price& price, const Problem& problem) {
    const std::uint64_t of_pieces = pieces_of(price, problem) * (price.degree + 1);
    const std::uint64_t most = of_pieces > price.rounds ? of_pieces : 2 * price.rounds;
    return most + most / 4 + 64;
}

Price price_of(const Choice& choice, const Problem& problem) {
    return choice.algorithm->price(problem, Topology{}, choice);
}

}  // namespace

std::uint64_t most_steps(const Choice& choice, const Problem& problem, const Topology& topology) {
    if (choice.parts.empty()) return of_one_level(price_of(choice, problem), problem);
    // A combinator of one algorithm inside hosts, first, and one between them. The leader hands every piece
    // on that arrives: as many as the rounds, or as the pieces, and never more than leave enough messages for
    // each rank inside.
    const Choice& inside = choice.parts.front();
    const Choice& between = choice.parts.back();
    const auto widest = static_cast<std::uint64_t>(std::max(topology.max_ranks_per_node(), 1));
    Problem leaders;
    leaders.size = topology.nodes();
    leaders.bytes = problem.bytes;
    leaders.messages_per_pair =
        patterns::most_pieces(inside, topology.max_ranks_per_node(), problem.messages_per_pair);
    const Price outer = price_of(between, leaders);
    const std::uint64_t steps = of_one_level(outer, leaders);
    if (widest == 1) return steps;
    const std::uint64_t pieces = pieces_of(outer, leaders);
    const std::uint64_t arrivals =
        std::min<std::uint64_t>(std::max(pieces, outer.rounds + 1), leaders.messages_per_pair);
    Problem local;
    local.size = topology.max_ranks_per_node();
    local.bytes = pieces == 1 ? problem.bytes : std::max(outer.piece_bytes, problem.bytes / pieces + 1);
    local.messages_per_pair = problem.messages_per_pair / leaders.messages_per_pair;
    return steps + arrivals * (of_one_level(price_of(inside, local), local) - 64);
}

}  // namespace thalweg
