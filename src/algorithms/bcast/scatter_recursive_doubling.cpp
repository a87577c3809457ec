// Binomial scatter, then pairs at distance 1, 2, 4, … exchange all they have.
//
//     size 4, after the scatter:   0: 0…   1: 1   2: 2…   3: 3        (… is kept, and comes again)
//     distance 1:   0 ⇄ 1 (blocks 0, 1)    2 ⇄ 3 (2, 3)
//     distance 2:   0 ⇄ 2 (01, 23)         1 ⇄ 3 (01, 23)
//
// Where p is not a power of two, some places of a group of 2^i have no partner in the group beside it. As in
// MPICH, those that have one pass what they got on to those that have not, by halving the group: distance
// 2^(i-1), …, 2, 1.
//
//     size 6, distance 4:   0 ⇄ 4   1 ⇄ 5   2, 3 have no partner:   0 → 2   1 → 3
//
// Rounds: 2 log2 p for p a power of two, a few more otherwise. Bytes: a rank receives n (p-1)/p in the
// exchanges whatever it already holds. R. Thakur, R. Rabenseifner, W. Gropp, 2005.
#include <vector>

#include "algorithms/patterns/scatter.h"

namespace thalweg::bcast::scatter_recursive_doubling {

namespace {

// Place v's view of the exchange at distance `mask`.
struct Exchange {
    int partner = -1;    // -1: there is none
    Slice mine, theirs;  // all blocks of either group of `mask` places
    // Holes: the first `served` places of the lower group have a partner; the others get `theirs` from them.
    bool holes = false;
    int served = 0;
};

Exchange exchange_at(const patterns::Blocks& blocks, int v, int mask) {
    const int p = blocks.places;
    const int my_group = v & ~(mask - 1), their_group = my_group ^ mask;
    Exchange exchange;
    exchange.mine = blocks.range(my_group, mask);
    exchange.theirs = blocks.range(their_group, mask);
    if ((v ^ mask) < p) exchange.partner = v ^ mask;
    exchange.served = std::max(p - their_group, 0);
    exchange.holes = their_group > my_group && exchange.served > 0 && exchange.served < mask;
    return exchange;
}

// In a group whose first `served` of 2·half places have the bytes: who passes them to whom at distance
// `half`. After it, the first `served` places of both halves have them.
bool passes_on(int v, int half, int served) {
    const int at = v & (2 * half - 1);
    return at < half && at < served && at + half >= served;
}

// The largest distance among so many places that is a power of two.
int farthest(int places) { return 1 << patterns::floor_log2(static_cast<std::uint64_t>(places - 1)); }

}  // namespace

// From one rank to another goes a block of the scatter, one at their distance, and one that is passed on, at
// one distance at most: where v has a partner and v + half has none, at any larger distance v has none
// either.
std::string_view refuse(const Problem& problem, const Topology&, const Choice&) {
    const bool holes = 2 * farthest(problem.size) != problem.size;
    const bool too_many = problem.size > 1 && (holes ? 3u : 2u) > problem.messages_per_pair;
    return too_many ? "it exceeds the messages that two ranks may exchange" : "";
}

Schedule build(const Problem& problem, const Topology&, const Choice&) {
    Builder builder(problem.rank, problem.size);
    patterns::add_scatter(builder, problem);
    const patterns::Group group(problem);
    const patterns::Blocks blocks(problem);
    const int v = group.place_of(problem.rank);
    for (int mask = 1; mask < problem.size; mask *= 2) {
        const Exchange exchange = exchange_at(blocks, v, mask);
        if (exchange.partner >= 0) {
            if (exchange.mine.bytes != 0) builder.send(group.rank_at(exchange.partner), exchange.mine);
            if (exchange.theirs.bytes != 0) builder.recv(group.rank_at(exchange.partner), exchange.theirs);
        }
        if (!exchange.holes || exchange.theirs.bytes == 0) continue;
        for (int half = mask / 2; half >= 1; half /= 2) {
            if (passes_on(v, half, exchange.served)) builder.send(group.rank_at(v + half), exchange.theirs);
            if ((v & half) != 0 && passes_on(v - half, half, exchange.served))
                builder.recv(group.rank_at(v - half), exchange.theirs);
        }
    }
    return std::move(builder).finish();
}

// Walks through all exchanges: there is no short closed form for any p.
Claim claim(const Problem& problem, const Topology&, const Choice&) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const patterns::Blocks blocks(problem);
    const int p = problem.size;
    Claim claim = patterns::claim_scatter(problem);
    std::vector<std::uint64_t> depth(static_cast<std::size_t>(p));  // messages behind all that v holds
    for (int v = 1; v < blocks.not_empty(); ++v)
        depth[static_cast<std::size_t>(v)] = depth[static_cast<std::size_t>(v & (v - 1))] + 1;
    const auto count = [&](const Slice& slice) { ++claim.messages, claim.bytes += slice.bytes; };
    for (int mask = 1; mask < p; mask *= 2) {
        std::vector<std::uint64_t> next = depth, arrived(static_cast<std::size_t>(p));
        for (int v = 0; v < p; ++v) {
            const Exchange exchange = exchange_at(blocks, v, mask);
            if (exchange.partner < 0 || exchange.theirs.bytes == 0) continue;
            count(exchange.theirs);
            if (v % (2 * mask) == 0) claim.redundant_bytes += exchange.theirs.bytes;
            auto& now = arrived[static_cast<std::size_t>(v)];
            now = depth[static_cast<std::size_t>(exchange.partner)] + 1;
            next[static_cast<std::size_t>(v)] = std::max(next[static_cast<std::size_t>(v)], now);
        }
        for (int half = mask / 2; half >= 1; half /= 2)
            for (int v = 0; v + half < p; ++v) {
                const Exchange exchange = exchange_at(blocks, v, mask);
                if (!exchange.holes || exchange.theirs.bytes == 0 || !passes_on(v, half, exchange.served))
                    continue;
                count(exchange.theirs);
                const auto to = static_cast<std::size_t>(v + half);
                arrived[to] = arrived[static_cast<std::size_t>(v)] + 1;
                next[to] = std::max(next[to], arrived[to]);
            }
        depth = next;
    }
    for (std::uint64_t d : depth) claim.rounds = std::max(claim.rounds, d);
    return claim;
}

Price price(const Problem& problem, const Topology&, const Choice&) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const patterns::Blocks blocks(problem);
    const Price scatter = patterns::price_scatter(problem);
    Price price = {2 * scatter.rounds, scatter.bytes, blocks.range(0, farthest(problem.size)).bytes, 2};
    // A complete group sends all that it has, however few the places of the last group are; the place with no
    // partner waits for what its own group passes on.
    for (int mask = 1; mask < problem.size; mask *= 2) {
        price.bytes += blocks.range(0, mask).bytes;
        const int incomplete = problem.size / (2 * mask) * 2 * mask;  // the last group of 2·mask places
        const Exchange exchange = exchange_at(blocks, std::min(incomplete, problem.size - 1), mask);
        if (!exchange.holes) continue;
        // Down to a distance at which all have them.
        const auto levels =
            static_cast<std::uint64_t>(patterns::floor_log2(static_cast<std::uint64_t>(mask)) -
                                       patterns::floor_log2(static_cast<std::uint64_t>(exchange.served)));
        price.rounds += levels;
        price.bytes += levels * exchange.theirs.bytes;
    }
    return price;
}

}  // namespace thalweg::bcast::scatter_recursive_doubling
