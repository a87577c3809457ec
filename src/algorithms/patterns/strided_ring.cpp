#include "algorithms/patterns/strided_ring.h"

#include <algorithm>

#include "algorithms/patterns/group.h"

namespace thalweg::patterns {
namespace {

std::uint64_t rounds_of(const Problem& problem, const StridedRing& ring) {
    return ceil_div(static_cast<std::uint64_t>(problem.size - 1), ring.ports);
}

// A block in its pieces. Blocks of more bytes have larger pieces where a pair of ranks would exchange too
// many messages.
Cut pieces_of(const Problem& problem, const StridedRing& ring, const Slice& block) {
    Problem part;
    part.bytes = block.bytes;
    part.offset = block.offset;
    part.messages_per_pair = problem.messages_per_pair / std::max<std::uint64_t>(rounds_of(problem, ring), 1);
    return cut(part, ring.chunk_bytes);
}

std::uint64_t largest_block(const Problem& problem) {
    std::uint64_t largest = problem.blocks.empty() ? problem.bytes : 0;
    for (const Block& block : problem.blocks) largest = std::max(largest, block.bytes);
    return largest;
}

}  // namespace

std::string_view refuse_strided_ring(const Problem& problem, const StridedRing& ring) {
    const bool too_many = rounds_of(problem, ring) > problem.messages_per_pair;
    return too_many ? "a ring of so many ranks exceeds the messages that two ranks may exchange" : "";
}

Schedule build_strided_ring(const Problem& problem, const StridedRing& ring) {
    Builder builder(problem.rank, problem.size);
    const Contributions blocks(problem);
    const int p = problem.size, v = problem.rank;
    const int k = static_cast<int>(std::min<std::uint64_t>(ring.ports, static_cast<std::uint64_t>(p)));
    blocks.add_own(builder);
    for (int done = 0; done < p - 1; done += k) {
        const int passed = (v - done + p) % p;
        const Slice from = done == 0 ? blocks.own() : blocks.place(passed);
        for (int i = 1; i <= k && done + i < p; ++i) {
            const Slice to = blocks.place((v - done - i + p) % p);
            const Cut sent = pieces_of(problem, ring, from), received = pieces_of(problem, ring, to);
            for (std::uint64_t j = 0; j < std::max(sent.pieces(), received.pieces()); ++j) {
                if (j < sent.pieces())
                    builder.send((v + i) % p, {from.buffer, sent.piece(j).offset, sent.piece(j).bytes});
                if (j < received.pieces()) builder.recv((v - i + p) % p, received.piece(j));
            }
        }
    }
    return std::move(builder).finish();
}

Claim claim_strided_ring(const Problem& problem, const StridedRing& ring) {
    const Contributions blocks(problem);
    if (problem.size == 1 || blocks.total() == 0) return {};
    const auto others = static_cast<std::uint64_t>(problem.size - 1);
    Claim claim{rounds_of(problem, ring), 0, all_bytes(blocks)};
    if (problem.blocks.empty()) {
        claim.messages = (others + 1) * others * pieces_of(problem, ring, blocks.place(0)).pieces();
        return claim;
    }
    for (int block = 0; block < problem.size; ++block)
        claim.messages += others * pieces_of(problem, ring, blocks.place(block)).pieces();
    return claim;
}

Price price_strided_ring(const Problem& problem, const StridedRing& ring) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto others = static_cast<std::uint64_t>(problem.size - 1);
    const std::uint64_t largest = largest_block(problem);
    const Cut pieces = pieces_of(problem, ring, {Buffer::out, 0, largest});
    const std::uint64_t piece = std::min(pieces.chunk, largest), mean = std::min(problem.bytes, largest);
    // Every round takes a mean block's time, and what of the largest one does not overlap with the next
    // round.
    Price price{
        0, others * (piece < mean ? mean : piece) + (largest > mean && piece < largest ? largest - mean : 0),
        piece, 1};
    price.ports = std::min(ring.ports, others);
    // The pieces of a round that leaves ports free use them, too.
    price.messages = others * ceil_div(mean, std::max<std::uint64_t>(piece, 1));
    price.rounds = ceil_div(price.messages, price.ports);
    return price;
}

}  // namespace thalweg::patterns
