#include "algorithms/patterns/tree.h"

#include "schedule/builder.h"

namespace thalweg::patterns {

Schedule build_tree(const Problem& problem, const TreePlace& place, const Cut& cut) {
    const Group group(problem);
    Builder builder(problem.rank, problem.size);
    for (std::uint64_t i = 0; i < cut.pieces(); ++i) {
        if (place.parent >= 0) builder.recv(group.rank_at(place.parent), cut.piece(i));
        for (int child : place.children) builder.send(group.rank_at(child), cut.piece(i));
    }
    return std::move(builder).finish();
}

Claim claim_tree(const Problem& problem, const TreeShape& shape, const Cut& cut) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto receivers = static_cast<std::uint64_t>(problem.size - 1);
    return {shape.depth, cut.pieces() * receivers, problem.bytes * receivers, 0};
}

Price price_tree(const Problem& problem, const TreeShape& shape, const Cut& cut) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const std::uint64_t before = cut.pieces() - 1, last = cut.piece(before).bytes;
    // While the last piece travels, the rounds that overlap with the piece before it take a full chunk.
    const std::uint64_t largest = before ? cut.chunk : last;
    const std::uint64_t tail = shape.port_rounds > 0 ? (shape.port_rounds - 1) * largest + last : 0;
    return {before * shape.root_degree + shape.port_rounds, before * shape.root_degree * cut.chunk + tail,
            largest, shape.root_degree};
}

TreePlace knomial_place(int place, int size, std::uint64_t radix) {
    TreePlace result;
    const auto v = static_cast<std::uint64_t>(place), p = static_cast<std::uint64_t>(size);
    std::uint64_t weight = 1;  // of the lowest non-zero digit, or beyond the last place
    while (weight < p && v / weight % radix == 0) weight *= radix;
    if (v != 0) result.parent = static_cast<int>(v - v / weight % radix * weight);
    while (weight > 1) {
        weight /= radix;
        for (std::uint64_t i = 1; i < radix && v + i * weight < p; ++i)
            result.children.push_back(static_cast<int>(v + i * weight));
    }
    return result;
}

namespace {

std::uint64_t knomial_port_rounds(std::uint64_t size, std::uint64_t radix) {
    std::uint64_t weight = 1, level = 0, rounds = 0, served = 0;
    while (weight < size) weight *= radix, ++level;
    while (weight > 1) {
        weight /= radix, --level;
        for (std::uint64_t i = 1; i < radix && i * weight < size; ++i) {
            const std::uint64_t subtree = std::min(weight, size - i * weight);
            const bool full = subtree == weight;  // at most one subtree of a level is not
            const std::uint64_t inside = full ? level * (radix - 1) : knomial_port_rounds(subtree, radix);
            rounds = std::max(rounds, ++served + inside);
        }
    }
    return rounds;
}

}  // namespace

TreeShape knomial_shape(int size, std::uint64_t radix) {
    const auto p = static_cast<std::uint64_t>(size);
    TreeShape shape;
    // A place is as deep as it has non-zero digits: 1, 11, 111, … are the first of their depth.
    for (std::uint64_t ones = 1; ones < p; ones = ones * radix + 1) ++shape.depth;
    shape.port_rounds = knomial_port_rounds(p, radix);
    shape.root_degree = knomial_place(0, size, radix).children.size();
    return shape;
}

}  // namespace thalweg::patterns
