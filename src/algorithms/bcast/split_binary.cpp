// Each half of the message flows down one half of a binary tree; then neighbours of the two halves swap.
//
//     size 7:        0                  odd places get the first half, even ones the second:
//                 ╱     ╲               place v ≥ 1 on level l sends to v + 2^l and v + 2·2^l,
//                1       2              which keeps v odd or even
//               ╱ ╲     ╱ ╲
//              3   5   4   6            then 1 ⇄ 2   3 ⇄ 4   5 ⇄ 6
//                                       (the last one of an even size: from the root)
//
// Rounds: 3 (n/2c - 1), as an inner rank sends a piece to two children and in the swap, and about 2 log2 p
// for the last piece; up to three ranks 2 (n/2c - 1) and p. Bytes: an inner rank sends 1.5 n, a rank receives
// n. J. Pješivac-Grbović et al.: Performance Analysis of MPI Collective Operations, 2007.
#include "algorithms/patterns/group.h"
#include "schedule/builder.h"

namespace thalweg::bcast::split_binary {

enum : std::size_t { chunk_bytes };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

namespace {

int level_of(int v) { return patterns::floor_log2(static_cast<std::uint64_t>(v) + 1); }

int parent_of(int v) {
    const int step = 1 << (level_of(v) - 1), first_of_level = (1 << level_of(v)) - 1;
    return v - step < first_of_level ? v - step : v - 2 * step;
}

// The half that flows to v ≥ 1 (odd: the first).
int half_of(int v) { return v % 2 == 1 ? 0 : 1; }

// The neighbour that v ≥ 1 swaps with; the root for the last place of an even size.
int swaps_with(int v, int size) { return v % 2 == 0 ? v - 1 : v + 1 < size ? v + 1 : 0; }

// Rounds until the last place of `size` > 1 has a piece, one send a round. On level l it takes l, and one
// more for each time that the way there is by a second child: as often as its number on that level has ones.
std::uint64_t port_rounds(int size) {
    const int level = level_of(size - 1), first_of_level = (1 << level) - 1;
    const int ones = patterns::floor_log2(static_cast<std::uint64_t>(size - first_of_level));
    return static_cast<std::uint64_t>(std::max(2 * (level - 1), level + ones));
}

struct Halves {
    patterns::Cut half[2];
    Halves(const Problem& problem, std::uint64_t chunk_bytes) {
        Problem part = problem;
        part.messages_per_pair = std::max<std::uint64_t>(problem.messages_per_pair / 2, 1);
        part.bytes = problem.bytes - problem.bytes / 2;
        half[0] = patterns::cut(part, chunk_bytes);
        part.offset = problem.offset + part.bytes;
        part.bytes = problem.bytes / 2;
        half[1] = patterns::cut(part, chunk_bytes);
    }
    std::uint64_t pieces() const { return half[0].pieces() + half[1].pieces(); }
};

}  // namespace

Schedule build(const Problem& problem, const Topology&, const Choice& choice) {
    Builder builder(problem.rank, problem.size);
    const patterns::Group group(problem);
    const Halves halves(problem, choice.values[chunk_bytes]);
    const int v = group.place_of(problem.rank), p = problem.size;
    const auto send_all = [&](int to, const patterns::Cut& cut) {
        for (std::uint64_t i = 0; i < cut.pieces(); ++i) builder.send(group.rank_at(to), cut.piece(i));
    };
    if (v == 0) {
        // The first half may have one byte more, and so larger pieces, and fewer of them.
        const std::uint64_t most = std::max(halves.half[0].pieces(), halves.half[1].pieces());
        for (std::uint64_t i = 0; i < most; ++i)
            for (int child = 1; child <= 2 && child < p; ++child)
                if (i < halves.half[child - 1].pieces())
                    builder.send(group.rank_at(child), halves.half[child - 1].piece(i));
        if (p % 2 == 0) send_all(p - 1, halves.half[1]);
        return std::move(builder).finish();
    }
    const patterns::Cut &own = halves.half[half_of(v)], &other = halves.half[1 - half_of(v)];
    const int step = 1 << level_of(v), partner = swaps_with(v, p);
    for (std::uint64_t i = 0; i < own.pieces(); ++i) {
        builder.recv(group.rank_at(parent_of(v)), own.piece(i));
        for (int child = v + step; child <= v + 2 * step && child < p; child += step)
            builder.send(group.rank_at(child), own.piece(i));
    }
    if (partner != 0) send_all(partner, own);
    for (std::uint64_t i = 0; i < other.pieces(); ++i) builder.recv(group.rank_at(partner), other.piece(i));
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology&, const Choice& choice) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const Halves halves(problem, choice.values[chunk_bytes]);
    const auto receivers = static_cast<std::uint64_t>(problem.size - 1);
    Claim claim = {0, halves.pieces() * receivers, problem.bytes * receivers, 0};
    for (int v = 1; v < problem.size; ++v) {
        const int partner = swaps_with(v, problem.size);
        std::uint64_t depth = 0;
        if (halves.half[half_of(v)].pieces() > 0) depth = static_cast<std::uint64_t>(level_of(v));
        if (halves.half[1 - half_of(v)].pieces() > 0)
            depth = std::max(depth, static_cast<std::uint64_t>(level_of(partner)) + 1);
        claim.rounds = std::max(claim.rounds, depth);
    }
    return claim;
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const Halves halves(problem, choice.values[chunk_bytes]);
    const std::uint64_t pieces = halves.half[0].pieces(),
                        chunk = std::min(halves.half[0].chunk, halves.half[0].bytes);
    // Of a piece the busiest rank sends as many: the root of two or three ranks one of either half.
    const std::uint64_t degree = problem.size > 3 ? 3 : 2;
    const std::uint64_t last = port_rounds(problem.size) + 1;  // and the swap
    Price price{degree * (pieces - 1) + last, degree * halves.half[0].bytes + (last - degree) * chunk, chunk,
                degree};
    price.flows = 2;
    return price;
}

}  // namespace thalweg::bcast::split_binary
