#include "algorithms/patterns/pieces.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "algorithms/patterns/group.h"

namespace thalweg::patterns {
namespace {

// A piece and where it stands in the order of all, which is the same at both of its ends.
struct Piece {
    std::uint64_t place = 0, turn = 0;
    int peer = 0;
    std::uint64_t offset = 0, bytes = 0;
    // Of a message that says itself where it ends; else full_bytes is 0, and both ends count alike.
    std::uint64_t full_bytes = 0, may_follow = 0;

    bool before(const Piece& other) const {
        return place != other.place ? place < other.place : turn < other.turn;
    }
    Builder::Piece numbered() const {
        return {static_cast<std::uint32_t>(turn), static_cast<std::uint32_t>(may_follow), full_bytes};
    }
};

// Of messages whose sizes are not known to agree, nor known on other ranks: pieces that a rank sends and
// receives, about. One without memory has to have room for them in what it has set aside.
constexpr std::uint64_t most_open_pieces = 1 << 15;

// The share of a pair's numbers that each of its `alike` messages has; depends on what both ends know.
std::uint64_t numbers_of(const Problem& problem, std::uint64_t alike) {
    const auto others = static_cast<std::uint64_t>(std::max(problem.size - 1, 1));
    const std::uint64_t pair = std::min(problem.messages_per_pair, most_open_pieces / (2 * others));
    return std::max<std::uint64_t>(pair / alike, 1);
}

bool sizes_agree(const Problem& problem) {
    return problem.exchange == nullptr || problem.exchange->sizes_agree;
}

// The pieces of a message whose bytes both ends know, of which its pair has `alike` in all; `turn` is that of
// the first. A message of no bytes that travels is one.
template <typename Visit>
void cut_known(const Problem& problem, const Parcel& parcel, std::uint64_t alike, const Pacing& pacing,
               Piece first, Visit visit) {
    Problem part;
    part.bytes = parcel.bytes;
    part.offset = parcel.offset;
    part.messages_per_pair = std::max<std::uint64_t>(problem.messages_per_pair / alike, 1);
    const Cut all = cut(part, pacing.chunk_bytes);
    Piece piece = first;
    for (std::uint64_t i = 0; i < std::max<std::uint64_t>(all.pieces(), 1); ++i, ++piece.turn) {
        piece.offset = all.piece(i).offset;
        piece.bytes = all.piece(i).bytes;
        visit(piece);
    }
}

// Of a message whose other end may give it another size: nothing but the number of pieces depends on its own.
// It has a fixed share of the pair's numbers, and the last of these is for all that is left.
template <typename Visit>
void cut_open(const Problem& problem, const Parcel& parcel, std::uint64_t alike, const Pacing& pacing,
              Piece first, Visit visit) {
    Piece piece = first;
    piece.offset = parcel.offset;
    for (piece.may_follow = numbers_of(problem, alike) - 1;; --piece.may_follow, ++piece.turn) {
        const bool rest = piece.may_follow == 0;
        piece.full_bytes = rest ? std::numeric_limits<std::uint64_t>::max() : pacing.chunk_bytes;
        piece.bytes = std::min(piece.full_bytes, parcel.offset + parcel.bytes - piece.offset);
        visit(piece);
        if (piece.bytes < piece.full_bytes) return;
        piece.offset += piece.bytes;
    }
}

// visit(piece) for each piece of each message; a pair's messages have one place.
template <typename Visit>
void each_piece(const Problem& problem, std::span<const Parcels::Placed> messages, const Pacing& pacing,
                Visit visit) {
    const bool known = sizes_agree(problem);
    for (std::size_t begin = 0, end = 0; begin < messages.size(); begin = end) {
        while (end < messages.size() && messages[end].place == messages[begin].place) ++end;
        const std::uint64_t alike = end - begin;
        Piece first;
        first.place = messages[begin].place;
        for (const Parcels::Placed& message : messages.subspan(begin, alike)) {
            first.peer = message.parcel.peer;
            std::uint64_t next = 0;
            const auto visit_one = [&](const Piece& piece) {
                next = piece.turn + 1;
                visit(piece);
            };
            if (known)
                cut_known(problem, message.parcel, alike, pacing, first, visit_one);
            else
                cut_open(problem, message.parcel, alike, pacing, first, visit_one);
            first.turn = known ? next : first.turn + numbers_of(problem, alike);
        }
    }
}

std::vector<Piece> pieces_of(const Problem& problem, std::span<const Parcels::Placed> messages,
                             const Pacing& pacing) {
    std::vector<Piece> pieces;
    each_piece(problem, messages, pacing, [&](const Piece& piece) { pieces.push_back(piece); });
    return pieces;
}

StepId add_send(Builder& builder, const Piece& piece, std::span<const StepId> order) {
    const Slice slice{Buffer::in, piece.offset, piece.bytes};
    if (piece.full_bytes == 0) return builder.send(piece.peer, slice, order);
    return builder.send_piece(piece.peer, slice, piece.numbered(), order);
}

StepId add_recv(Builder& builder, const Piece& piece, std::span<const StepId> order) {
    const Slice slice{Buffer::out, piece.offset, piece.bytes};
    if (piece.full_bytes == 0) return builder.recv(piece.peer, slice, order);
    return builder.recv_piece(piece.peer, slice, piece.numbered(), order);
}

}  // namespace

PieceCount count_pieces(const Problem& problem, std::span<const Parcels::Placed> messages,
                        const Pacing& pacing) {
    PieceCount count;
    if (pacing.chunk_bytes == 0) {
        count.all = messages.size();
        for (const Parcels::Placed& message : messages) count.empty += message.parcel.bytes == 0;
        return count;
    }
    each_piece(problem, messages, pacing, [&](const Piece& piece) {
        ++count.all;
        count.empty += piece.bytes == 0;
    });
    return count;
}

void add_pieces(Builder& builder, const Problem& problem, std::span<const Parcels::Placed> outgoing,
                std::span<const Parcels::Placed> incoming, const Pacing& pacing) {
    const std::vector<Piece> out = pieces_of(problem, outgoing, pacing);
    const std::vector<Piece> in = pieces_of(problem, incoming, pacing);
    const std::size_t lead = pacing.ahead;
    std::vector<StepId> sends, receives;
    const auto receive = [&] {
        const bool waits = receives.size() >= 2 * lead;
        const std::span<const StepId> order(waits ? &receives[receives.size() - 2 * lead] : nullptr, waits);
        receives.push_back(add_recv(builder, in[receives.size()], order));
    };
    for (const Piece& piece : out) {
        while (receives.size() < in.size() && in[receives.size()].before(piece)) receive();
        StepId order[2];
        std::size_t waits = 0;
        if (sends.size() >= lead) order[waits++] = sends[sends.size() - lead];
        if (receives.size() >= lead) order[waits++] = receives[receives.size() - lead];
        sends.push_back(add_send(builder, piece, {order, waits}));
    }
    while (receives.size() < in.size()) receive();
}

}  // namespace thalweg::patterns
