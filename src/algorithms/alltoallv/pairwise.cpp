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
// byte of a round, and no piece need be announced before it is sent, where a whole message had to be.
#include <algorithm>

#include "algorithms/patterns/group.h"
#include "algorithms/patterns/parcels.h"

namespace thalweg::alltoallv::pairwise {

enum : std::size_t { chunk_bytes, ahead };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

namespace {

using patterns::Parcels;
using Placed = Parcels::Placed;

// Of a message, of which its pair has `alike` in all.
patterns::Cut cut_of(const Problem& problem, const Parcel& parcel, std::uint64_t alike,
                     const Choice& choice) {
    Problem part;
    part.bytes = parcel.bytes;
    part.offset = parcel.offset;
    part.messages_per_pair = std::max<std::uint64_t>(problem.messages_per_pair / alike, 1);
    return patterns::cut(part, choice.values[chunk_bytes]);
}

// A piece and where it stands in the order of all, which is the same at both of its ends.
struct Piece {
    std::uint64_t place = 0, turn = 0;
    int peer = 0;
    std::uint64_t offset = 0, bytes = 0;

    bool before(const Piece& other) const {
        return place != other.place ? place < other.place : turn < other.turn;
    }
};

std::vector<Piece> pieces_of(const Problem& problem, std::span<const Placed> messages, const Choice& choice) {
    std::vector<Piece> pieces;
    for (std::size_t begin = 0, end = 0; begin < messages.size(); begin = end) {
        while (end < messages.size() && messages[end].place == messages[begin].place) ++end;
        std::uint64_t turn = 0;
        for (const Placed& message : messages.subspan(begin, end - begin)) {
            const patterns::Cut cut = cut_of(problem, message.parcel, end - begin, choice);
            for (std::uint64_t i = 0; i < cut.pieces(); ++i)
                pieces.push_back(
                    {message.place, turn++, message.parcel.peer, cut.piece(i).offset, cut.piece(i).bytes});
        }
    }
    return pieces;
}

void add_pieces(Builder& builder, const Problem& problem, const Parcels& parcels, const Choice& choice) {
    const std::vector<Piece> out = pieces_of(problem, parcels.outgoing(), choice);
    const std::vector<Piece> in = pieces_of(problem, parcels.incoming(), choice);
    const std::size_t lead = choice.values[ahead];
    std::vector<StepId> sends, receives;
    // Twice as many receives as pieces may be on their way: whatever comes finds its place.
    const auto receive = [&] {
        const Piece& piece = in[receives.size()];
        const bool waits = receives.size() >= 2 * lead;
        const std::span<const StepId> order(waits ? &receives[receives.size() - 2 * lead] : nullptr, waits);
        receives.push_back(builder.recv(piece.peer, {Buffer::out, piece.offset, piece.bytes}, order));
    };
    for (const Piece& piece : out) {
        while (receives.size() < in.size() && in[receives.size()].before(piece)) receive();
        StepId order[2];
        std::size_t waits = 0;
        if (sends.size() >= lead) order[waits++] = sends[sends.size() - lead];
        if (receives.size() >= lead) order[waits++] = receives[receives.size() - lead];
        sends.push_back(builder.send(piece.peer, {Buffer::in, piece.offset, piece.bytes}, {order, waits}));
    }
    while (receives.size() < in.size()) receive();
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
    const Parcels parcels(problem, topology, false);
    if (choice.values[chunk_bytes] == 0)
        add_rounds(builder, problem, parcels);
    else
        add_pieces(builder, problem, parcels, choice);
    parcels.copy_own(builder);
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology& topology, const Choice& choice) {
    const Parcels parcels(problem, topology, false);
    const std::uint64_t messages = pieces_of(problem, parcels.outgoing(), choice).size();
    if (messages == 0) return {};
    const std::uint64_t ranks = problem.exchange == nullptr ? static_cast<std::uint64_t>(problem.size) : 1;
    const std::uint64_t rounds = choice.values[chunk_bytes] == 0
                                     ? static_cast<std::uint64_t>(problem.size - 1)
                                     : patterns::ceil_div(messages, choice.values[ahead]);
    return {rounds, ranks * messages, ranks * parcels.sent_bytes()};
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto others = static_cast<std::uint64_t>(problem.size - 1);
    if (choice.values[chunk_bytes] == 0) return {others, others * problem.bytes, problem.bytes, 1};
    const patterns::Cut cut = cut_of(problem, {0, 0, problem.bytes}, 1, choice);
    return {patterns::ceil_div(others * cut.pieces(), choice.values[ahead]), others * problem.bytes,
            std::min(cut.chunk, problem.bytes), 2 * others};
}

}  // namespace thalweg::alltoallv::pairwise
