// Ranks whose places differ in one digit exchange all they have; the groups grow by a factor of k+1.
//
//     size 6, k = 1:  round 1:  0 ⇄ 1   2 ⇄ 3   4 ⇄ 5
//                     round 2:  0 ⇄ 2   1 ⇄ 3             4 and 5 have no partners and lack nothing yet
//                     round 3:  0 ⇄ 4   1 ⇄ 5             2 and 3 have no partners: they get blocks
//                               0 → 2   1 → 3             4 and 5 from their group, down a tree
//
// Only the last group of a level can be incomplete. Its m members exchange with the first m of every other
// group; from these the rest of that group gets it, holders doubling. Rounds: ⌈log_(k+1) p⌉ where p is a
// power of k+1. Bytes: a rank receives every block once. Groups are runs of blocks that never go past the
// last one, so that each exchange is one message. Recursive doubling is folklore; "standard exchange" in G.
// Inozemtsev, A. Afsahi, CLUSTER 2012.
#include "algorithms/patterns/contributions.h"
#include "algorithms/patterns/digits.h"
#include "algorithms/patterns/group.h"

namespace thalweg::allgather::standard_exchange {

enum : std::size_t { ports };

namespace {

// A level's groups of `width` places from the point of view of place v.
struct Level {
    int p, width, v;
    int first_group;  // of those that exchange with one another
    int mine;         // first place of v's group

    Level(int size, int group_width, std::uint64_t radix, int place) : p(size), width(group_width), v(place) {
        const std::uint64_t span = static_cast<std::uint64_t>(width) * radix;
        first_group = static_cast<int>(static_cast<std::uint64_t>(v) / span * span);
        mine = v / width * width;
    }
    int members(int group) const { return std::min(width, p - group); }

    // visit(group) for every other group that v exchanges with or hears of.
    template <typename Visit>
    void each_other(std::uint64_t radix, Visit visit) const {
        for (std::uint64_t i = 0; i < radix; ++i) {
            const std::uint64_t group =
                static_cast<std::uint64_t>(first_group) + i * static_cast<std::uint64_t>(width);
            if (group >= static_cast<std::uint64_t>(p)) break;
            if (static_cast<int>(group) != mine) visit(static_cast<int>(group));
        }
    }
};

// In a group of which the first `have` members hold something, the member that passes it to member j >= have.
int giver(int j, int have) {
    int holders = have;
    while (holders * 2 <= j) holders *= 2;
    return j - holders;
}

template <typename Visit>
void each_level(int p, std::uint64_t radix, int v, Visit visit) {
    for (std::uint64_t width = 1; width < static_cast<std::uint64_t>(p); width *= radix)
        visit(Level(p, static_cast<int>(width), radix, v));
}

}  // namespace

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

Schedule build(const Problem& problem, const Topology&, const Choice& choice) {
    Builder builder(problem.rank, problem.size);
    patterns::Gathered memory(builder, problem);
    const std::uint64_t radix = choice.values[ports] + 1;
    each_level(problem.size, radix, problem.rank, [&](const Level& level) {
        const int j = level.v - level.mine, width = level.width;
        level.each_other(radix, [&](int group) {
            const int have = level.members(group);
            if (j >= have) return;
            memory.send(group + j, level.mine, level.members(level.mine));
            memory.recv(group + j, group, have);
        });
        level.each_other(radix, [&](int group) {
            const int have = level.members(group);
            if (level.members(level.mine) < width) return;  // complete groups alone lack partners
            if (j >= have) memory.recv(level.mine + giver(j, have), group, have);
            for (int holders = have; holders < width; holders *= 2)
                if (j < holders && j + holders < width) memory.send(level.v + holders, group, have);
        });
    });
    memory.finish();
    return std::move(builder).finish();
}

// Walks through all exchanges: there is no short closed form for any p.
Claim claim(const Problem& problem, const Topology&, const Choice& choice) {
    const patterns::Contributions blocks(problem);
    if (problem.size == 1 || blocks.total() == 0) return {};
    const std::uint64_t radix = choice.values[ports] + 1;
    const int p = problem.size;
    Claim claim{0, 0, patterns::all_bytes(blocks)};
    std::vector<std::uint64_t> depth(static_cast<std::size_t>(p));  // messages behind all that v holds
    for (std::uint64_t w = 1; w < static_cast<std::uint64_t>(p); w *= radix) {
        std::vector<std::uint64_t> next = depth;
        for (int v = 0; v < p; ++v) {
            const Level level(p, static_cast<int>(w), radix, v);
            level.each_other(radix, [&](int group) {
                const int have = level.members(group);
                if (blocks.before(group) == blocks.before(group + have)) return;
                ++claim.messages;
                // From the holder that exchanges, down the tree to v.
                int hops = 1, j = v - level.mine;
                for (; j >= have; ++hops) j = giver(j, have);
                const std::uint64_t arrival =
                    depth[static_cast<std::size_t>(group + j)] + static_cast<std::uint64_t>(hops);
                next[static_cast<std::size_t>(v)] = std::max(next[static_cast<std::size_t>(v)], arrival);
            });
        }
        depth = std::move(next);
    }
    for (std::uint64_t d : depth) claim.rounds = std::max(claim.rounds, d);
    return claim;
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto p = static_cast<std::uint64_t>(problem.size);
    const std::uint64_t k = std::min(choice.values[ports], p - 1), radix = k + 1;
    Price price{0, 0, 0, 1};
    price.ports = k;
    for (std::uint64_t width = 1; width < p; width *= radix) {
        ++price.rounds;
        // A complete group sends all that it has, however few the members of the last group are, and whoever
        // does so hands on what comes from there when that has left.
        price.piece_bytes = width * problem.bytes;
        price.bytes += k * price.piece_bytes;
        // The incomplete group's blocks go down a tree inside the complete groups.
        const std::uint64_t have = p % width, groups = patterns::ceil_div(p, width);
        if (have == 0 || (groups - 1) % radix == 0) continue;
        const auto levels = static_cast<std::uint64_t>(patterns::ceil_log2(patterns::ceil_div(width, have)));
        price.rounds += levels;
        price.bytes += k * levels * have * problem.bytes;
    }
    price.bytes += price.rounds * patterns::skew_bytes(problem);  // a large block is sent in every round
    return price;
}

}  // namespace thalweg::allgather::standard_exchange
