#include "algorithms/most_steps.h"

#include <algorithm>
#include <iterator>
#include <string_view>

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

// Broadcasts down a tree (algorithms/patterns/tree.h).
bool is_tree(const Choice& choice) {
    constexpr std::string_view trees[] = {"linear", "binomial", "knomial", "kary", "chain"};
    return std::find(std::begin(trees), std::end(trees), choice.algorithm->name) != std::end(trees);
}

// In a tree a rank receives every piece once and sends it `degree` times, however deep the tree is. What
// scatters has few large pieces and many rounds: at most a send and a receive in each. The quarter is for the
// rounds in which a pipeline fills.
std::uint64_t of_one_level(const Choice& choice, const Price& price, const Problem& problem) {
    const std::uint64_t of_pieces = pieces_of(price, problem) * (price.degree + 1);
    const std::uint64_t most = is_tree(choice) || of_pieces > price.rounds ? of_pieces : 2 * price.rounds;
    return most + most / 4 + 64;
}

Price price_of(const Choice& choice, const Problem& problem) {
    return choice.algorithm->price(problem, Topology{}, choice);
}

// What a rank may do of one piece of a broadcast inside hosts.
std::uint64_t of_a_hand_out(const Choice& choice, const Problem& piece) {
    return of_one_level(choice, price_of(choice, piece), piece) - 64;
}

// Messages that a rank sends in an allgather or an allreduce of one level, and as many that it receives. The
// price is that of a mean block. Where blocks differ, a smaller piece may be left over of each, and a large
// one may be what a rank sends over every port.
std::uint64_t messages_of(const Price& price, const Problem& problem, bool blocks_differ) {
    const std::uint64_t messages = price.rounds * std::max<std::uint64_t>(price.ports, 1);
    if (!blocks_differ) return messages;
    const auto ranks = static_cast<std::uint64_t>(problem.size);
    const std::uint64_t pieces = messages + messages / std::max<std::uint64_t>(ranks - 1, 1) + ranks;
    return (pieces * (std::max<std::uint64_t>(price.ports, 1) + 1) + 1) / 2;
}

// Every message of an allreduce may be combined; blocks that are not in place are copied one by one.
std::uint64_t of_messages(std::uint64_t messages, Collective collective, int ranks) {
    return (collective == Collective::allreduce ? 3 : 2) * messages + static_cast<std::uint64_t>(ranks) + 64;
}

enum : std::size_t { intra, inter };

// algorithms/patterns/hosts.cpp: a host's ranks exchange their blocks, leaders those of hosts, and every
// piece that arrives, or at the end everything, is handed out inside.
std::uint64_t of_allgather_by_hosts(const Choice& choice, const Problem& problem, const Topology& topology) {
    const auto ranks = static_cast<std::uint64_t>(problem.size);
    const auto hosts = static_cast<std::uint64_t>(std::max(topology.nodes(), 1));
    const auto widest = static_cast<std::uint64_t>(std::max(topology.max_ranks_per_node(), 1));
    Problem leaders;
    leaders.size = topology.nodes();
    leaders.bytes = (ranks * problem.bytes + hosts - 1) / hosts;
    leaders.messages_per_pair = problem.messages_per_pair;
    const Price between = price_of(choice.parts[inter], leaders);
    const std::uint64_t messages =
        messages_of(between, leaders, !problem.blocks.empty() || ranks != hosts * widest);
    const std::uint64_t steps =
        of_messages(messages, Collective::allgather, problem.size) + 2 * widest + hosts;
    if (widest == 1) return steps;
    const bool at_the_end = choice.algorithm->name == "hierarchical";
    Problem piece;
    piece.size = topology.max_ranks_per_node();
    piece.bytes = at_the_end ? ranks * problem.bytes : std::min(between.piece_bytes, ranks * problem.bytes);
    piece.messages_per_pair = (problem.messages_per_pair - 1) / (2 * hosts);
    return steps + (at_the_end ? 1 : messages) * of_a_hand_out(choice.parts[intra], piece);
}

