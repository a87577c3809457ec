// Every rank sends to every rank it has something for, k messages at a time, other hosts first.
//
//     size 4, k = 1:  v → v+1   then   v → v+2   then   v → v+3
//
// Rounds: ⌈d/k⌉ for the busiest rank, which sends d messages; one with k = 0. Bytes: those of the problem. In
// step i everybody sends to another rank; neighbours meet in pairs (patterns/parcels.h). Messages without
// bytes are not sent (unless Exchange::empty_travel): the cost follows the real neighbours, not p. Other
// hosts first as in the hierarchical variant of arXiv 2604.05099: what a host exchanges inside overlaps with
// what is on the network.
#include "algorithms/patterns/group.h"
#include "algorithms/patterns/parcels.h"

namespace thalweg::alltoallv::spread {

enum : std::size_t { in_flight };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

Schedule build(const Problem& problem, const Topology& topology, const Choice& choice) {
    Builder builder(problem.rank, problem.size);
    const patterns::Parcels parcels(problem, topology, true);
    const std::uint64_t window = patterns::at_a_time(choice.values[in_flight], parcels.outgoing().size());
    std::vector<StepId> sends;
    parcels.each(
        [&](const Parcel& parcel) {
            const bool waits = sends.size() >= window;
            const std::span<const StepId> order(waits ? &sends[sends.size() - window] : nullptr, waits);
            sends.push_back(builder.send(parcel.peer, {Buffer::in, parcel.offset, parcel.bytes}, order));
        },
        [&](const Parcel& parcel) {
            builder.recv(parcel.peer, {Buffer::out, parcel.offset, parcel.bytes});
        });
    parcels.copy_own(builder);
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology& topology, const Choice& choice) {
    if (problem.size == 1) return {};
    const patterns::Parcels parcels(problem, topology, true);
    const auto messages = static_cast<std::uint64_t>(parcels.outgoing().size());
    const std::uint64_t ranks = problem.exchange == nullptr ? static_cast<std::uint64_t>(problem.size) : 1;
    if (messages == 0) return {};
    const std::uint64_t empty = parcels.empty_messages();
    return {patterns::ceil_div(messages, patterns::at_a_time(choice.values[in_flight], messages)),
            ranks * (messages - empty), ranks * parcels.sent_bytes(), 0, ranks * empty};
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto others = static_cast<std::uint64_t>(problem.size - 1);
    Price price{0, others * problem.bytes, problem.bytes, others};
    price.ports = patterns::at_a_time(choice.values[in_flight], others);
    price.rounds = patterns::ceil_div(others, price.ports);
    price.messages = others;
    return price;
}

}  // namespace thalweg::alltoallv::spread
