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
//
// Of neighbours (Exchange::in_pairs) only what leaves the host is cut. Inside it messages travel whole and at
// once: one copy each, which fills the wait for the wire.
#include <algorithm>

#include "algorithms/patterns/group.h"
#include "algorithms/patterns/parcels.h"
#include "algorithms/patterns/pieces.h"

namespace thalweg::alltoallv::pairwise {

enum : std::size_t { chunk_bytes, ahead };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

namespace {

using patterns::Parcels;
using Messages = std::span<const Parcels::Placed>;

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

// In pieces there are no rounds, and neighbours may meet in pairs: hosts first.
bool in_pairs(const Problem& problem, const Choice& choice) {
    return choice.values[chunk_bytes] != 0 && problem.exchange && problem.exchange->in_pairs;
}

// How many of them, the first ones, are cut.
std::size_t cut_ones(const Problem& problem, const Topology& topology, const Choice& choice,
                     Messages messages) {
    if (!in_pairs(problem, choice) || topology.size() != problem.size || topology.nodes() < 2)
        return messages.size();
    const auto leaves = [&](const Parcels::Placed& message) {
        return topology.node_of(message.parcel.peer) != topology.node_of(problem.rank);
    };
    return static_cast<std::size_t>(std::partition_point(messages.begin(), messages.end(), leaves) -
                                    messages.begin());
}

}  // namespace

Schedule build(const Problem& problem, const Topology& topology, const Choice& choice) {
    Builder builder(problem.rank, problem.size);
    const Parcels parcels(problem, topology, in_pairs(problem, choice));
    if (choice.values[chunk_bytes] == 0) {
        add_rounds(builder, problem, parcels);
    } else {
        const Messages out = parcels.outgoing(), in = parcels.incoming();
        const std::size_t out_cut = cut_ones(problem, topology, choice, out),
                          in_cut = cut_ones(problem, topology, choice, in);
        patterns::add_pieces(builder, problem, out.first(out_cut), in.first(in_cut), pacing_of(choice));
        for (const auto& [place, parcel] : in.subspan(in_cut))
            builder.recv(parcel.peer, {Buffer::out, parcel.offset, parcel.bytes});
        for (const auto& [place, parcel] : out.subspan(out_cut))
            builder.send(parcel.peer, {Buffer::in, parcel.offset, parcel.bytes});
    }
    parcels.copy_own(builder);
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology& topology, const Choice& choice) {
    const Parcels parcels(problem, topology, in_pairs(problem, choice));
    const Messages all = parcels.outgoing();
    const std::size_t cut = cut_ones(problem, topology, choice, all);
    auto [messages, empty] = patterns::count_pieces(problem, all.first(cut), pacing_of(choice));
    const std::uint64_t pieces = messages;
    for (const Parcels::Placed& whole : all.subspan(cut)) {
        ++messages;
        empty += whole.parcel.bytes == 0;
    }
    if (messages == 0) return {};
    const std::uint64_t ranks = problem.exchange == nullptr ? static_cast<std::uint64_t>(problem.size) : 1;
    const std::uint64_t rounds =
        choice.values[chunk_bytes] == 0
            ? static_cast<std::uint64_t>(problem.size - 1)
            : std::max<std::uint64_t>(patterns::ceil_div(pieces, choice.values[ahead]), 1);
    return {rounds, ranks * (messages - empty), ranks * parcels.sent_bytes(), 0, ranks * empty};
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto others = static_cast<std::uint64_t>(problem.size - 1);
    if (choice.values[chunk_bytes] == 0) return {others, others * problem.bytes, problem.bytes, 1};
    const patterns::Cut cut = patterns::cut(problem, choice.values[chunk_bytes]);
    Price price{0, others * problem.bytes, std::min(cut.chunk, problem.bytes), 2 * others};
    price.messages = others * cut.pieces();
    price.ports = patterns::at_a_time(choice.values[ahead], price.messages);
    price.rounds = patterns::ceil_div(price.messages, price.ports);
    return price;
}

}  // namespace thalweg::alltoallv::pairwise
