#include "algorithms/patterns/pieces.h"

#include <algorithm>
#include <vector>

#include "algorithms/patterns/group.h"

namespace thalweg::patterns {
namespace {

// A piece and where it stands in the order of all, which is the same at both of its ends.
struct Piece {
    std::uint64_t place = 0, turn = 0;
    int peer = 0;
    std::uint64_t offset = 0, bytes = 0;

    bool before(const Piece& other) const {
        return place != other.place ? place < other.place : turn < other.turn;
    }
};

// Of a message, of which its pair has `alike` in all.
Cut cut_of(const Problem& problem, const Parcel& parcel, std::uint64_t alike, const Pacing& pacing) {
    Problem part;
    part.bytes = parcel.bytes;
    part.offset = parcel.offset;
    part.messages_per_pair = std::max<std::uint64_t>(problem.messages_per_pair / alike, 1);
    return cut(part, pacing.chunk_bytes);
}

// A message of no bytes that travels is one.
std::uint64_t pieces_in(const Cut& cut) { return std::max<std::uint64_t>(cut.pieces(), 1); }

// visit(message, its cut) for each; a pair's messages have one place.
template <typename Visit>
void each_cut(const Problem& problem, std::span<const Parcels::Placed> messages, const Pacing& pacing,
              Visit visit) {
    for (std::size_t begin = 0, end = 0; begin < messages.size(); begin = end) {
        while (end < messages.size() && messages[end].place == messages[begin].place) ++end;
        for (const Parcels::Placed& message : messages.subspan(begin, end - begin))
            visit(message, cut_of(problem, message.parcel, end - begin, pacing));
    }
}

std::vector<Piece> pieces_of(const Problem& problem, std::span<const Parcels::Placed> messages,
                             const Pacing& pacing) {
    std::vector<Piece> pieces;
    each_cut(problem, messages, pacing, [&](const Parcels::Placed& message, const Cut& cut) {
        const bool follows = !pieces.empty() && pieces.back().place == message.place;
        std::uint64_t turn = follows ? pieces.back().turn + 1 : 0;
        for (std::uint64_t i = 0; i < pieces_in(cut); ++i)
            pieces.push_back(
                {message.place, turn++, message.parcel.peer, cut.piece(i).offset, cut.piece(i).bytes});
    });
    return pieces;
}

}  // namespace

std::uint64_t count_pieces(const Problem& problem, std::span<const Parcels::Placed> messages,
                           const Pacing& pacing) {
    std::uint64_t count = 0;
    each_cut(problem, messages, pacing,
             [&](const Parcels::Placed&, const Cut& cut) { count += pieces_in(cut); });
    return count;
}

void add_pieces(Builder& builder, const Problem& problem, std::span<const Parcels::Placed> outgoing,
                std::span<const Parcels::Placed> incoming, const Pacing& pacing) {
    const std::vector<Piece> out = pieces_of(problem, outgoing, pacing);
    const std::vector<Piece> in = pieces_of(problem, incoming, pacing);
    const std::size_t lead = pacing.ahead;
    std::vector<StepId> sends, receives;
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

}  // namespace thalweg::patterns
