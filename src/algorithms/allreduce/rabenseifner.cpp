// Reduce-scatter by halving the vector at distances 1, 2, 4, …, then allgather back the same way.
//
//     size 4:  0 ⇄ 1   2 ⇄ 3   halves     0 ⇄ 2   1 ⇄ 3   quarters      each holds a quarter of the result
//              0 ⇄ 2   1 ⇄ 3   quarters   0 ⇄ 1   2 ⇄ 3   halves        all hold all of it
//
// Distances grow while the vector shrinks, so that what is combined always comes from neighbouring runs of
// ranks, in their order. Rounds: 2 log2 p; where p is not a power of two, one to fold the others in and one
// to hand the result back. Bytes: a rank sends 2 n (p-1)/p. R. Rabenseifner: Optimization of Collective
// Reduction Operations, 2004.
#include "algorithms/patterns/fold.h"
#include "algorithms/patterns/vector.h"
#include "schedule/builder.h"

namespace thalweg::allreduce::rabenseifner {

using patterns::Range;

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

namespace {

// Receives the peer's part of `range` and leaves the combination in the result's place. `held` is this rank's
// part, which goes on `side`: the result's place itself, or somewhere else.
void combine(Builder& builder, const patterns::Vector& vector, int peer, const Range& range,
             const Slice& held, Side side) {
    if (range.bytes == 0) return;
    const Slice result = vector.result(range);
    if (held == result) {
        const Slice other = builder.scratch(range.bytes);
        builder.recv(peer, other);
        builder.reduce(result, other, side == Side::left ? Side::right : Side::left);
    } else {
        builder.recv(peer, result);
        builder.reduce(result, held, side);
    }
}

}  // namespace

Schedule build(const Problem& problem, const Topology&, const Choice&) {
    Builder builder(problem.rank, problem.size);
    const patterns::Vector vector(problem);
    const patterns::Fold fold(problem.size);
    const int rank = problem.rank;
    Range range = vector.all();
    if (problem.bytes == 0) return std::move(builder).finish();
    if (problem.size == 1) {
        if (!problem.in_place) builder.copy(vector.result(range), vector.own(range));
        return std::move(builder).finish();
    }
    if (fold.gives(rank)) {
        builder.send(rank + 1, vector.own(range));
        builder.recv(rank + 1, vector.result(range));
        return std::move(builder).finish();
    }
    bool in_result = problem.in_place;  // where what this rank has combined is
    const auto held = [&](const Range& part) { return in_result ? vector.result(part) : vector.own(part); };
    if (fold.takes(rank)) {
        combine(builder, vector, rank - 1, range, held(range), Side::right);
        in_result = true;
    }
    const int place = fold.place_of(rank);
    std::vector<Range> given;  // the half that went to the peer of each level
    for (int mask = 1; mask < fold.places; mask *= 2) {
        const bool lower = (place & mask) == 0;
        const int peer = fold.rank_at(place ^ mask);
        const Range kept = vector.part(range, lower ? 0 : 1, 2);
        given.push_back(vector.part(range, lower ? 1 : 0, 2));
        if (given.back().bytes != 0) builder.send(peer, held(given.back()));
        combine(builder, vector, peer, kept, held(kept), lower ? Side::left : Side::right);
        in_result = true;
        range = kept;
    }
    for (int mask = fold.places / 2; mask >= 1; mask /= 2, given.pop_back()) {
        const int peer = fold.rank_at(place ^ mask);
        const Range& theirs = given.back();
        if (range.bytes != 0) builder.send(peer, vector.result(range));
        if (theirs.bytes != 0) builder.recv(peer, vector.result(theirs));
        range = {std::min(range.from, theirs.from), range.bytes + theirs.bytes};
    }
    if (fold.takes(rank)) builder.send(rank - 1, vector.result(range));
    return std::move(builder).finish();
}

namespace {

// Messages of one phase among `places` places that hold `range`.
std::uint64_t messages_of(const patterns::Vector& vector, const Range& range, std::uint64_t places) {
    if (places == 1 || range.bytes == 0) return 0;
    const Range low = vector.part(range, 0, 2), high = vector.part(range, 1, 2);
    return places / 2 * ((low.bytes != 0) + (high.bytes != 0)) + messages_of(vector, low, places / 2) +
           messages_of(vector, high, places / 2);
}

// What a place holds after the first phase.
Range range_of(const patterns::Vector& vector, const patterns::Fold& fold, int place) {
    Range range = vector.all();
    for (int mask = 1; mask < fold.places; mask *= 2)
        range = vector.part(range, (place & mask) == 0 ? 0 : 1, 2);
    return range;
}

// On the longest chain a part of the vector comes from a folded rank to the complement of its place, all
// levels away, and goes all the way back: if that part has bytes.
bool folding_delays(const patterns::Vector& vector, const patterns::Fold& fold) {
    for (int place = 0; place < fold.folded; ++place)
        if (range_of(vector, fold, fold.places - 1 - place).bytes != 0) return true;
    return false;
}

}  // namespace

Claim claim(const Problem& problem, const Topology&, const Choice&) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const patterns::Vector vector(problem);
    const patterns::Fold fold(problem.size);
    const auto places = static_cast<std::uint64_t>(fold.places),
               folded = static_cast<std::uint64_t>(fold.folded);
    return {2 * fold.levels() + (folding_delays(vector, fold) ? 2 : 0),
            2 * messages_of(vector, vector.all(), places) + 2 * folded,
            (2 * (places - 1) + 2 * folded) * problem.bytes};
}

Price price(const Problem& problem, const Topology&, const Choice&) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const patterns::Fold fold(problem.size);
    const std::uint64_t scattered = problem.bytes - problem.bytes / static_cast<std::uint64_t>(fold.places);
    Price price{2 * fold.levels(), 2 * scattered, problem.bytes / 2, 1};
    price.reduced_bytes = scattered;
    if (fold.folded > 0) {
        price.rounds += 2;
        price.bytes += 2 * problem.bytes;
        price.piece_bytes = problem.bytes;
        price.reduced_bytes += problem.bytes;
    }
    return price;
}

}  // namespace thalweg::allreduce::rabenseifner
