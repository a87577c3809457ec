// In round i every rank sends to the rank i places after it and receives from the one i places before it.
//
//     size 4, round 1:  v → v+1, v ← v-1      round 2:  v → v+2, v ← v-2      round 3:  v → v+3, v ← v-3
//
// Rounds: p - 1, less those in which a rank has nothing to exchange. Bytes: those of the problem. A round
// begins at a rank when its last one is complete there, so that each link carries one message each way at a
// time. As in Open MPI and MPICH for long messages.
#include "algorithms/patterns/parcels.h"

namespace thalweg::alltoallv::pairwise {

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

Schedule build(const Problem& problem, const Topology& topology, const Choice&) {
    Builder builder(problem.rank, problem.size);
    const patterns::Parcels parcels(problem, topology, false);
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
    parcels.copy_own(builder);
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology& topology, const Choice&) {
    const patterns::Parcels parcels(problem, topology, false);
    const auto messages = static_cast<std::uint64_t>(parcels.outgoing().size());
    if (messages == 0) return {};
    const std::uint64_t ranks = problem.exchange == nullptr ? static_cast<std::uint64_t>(problem.size) : 1;
    return {static_cast<std::uint64_t>(problem.size - 1), ranks * messages, ranks * parcels.sent_bytes()};
}

Price price(const Problem& problem, const Topology&, const Choice&) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto others = static_cast<std::uint64_t>(problem.size - 1);
    return {others, others * problem.bytes, problem.bytes, 1};
}

}  // namespace thalweg::alltoallv::pairwise