// algorithms/allreduce/node_leader.cpp: as many leaders per host as the smallest has ranks combine their
// shares of the host's vectors, reduce them with their peers, and hand every piece out that is final.
std::uint64_t of_allreduce_by_hosts(const Choice& choice, const Problem& problem, const Topology& topology) {
    enum : std::size_t { leaders, chunk_bytes };
    const auto widest = static_cast<std::uint64_t>(std::max(topology.max_ranks_per_node(), 1));
    const auto fewest = static_cast<std::uint64_t>(std::max(topology.min_ranks_per_node(), 1));
    const std::uint64_t asked = choice.values[leaders], element = problem.element_bytes;
    const std::uint64_t led = asked == 0 ? fewest : std::min(asked, fewest);
    const std::uint64_t share = (problem.bytes / element / led + 1) * element;  // of the largest
    const std::uint64_t chunk = std::max(choice.values[chunk_bytes] / element * element, element);
    const std::uint64_t most = std::max<std::uint64_t>(problem.messages_per_pair / 2, 1);
    const std::uint64_t pieces =
        choice.values[chunk_bytes] == 0 ? 1 : std::min((share + chunk - 1) / chunk, most + 1);
    const std::uint64_t most_pieces = std::max<std::uint64_t>(problem.messages_per_pair / (2 * widest), 1);
    Problem peers;
    peers.size = topology.nodes();
    peers.bytes = share;
    peers.element_bytes = element;
    peers.messages_per_pair = most_pieces;
    const Price between = price_of(choice.parts[inter], peers);
    const std::uint64_t messages = messages_of(between, peers, false);
    const std::uint64_t steps = of_messages(messages, Collective::allreduce, problem.size);
    if (widest == 1) return steps;
    Problem piece;
    piece.size = topology.max_ranks_per_node();
    piece.bytes = between.piece_bytes == 0 ? share : std::min(between.piece_bytes, share);
    // The first half of the messages is combined; what comes of that is final, and so is what comes after.
    const std::uint64_t others = static_cast<std::uint64_t>(std::max(topology.nodes() - 1, 1));
    const std::uint64_t final_pieces = messages / 2 + messages / (2 * others) + 2;
    piece.messages_per_pair = problem.messages_per_pair / 2 / most_pieces;
    const Choice& inside = choice.parts[intra];
    const std::uint64_t hand_out = of_a_hand_out(inside, piece);
    // Whoever leads hands out its own share alone, and where it does so to everybody itself, what the other
    // leaders have is but received.
    const std::uint64_t of_others = inside.algorithm->name == "linear" ? 1 : hand_out;
    return steps + (2 * widest + led) * pieces + final_pieces * (hand_out + (led - 1) * of_others);
}

}  // namespace

std::uint64_t most_steps(const Choice& choice, const Problem& problem, const Topology& topology) {
    const Collective collective = choice.algorithm->collective;
    if (collective == Collective::allgather || collective == Collective::allreduce) {
        Problem alike = problem;
        alike.blocks = {};
        if (choice.parts.empty())
            return of_messages(messages_of(price_of(choice, alike), alike, !problem.blocks.empty()),
                               collective, problem.size);
        return collective == Collective::allgather ? of_allgather_by_hosts(choice, problem, topology)
                                                   : of_allreduce_by_hosts(choice, problem, topology);
    }
    if (choice.parts.empty()) return of_one_level(choice, price_of(choice, problem), problem);
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
    const std::uint64_t steps = of_one_level(between, outer, leaders);
    if (widest == 1) return steps;
    const std::uint64_t pieces = pieces_of(outer, leaders);
    const std::uint64_t arrivals =
        std::min<std::uint64_t>(std::max(pieces, outer.rounds + 1), leaders.messages_per_pair);
    Problem local;
    local.size = topology.max_ranks_per_node();
    local.bytes = pieces == 1 ? problem.bytes : std::max(outer.piece_bytes, problem.bytes / pieces + 1);
    local.messages_per_pair = problem.messages_per_pair / leaders.messages_per_pair;
    return steps + arrivals * (of_one_level(inside, price_of(inside, local), local) - 64);
}

}  // namespace thalweg
