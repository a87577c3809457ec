// What leaves the host goes in pieces, no further ahead of what has come than a few; what stays is sent at
// once.
//
//     to other hosts, ahead 2:   send  a1 a2 b1 b2        b1 waits for a1 and x1, b2 for a2 and x2
//                                recv  x1 x2 y1 y2        in the order of all pieces, as pairwise
//     inside the host:           send  c d      recv  z    when they like
//
// Rounds: at most ⌈pieces / ahead⌉ of all messages of a rank, or one: a piece waits for what stands at least
// so many turns before it, and those inside the host pass without a message. Bytes: those of the problem. For
// neighbours whose messages to other hosts are large enough to be announced first: as pairwise, pieces need
// no announcement that waits behind the data of others, and copies inside the host wait for none of them.
// Where messages are sent without announcement there is nothing to gain: between 4 hosts, faces of 64 KiB
// took 1.12 times the wire's time this way and 1.06 times by spread. Own.
#include <algorithm>

#include "algorithms/patterns/group.h"
#include "algorithms/patterns/parcels.h"
#include "algorithms/patterns/pieces.h"

namespace thalweg::alltoallv::paced {

enum : std::size_t { chunk_bytes, ahead };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

namespace {

using patterns::Parcels;

patterns::Pacing pacing_of(const Choice& choice) {
    return {choice.values[chunk_bytes], choice.values[ahead]};
}

}  // namespace

Schedule build(const Problem& problem, const Topology& topology, const Choice& choice) {
    Builder builder(problem.rank, problem.size);
    const Parcels parcels(problem, topology, true);
    const auto out = parcels.leaving(parcels.outgoing()), in = parcels.leaving(parcels.incoming());
    patterns::add_pieces(builder, problem, out, in, pacing_of(choice));
    Parcels::each(
        parcels.outgoing().subspan(out.size()), parcels.incoming().subspan(in.size()),
        [&](const Parcel& parcel) {
            builder.send(parcel.peer, {Buffer::in, parcel.offset, parcel.bytes});
        },
        [&](const Parcel& parcel) {
            builder.recv(parcel.peer, {Buffer::out, parcel.offset, parcel.bytes});
        });
    parcels.copy_own(builder);
    return std::move(builder).finish();
}

namespace {

// Of a rank that sends so many pieces to other hosts and so many messages inside its own.
std::uint64_t rounds_of(std::uint64_t pieces, std::uint64_t staying, const Choice& choice) {
    return std::max(patterns::ceil_div(pieces, choice.values[ahead]), std::uint64_t{staying != 0});
}

// All pairs alike: ranks of a host are too.
Claim claim_alike(const Problem& problem, const Topology& topology, const Choice& choice) {
    const auto ranks = static_cast<std::uint64_t>(problem.size);
    const std::uint64_t pieces = patterns::cut(problem, choice.values[chunk_bytes]).pieces();
    Claim sum;
    sum.bytes = ranks * (ranks - 1) * problem.bytes;
    if (topology.size() != problem.size || topology.nodes() == 1) {
        sum.rounds = 1;
        sum.messages = ranks * (ranks - 1);
        return sum;
    }
    sum.rounds = rounds_of((ranks - 1) * pieces, 0, choice);
    for (int host = 0; host < topology.nodes(); ++host) {
        const std::uint64_t here = topology.ranks_on(host).size();
        sum.messages += here * ((ranks - here) * pieces + here - 1);
        sum.rounds_at_most |= here > 1;
    }
    return sum;
}

}  // namespace

Claim claim(const Problem& problem, const Topology& topology, const Choice& choice) {
    if (problem.exchange == nullptr) {
        if (problem.size == 1 || problem.bytes == 0) return {};
        return claim_alike(problem, topology, choice);
    }
    const Parcels parcels(problem, topology, true);
    const auto out = parcels.leaving(parcels.outgoing());
    const std::uint64_t pieces = patterns::count_pieces(problem, out, pacing_of(choice));
    const std::uint64_t staying = parcels.outgoing().size() - out.size();
    return {rounds_of(pieces, staying, choice), pieces + staying, parcels.sent_bytes()};
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto others = static_cast<std::uint64_t>(problem.size - 1);
    const patterns::Cut cut = patterns::cut(problem, choice.values[chunk_bytes]);
    return {patterns::ceil_div(others * cut.pieces(), choice.values[ahead]), others * problem.bytes,
            std::min(cut.chunk, problem.bytes), 2 * others};
}

}  // namespace thalweg::alltoallv::paced
