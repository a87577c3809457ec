// Blocks travel along a circulant graph so that every rank receives a new one in every round.
//
//     p = 5 (skips 1, 2, 3), 3 blocks:     round   0      1      2      3      4
//                                          skip    2      3      1      2      3
//     In every round each rank sends to the one `skip` after it (in place order) and receives from the one
//     `skip` before it; which block follows from patterns/circulant.h.
//
// Rounds: b - 1 + ⌈log2 p⌉ for b = ⌈n/c⌉ blocks, the least there can be. Bytes: a rank receives n and sends
// at most n + c ⌈log2 p⌉. Träff, arXiv 2205.10072 and 2312.11236.
//
// Rounds are written as order: what a rank does in a round follows what it did in the round before. Without
// that, a rank that is ahead meets another's message at the same receiver, messages overtake one another
// there, and the ports lose up to half of their time (played with three ranks: 3 rounds for every 2 blocks).
#include "algorithms/patterns/circulant.h"

#include "algorithms/patterns/group.h"
#include "schedule/builder.h"

namespace thalweg::bcast::circulant {

enum : std::size_t { chunk_bytes };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

Schedule build(const Problem& problem, const Topology&, const Choice& choice) {
    Builder builder(problem.rank, problem.size);
    const patterns::Cut cut = patterns::cut(problem, choice.values[chunk_bytes]);
    const auto blocks = static_cast<std::int64_t>(cut.pieces());
    if (problem.size == 1 || blocks == 0) return std::move(builder).finish();

    const patterns::Group group(problem);
    const int v = group.place_of(problem.rank), p = problem.size;
    const std::vector<int> skip = patterns::circulant_skips(p);
    const auto q = static_cast<std::int64_t>(skip.size()) - 1;
    const std::vector<int> receives = v == 0 ? std::vector<int>{} : patterns::circulant_receives(v, skip);
    const std::vector<int> sends = patterns::circulant_sends(v, skip);

    // The last round must end a phase of q rounds, so the first ones of the first phase are left out. What a
    // round names beyond the last block is the last block: its earlier owner sends it once more, to someone
    // new.
    const std::int64_t left_out = (q - (blocks - 1) % q) % q;
    std::vector<StepId> last_round, this_round;
    for (std::int64_t i = left_out; i < left_out + blocks - 1 + q; ++i) {
        const auto k = static_cast<std::size_t>(i % q);
        const std::int64_t shift = i / q * q - left_out;
        const int to = (v + skip[k]) % p, from = (v - skip[k] + p) % p;
        const std::int64_t sent = sends[k] + shift;
        if (to != 0 && sent >= 0) {
            const auto piece = static_cast<std::uint64_t>(std::min(sent, blocks - 1));
            this_round.push_back(builder.send(group.rank_at(to), cut.piece(piece), last_round));
        }
        if (v != 0 && receives[k] + shift >= 0) {
            const auto piece = static_cast<std::uint64_t>(std::min(receives[k] + shift, blocks - 1));
            this_round.push_back(builder.recv(group.rank_at(from), cut.piece(piece), last_round));
        }
        if (!this_round.empty()) last_round.swap(this_round);
        this_round.clear();
    }
    return std::move(builder).finish();
}

static std::uint64_t rounds(const Problem& problem, const patterns::Cut& cut) {
    if (problem.size == 1 || cut.pieces() == 0) return 0;
    return cut.pieces() - 1 +
           static_cast<std::uint64_t>(patterns::ceil_log2(static_cast<std::uint64_t>(problem.size)));
}

Claim claim(const Problem& problem, const Topology&, const Choice& choice) {
    const patterns::Cut cut = patterns::cut(problem, choice.values[chunk_bytes]);
    const auto receivers = static_cast<std::uint64_t>(problem.size - 1);
    return {rounds(problem, cut), cut.pieces() * receivers, problem.bytes * receivers, 0};
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    const patterns::Cut cut = patterns::cut(problem, choice.values[chunk_bytes]);
    const std::uint64_t all = rounds(problem, cut), block = std::min(cut.chunk, problem.bytes);
    return {all, all * block, block, 1};
}

}  // namespace thalweg::bcast::circulant
