// In round i every rank sends to the rank i places after it and receives from the one i places before it.
//
//     size 4, round 1:  v → v+1, v ← v-1      round 2:  v → v+2, v ← v-2      round 3:  v → v+3, v ← v-3
//
// Rounds: p - 1, less those in which a rank has nothing to exchange. Bytes: those of the problem. A round
// begins at a rank when its last one is complete there, so that each link carries one message each way at a
// time. As in Open MPI and MPICH for long messages.
//
// With chunk_bytes a message travels in pieces, and rounds flow into each other: a rank may be `ahead` pieces
// further with what it sends than with what it has received.
//
//     ahead 2, two pieces a round:   send  a1 a2 b1 b2 c1 c2
//                                    recv  x1 x2 y1 y2 z1 z2      b1 waits for a1 and x1, b2 for a2 and x2 …
//
// Rounds: ⌈(p-1) ⌈m/c⌉ / ahead⌉. Links still carry about one message each way, but nothing waits for the last
// byte of a round, and no piece need be announced before it is sent, where a whole message had to be. Where
// the ends of a message are not known to give it the same size, one of no bytes follows a message of whole
// pieces (patterns/pieces.h).
#include <algorithm>

#include "algorithms/patterns/group.h"
#include "algorithms/patterns/parcels.h"
#include "algorithms/patterns/pieces.h"

namespace thalweg::alltoallv::pairwise {

enum : std::size_t { chunk_bytes, ahead };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

namespace {

using patterns::Parcels;

patterns::Pacing pacing_of(const Choice& choice) {
    return {choice.values[chunk_bytes], choice.values[ahead]};
}

void add_rounds(Builder& builder, const Problem& problem, const Parcels& parcels) {
    std::vector<StepId> before, now;
    int round = 0;
    const auto enter = [&](int next) {
        if (next == round) return;
        round = next;
        if (now.empty()) return;
        before.swap(now);
        now.clear();
    };
    parcels.each(
        [&](const Parcel& parcel) {
            enter(patterns::distance(problem.rank, parcel.peer, problem.size));
            now.push_back(builder.send(parcel.peer, {Buffer::in, parcel.offset, parcel.bytes}, before));
        },
        [&](const Parcel& parcel) {
            enter(patterns::distance(parcel.peer, problem.rank, problem.size));
            now.push_back(builder.recv(parcel.peer, {Buffer::out, parcel.offset, parcel.bytes}, before));
        });
}

}  // namespace

Schedule build(const Problem& problem, const Topology& topology, const Choice& choice) {
    Builder builder(problem.rank, problem.size);
    // In pieces there are no rounds, and neighbours may meet in pairs.
    const bool in_pairs = choice.values[chunk_bytes] != 0 && problem.exchange && problem.exchange->in_pairs;
    const Parcels parcels(problem, topology, in_pairs);
    if (choice.values[chunk_bytes] == 0)
        add_rounds(builder, problem, parcels);
    else
        patterns::add_pieces(builder, problem, parcels.outgoing(), parcels.incoming(), pacing_of(choice));
    parcels.copy_own(builder);
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology& topology, const Choice& choice) {
    const Parcels parcels(problem, topology, false);
    const auto [messages, empty] = patterns::count_pieces(problem, parcels.outgoing(), pacing_of(choice));
    if (messages == 0) return {};
    const std::uint64_t ranks = problem.exchange == nullptr ? static_cast<std::uint64_t>(problem.size) : 1;
    const std::uint64_t rounds = choice.values[chunk_bytes] == 0
                                     ? static_cast<std::uint64_t>(problem.size - 1)
                                     : patterns::ceil_div(messages, choice.values[ahead]);
    return {rounds, ranks * (messages - empty), ranks * parcels.sent_bytes(), 0, ranks * empty};
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto others = static_cast<std::uint64_t>(problem.size - 1);
    if (choice.values[chunk_bytes] == 0) return {others, others * problem.bytes, problem.bytes, 1};
    const patterns::Cut cut = patterns::cut(problem, choice.values[chunk_bytes]);
    return {patterns::ceil_div(others * cut.pieces(), choice.values[ahead]), others * problem.bytes,
            std::min(cut.chunk, problem.bytes), 2 * others};
}

}  // namespace thalweg::alltoallv::pairwise
