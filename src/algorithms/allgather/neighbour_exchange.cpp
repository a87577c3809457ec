// Ranks exchange with their left and their right neighbour in turn, two blocks at a time.
//
//     size 6, round 1:  0 ⇄ 1   2 ⇄ 3   4 ⇄ 5        one block each
//             round 2:  1 ⇄ 2   3 ⇄ 4   5 ⇄ 0        both blocks of round 1
//             round 3:  0 ⇄ 1   2 ⇄ 3   4 ⇄ 5        the two that came in round 2; and so on
//
// Rounds: p/2, half of the ring's, for even p. Bytes: a rank receives every block once. J. Chen, L. Zhang, Y.
// Zhang, W. Yuan: Performance Evaluation of Allgather Algorithms on Terascale Linux Cluster with Fast
// Ethernet, 2005.
#include "algorithms/patterns/contributions.h"

namespace thalweg::allgather::neighbour_exchange {

std::string_view refuse(const Problem& problem, const Topology&, const Choice&) {
    if (problem.size % 2 != 0 && problem.size != 1) return "it needs an even number of ranks";
    const bool too_many = static_cast<std::uint64_t>(problem.size) / 4 + 1 > problem.messages_per_pair;
    return too_many ? "so many ranks exceed the messages that two ranks may exchange" : "";
}

Schedule build(const Problem& problem, const Topology&, const Choice&) {
    Builder builder(problem.rank, problem.size);
    patterns::Gathered memory(builder, problem);
    const int p = problem.size, v = problem.rank;
    const int own_pair = v / 2 * 2, direction = v % 2 == 0 ? 1 : -1;  // to the partner of round 1
    const auto wrapped = [p](int place) { return (place % p + p) % p; };
    int passed = own_pair;  // the pair to send next
    for (int round = 1; round <= p / 2; ++round) {
        // Odd rounds are with the partner of round 1, even ones with the neighbour on the other side.
        const int peer = wrapped(v + (round % 2 == 1 ? direction : -direction));
        if (round == 1) {
            memory.send(peer, v, 1);
            memory.recv(peer, peer, 1);
            continue;
        }
        // Pairs arrive from both sides in turn, each from one pair farther than the last of its side.
        const int side = round % 2 == 0 ? -direction : direction;
        const int arriving = wrapped(own_pair + side * 2 * (round / 2));
        memory.send(peer, passed, 2);
        memory.recv(peer, arriving, 2);
        passed = arriving;
    }
    memory.finish();
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology&, const Choice&) {
    const patterns::Contributions blocks(problem);
    if (problem.size == 1 || blocks.total() == 0) return {};
    const auto p = static_cast<std::uint64_t>(problem.size);
    Claim claim{p / 2, static_cast<std::uint64_t>(blocks.not_empty()), patterns::all_bytes(blocks)};
    for (int pair = 0; pair < problem.size; pair += 2) claim.messages += (p - 2) * blocks.parts(pair, 2);
    return claim;
}

Price price(const Problem& problem, const Topology&, const Choice&) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto p = static_cast<std::uint64_t>(problem.size);
    return {p / 2, (p - 1) * problem.bytes + p / 2 * patterns::skew_bytes(problem),
            (p > 2 ? 2 : 1) * problem.bytes, 1};
}

}  // namespace thalweg::allgather::neighbour_exchange
