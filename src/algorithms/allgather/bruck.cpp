// Every rank fetches from the ranks after it what they hold; what it holds grows by a factor of k+1.
//
//     size 5, k = 1:  round 1:  v gets [v+1]                   from v+1        (blocks counted modulo 5)
//                     round 2:  v gets [v+2, v+3]              from v+2
//                     round 3:  v gets [v+4]                   from v+4: only what is missing
//
// Blocks are received where they belong: a run that goes past the last block comes in two messages, and
// nothing is rotated at the end. Rounds: ⌈log_(k+1) p⌉; the longest chain is one shorter where the last round
// brings few blocks. Bytes: a rank receives every block once. J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D.
// Weathersby: Efficient Algorithms for All-to-All Communications in Multiport Message-Passing Systems, 1997.
#include "algorithms/patterns/contributions.h"
#include "algorithms/patterns/digits.h"

namespace thalweg::allgather::bruck {

enum : std::size_t { ports };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

Schedule build(const Problem& problem, const Topology&, const Choice& choice) {
    Builder builder(problem.rank, problem.size);
    patterns::Gathered memory(builder, problem);
    const int p = problem.size, v = problem.rank;
    patterns::each_digit(choice.values[ports], p, [&](int width, int i) {
        const int distance = i * width, count = std::min(width, p - distance), from = (v + distance) % p;
        memory.send((v - distance + p) % p, v, count);
        memory.recv(from, from, count);
    });
    memory.finish();
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology&, const Choice& choice) {
    const patterns::Contributions blocks(problem);
    if (problem.size == 1 || blocks.total() == 0) return {};
    const int p = problem.size;
    Claim claim{0, 0, patterns::all_bytes(blocks)};
    patterns::each_digit(choice.values[ports], p, [&](int width, int i) {
        const int count = std::min(width, p - i * width);
        // A run of so many blocks is together after as many rounds: one of the own block alone, after none.
        const std::uint64_t before =
            patterns::ceil_log(choice.values[ports] + 1, static_cast<std::uint64_t>(count));
        claim.rounds = std::max(claim.rounds, before + 1);
        for (int v = 0; v < p; ++v) claim.messages += blocks.parts(v, count);
    });
    return claim;
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto p = static_cast<std::uint64_t>(problem.size), k = std::min(choice.values[ports], p - 1);
    Price price{patterns::ceil_log(k + 1, p), 0, 0, 1};
    // A round takes as long as its longest message, also where the last one has none for some of the ports.
    for (std::uint64_t width = 1; width < p; width *= k + 1) {
        const std::uint64_t longest = std::min(width, p - width) * problem.bytes;
        price.bytes += k * longest;
        price.piece_bytes = std::max(price.piece_bytes, longest);
    }
    price.bytes += price.rounds * patterns::skew_bytes(problem);  // a large block is sent in every round
    price.ports = k;
    return price;
}

}  // namespace thalweg::allgather::bruck
