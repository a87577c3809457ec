// Every block goes round the ring twice: once to be combined, once to be handed out.
//
//     size 4, block b starts at rank b+1; of block 0:
//
//     1 →0→ 2 →0→ 3 →0→ 0      every rank adds its operand on the right
//     0 →0→ 1 →0→ 2 →0→ 3      the result goes on from rank 0
//
// Blocks pass in pieces, so that one is combined while the next is on the wire. Rounds: 2 (p-1). Bytes: a
// rank sends and receives 2 n (p-1)/p, the least that is possible; between hosts of ranks in a row, each link
// carries no more than that. Each block is combined once, in one order, so that all ranks get the same bits;
// the order is that of ranks, turned round by b+1: operations that do not commute are refused. P. Patarasuk,
// X. Yuan: Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations, 2009.
#include "algorithms/patterns/vector.h"
#include "schedule/builder.h"

namespace thalweg::allreduce::ring {

enum : std::size_t { chunk_bytes };

namespace {

std::uint64_t passes(const Problem& problem) { return 2 * static_cast<std::uint64_t>(problem.size - 1); }

class Ring {
  public:
    Ring(Builder& builder, const Problem& problem, std::uint64_t chunk)
        : builder_(builder),
          vector_(problem),
          p_(problem.size),
          v_(problem.rank),
          chunk_(chunk),
          most_(problem.messages_per_pair / passes(problem)) {}

    void build() {
        // Round `p - 1` brings the own block, complete.
        for (int round = 1; round < p_; ++round)
            exchange(
                v_ - round, v_ - round - 1, [&](const Range& sent) { send(held(sent, round - 1)); },
                [&](const Range& received) { combine(received, round); });
        for (int round = 0; round < p_ - 1; ++round)
            exchange(
                v_ - round, v_ - round - 1, [&](const Range& sent) { send(vector_.result(sent)); },
                [&](const Range& received) { builder_.recv(left(), vector_.result(received)); });
    }

  private:
    using Range = patterns::Range;

    int left() const { return (v_ - 1 + p_) % p_; }
    void send(const Slice& slice) { builder_.send((v_ + 1) % p_, slice); }

    patterns::Vector::Pieces pieces(int block) const {
        const int index = (block % p_ + p_) % p_;
        return vector_.pieces(
            vector_.part(vector_.all(), static_cast<std::uint64_t>(index), static_cast<std::uint64_t>(p_)),
            chunk_, most_);
    }

    template <typename Send, typename Receive>
    void exchange(int sent_block, int received_block, Send send_piece, Receive receive_piece) {
        const auto sent = pieces(sent_block), received = pieces(received_block);
        for (std::uint64_t i = 0; i < std::max(sent.count(), received.count()); ++i) {
            if (i < sent.count()) send_piece(sent.piece(i));
            if (i < received.count()) receive_piece(received.piece(i));
        }
    }

    // Where what came in `round`, combined with the own operand, is: in the result's place, which the last
    // messages overwrite, or in scratch where the own operand is there.
    Slice held(const Range& range, int round) {
        if (round == 0) return vector_.own(range);
        if (!vector_.in_place()) return vector_.result(range);
        Slice& scratch = scratch_[round % 2];
        const std::uint64_t block = vector_.part(vector_.all(), 0, static_cast<std::uint64_t>(p_)).bytes;
        if (scratch.bytes == 0) scratch = builder_.scratch(block);
        const int index = ((v_ - round - 1) % p_ + p_) % p_;
        const Range whole =
            vector_.part(vector_.all(), static_cast<std::uint64_t>(index), static_cast<std::uint64_t>(p_));
        return {Buffer::scratch, scratch.offset + (range.from - whole.from), range.bytes};
    }

    void combine(const Range& range, int round) {
        const Slice target = held(range, round);
        builder_.recv(left(), target);
        if (round == p_ - 1 && vector_.in_place())
            builder_.reduce(vector_.result(range), target, Side::left);
        else
            builder_.reduce(target, vector_.own(range), Side::right);
    }

    Builder& builder_;
    patterns::Vector vector_;
    int p_, v_;
    std::uint64_t chunk_, most_;
    Slice scratch_[2];
};

}  // namespace

std::string_view refuse(const Problem& problem, const Topology&, const Choice&) {
    if (!problem.commutative) return "a ring combines in another order than that of the ranks";
    const bool too_many = passes(problem) > problem.messages_per_pair;
    return too_many ? "a ring of so many ranks exceeds the messages that two ranks may exchange" : "";
}

Schedule build(const Problem& problem, const Topology&, const Choice& choice) {
    Builder builder(problem.rank, problem.size);
    const patterns::Vector vector(problem);
    if (problem.size == 1 && problem.bytes != 0 && !problem.in_place)
        builder.copy(vector.result(vector.all()), vector.own(vector.all()));
    if (problem.size > 1) Ring(builder, problem, choice.values[chunk_bytes]).build();
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology&, const Choice& choice) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const patterns::Vector vector(problem);
    const auto p = static_cast<std::uint64_t>(problem.size);
    Claim claim{passes(problem), 0, passes(problem) * problem.bytes};
    for (std::uint64_t b = 0; b < p; ++b) {
        const std::uint64_t most = problem.messages_per_pair / passes(problem);
        const auto pieces = vector.pieces(vector.part(vector.all(), b, p), choice.values[chunk_bytes], most);
        claim.messages += passes(problem) * pieces.count();
    }
    return claim;
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const patterns::Vector vector(problem);
    const patterns::Range block = vector.part(vector.all(), 0, static_cast<std::uint64_t>(problem.size));
    const std::uint64_t most = problem.messages_per_pair / passes(problem);
    const auto pieces = vector.pieces(block, choice.values[chunk_bytes], most);
    Price price{passes(problem) * pieces.count(), passes(problem) * block.bytes, pieces.piece(0).bytes, 1};
    // All but the last piece of a round is combined while the next one is on the wire.
    price.reduced_bytes = passes(problem) / 2 * pieces.piece(0).bytes;
    return price;
}

}  // namespace thalweg::allreduce::ring
