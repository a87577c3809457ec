// Pairs at distance 1, 2, 4, … exchange and combine the whole vector; left-over ranks are folded in first.
//
//     size 4:  0 ⇄ 1   2 ⇄ 3      all hold 01 or 23      0 ⇄ 2   1 ⇄ 3      all hold 0123
//
// Both of a pair put the lower one's operand on the left: equal bits everywhere, and operands in the order of
// ranks. Rounds: log2 p; where p is not a power of two, that of the one below and one or two to fold and hand
// back. Bytes: n per round.
#include "algorithms/patterns/fold.h"
#include "algorithms/patterns/vector.h"
#include "schedule/builder.h"

namespace thalweg::allreduce::recursive_doubling {

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

namespace {

// What this rank has combined so far. Each combination happens where the other operand was received, so that
// what is being sent is not overwritten: two scratch vectors in turn, and the result's place for the last
// one.
class Accumulator {
  public:
    Accumulator(Builder& builder, const patterns::Vector& vector, std::uint64_t combinations)
        : builder_(builder), vector_(vector), left_(combinations), held_(vector.own(vector.all())) {}

    const Slice& held() const { return held_; }

    // Receives the vector of `peer` and combines it with what is held, which goes on `side`.
    void combine(int peer, Side side) {
        const Slice result = vector_.result(vector_.all());
        if (--left_ == 0 && held_ == result) {
            const Slice other = next_scratch();
            builder_.recv(peer, other);
            builder_.reduce(result, other, side == Side::left ? Side::right : Side::left);
            return;
        }
        const Slice other = left_ == 0 ? result : next_scratch();
        builder_.recv(peer, other);
        builder_.reduce(other, held_, side);
        held_ = other;
    }

  private:
    Slice next_scratch() {
        Slice& next = scratch_[turn_++ % 2];
        if (next.bytes == 0) next = builder_.scratch(vector_.all().bytes);
        return next;
    }

    Builder& builder_;
    const patterns::Vector& vector_;
    std::uint64_t left_, turn_ = 0;
    Slice held_, scratch_[2];
};

}  // namespace

Schedule build(const Problem& problem, const Topology&, const Choice&) {
    Builder builder(problem.rank, problem.size);
    const patterns::Vector vector(problem);
    const patterns::Range all = vector.all();
    const patterns::Fold fold(problem.size);
    const int rank = problem.rank;
    if (problem.bytes == 0) return std::move(builder).finish();
    if (problem.size == 1) {
        if (!problem.in_place) builder.copy(vector.result(all), vector.own(all));
        return std::move(builder).finish();
    }
    if (fold.gives(rank)) {
        builder.send(rank + 1, vector.own(all));
        builder.recv(rank + 1, vector.result(all));
        return std::move(builder).finish();
    }
    Accumulator sum(builder, vector, fold.levels() + fold.takes(rank));
    if (fold.takes(rank)) sum.combine(rank - 1, Side::right);
    const int place = fold.place_of(rank);
    for (int mask = 1; mask < fold.places; mask *= 2) {
        const int peer = fold.rank_at(place ^ mask);
        builder.send(peer, sum.held());
        sum.combine(peer, (place & mask) == 0 ? Side::left : Side::right);
    }
    if (fold.takes(rank)) builder.send(rank - 1, vector.result(all));
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology&, const Choice&) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const patterns::Fold fold(problem.size);
    const std::uint64_t messages =
        fold.levels() * static_cast<std::uint64_t>(fold.places) + 2 * static_cast<std::uint64_t>(fold.folded);
    // The farthest place of one that was folded into is its complement: folding delays it, handing back
    // delays it itself, and both are on one chain where it is such a place too.
    // In place, where the last message waits for the first one to be combined, it may delay twice as well.
    const bool twice = 2 * fold.folded > fold.places || problem.in_place;
    const std::uint64_t folding = fold.folded == 0 ? 0 : twice ? 2 : 1;
    return {fold.levels() + folding, messages, messages * problem.bytes};
}

Price price(const Problem& problem, const Topology&, const Choice&) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const patterns::Fold fold(problem.size);
    const std::uint64_t rounds = fold.levels() + (fold.folded > 0 ? 2 : 0);
    Price price{rounds, rounds * problem.bytes, problem.bytes, 1};
    price.reduced_bytes = (fold.levels() + (fold.folded > 0)) * problem.bytes;
    return price;
}

}  // namespace thalweg::allreduce::recursive_doubling
