// One algorithm among one rank per host, another inside each host, piece by piece as pieces arrive.
//
//     inter = chain, intra = binomial, 3 hosts of 4 ranks, root 1:
//
//     host 0:  1 ─→ 0, 2, 3         the root is its host's leader, elsewhere the lowest rank is;
//              │                    a message crosses each link between hosts once
//     host 1:  4 ─→ 5, 6, 7
//              │                    when piece k of the chain arrives, the leader sends it to the next
//     host 2:  8 ─→ 9, 10, 11       host first, then to its own, while piece k+1 is on the wire
//
// The pieces inside a host are those in which the message reaches its leader, whatever `inter` is: the chunks
// of a chain, the blocks of a scatter. Its local ranks know them because they build their leader's part too.
//
// Rounds: those of inter, then intra for the last piece. Bytes: those of inter among the hosts; n (ranks - 1)
// inside each host. The idea is as old as clusters; with pieces flowing through both levels it is HAN's (X.
// Luo et al., HAN: a Hierarchical AutotuNed Collective Communication Framework, 2020).
#include "algorithms/patterns/arrivals.h"
#include "algorithms/patterns/group.h"
#include "algorithms/patterns/interleaved.h"
#include "algorithms/patterns/levels.h"
#include "schedule/builder.h"

namespace thalweg::bcast::node_leader {

enum : std::size_t { intra, inter };

namespace {

std::uint64_t most_pieces(const Problem& problem, const Topology& topology, const Choice& choice) {
    return patterns::most_pieces(choice.parts[intra], topology.max_ranks_per_node(),
                                 problem.messages_per_pair);
}

Problem inter_problem(const Problem& problem, const Topology& topology, const Choice& choice, int node) {
    Problem part = problem;
    part.rank = node;
    part.size = topology.nodes();
    part.root = topology.node_of(problem.root);
    part.messages_per_pair = most_pieces(problem, topology, choice);
    return part;
}

int leader_of(const Problem& problem, const Topology& topology, int node) {
    return topology.node_of(problem.root) == node ? problem.root : topology.ranks_on(node).front();
}

Problem intra_problem(const Problem& problem, const Topology& topology, const Choice& choice, int rank,
                      const Slice& piece) {
    const int node = topology.node_of(rank);
    Problem part;
    part.rank = topology.local_rank(rank);
    part.size = static_cast<int>(topology.ranks_on(node).size());
    part.root = topology.local_rank(leader_of(problem, topology, node));
    part.bytes = piece.bytes;
    part.offset = piece.offset;
    part.messages_per_pair = problem.messages_per_pair / most_pieces(problem, topology, choice);
    return part;
}

// The schedule of a node's leader among the leaders, and the pieces in which the message gets there.
struct Leader {
    Schedule schedule;
    std::vector<patterns::Arrival> pieces;

    Leader(const Problem& problem, const Topology& topology, const Choice& choice, int node)
        : schedule(thalweg::build(choice.parts[inter], inter_problem(problem, topology, choice, node),
                                  Topology{})),
          pieces(patterns::arrivals(schedule, {Buffer::out, problem.offset, problem.bytes},
                                    topology.node_of(problem.root) == node)) {}
};

}  // namespace

std::string_view refuse(const Problem& problem, const Topology& topology, const Choice& choice) {
    if (!choice.parts[intra].algorithm->parts.empty() || !choice.parts[inter].algorithm->parts.empty())
        return "node_leader cannot be a part of node_leader: there are two levels";
    if (topology.size() != problem.size) return "the topology describes another number of ranks";
    const std::string_view between =
        thalweg::refuse(choice.parts[inter], inter_problem(problem, topology, choice, 0), Topology{});
    if (!between.empty()) return between;
    Problem widest;  // a host with as many ranks as any
    widest.size = topology.max_ranks_per_node();
    widest.bytes = problem.bytes;
    widest.messages_per_pair = problem.messages_per_pair / most_pieces(problem, topology, choice);
    return thalweg::refuse(choice.parts[intra], widest, Topology{});
}

Schedule build(const Problem& problem, const Topology& topology, const Choice& choice) {
    const int node = topology.node_of(problem.rank);
    const bool leads = leader_of(problem, topology, node) == problem.rank;
    const Leader leader(problem, topology, choice, node);
    const std::span<const int> local = topology.ranks_on(node);

    Builder builder(problem.rank, problem.size);
    std::vector<int> leaders;
    for (int other = 0; leads && other < topology.nodes(); ++other)
        leaders.push_back(leader_of(problem, topology, other));
    patterns::Interleaved between(builder, leader.schedule, leaders);
    for (const patterns::Arrival& piece : leader.pieces) {
        if (leads) between.until(piece.steps);
        if (local.size() == 1) continue;
        const Problem part = intra_problem(problem, topology, choice, problem.rank, piece.slice);
        builder.append(thalweg::build(choice.parts[intra], part, Topology{}), local);
    }
    if (leads) between.rest();
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology& topology, const Choice& choice) {
    Claim total =
        thalweg::claim(choice.parts[inter], inter_problem(problem, topology, choice, 0), Topology{});
    std::uint64_t deepest = 0;
    for (int node = 0; node < topology.nodes(); ++node) {
        if (topology.ranks_on(node).size() == 1) continue;
        const Leader leader(problem, topology, choice, node);
        for (const patterns::Arrival& piece : leader.pieces) {
            const Problem part =
                intra_problem(problem, topology, choice, leader_of(problem, topology, node), piece.slice);
            const Claim inside = thalweg::claim(choice.parts[intra], part, Topology{});
            total.messages += inside.messages;
            total.bytes += inside.bytes;
            total.redundant_bytes += inside.redundant_bytes;
            deepest = std::max(deepest, inside.rounds);
        }
    }
    total.rounds += deepest;
    return total;
}

// As if both levels were alike and nothing overlapped; model/ knows the levels and prices them apart.
Price price(const Problem& problem, const Topology& topology, const Choice& choice) {
    const Problem between = inter_problem(problem, topology, choice, 0);
    Problem widest;
    widest.size = topology.max_ranks_per_node();
    widest.bytes = problem.bytes;
    const Price a = choice.parts[inter].algorithm->price(between, Topology{}, choice.parts[inter]);
    const Price b = choice.parts[intra].algorithm->price(widest, Topology{}, choice.parts[intra]);
    return {a.rounds + b.rounds, a.bytes + b.bytes, a.piece_bytes, a.degree + b.degree};
}

}  // namespace thalweg::bcast::node_leader
