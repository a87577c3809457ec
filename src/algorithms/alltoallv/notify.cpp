// Whoever receives says that its memory is ready; whoever sends puts into it and signals.
//
//     u ⇠ready⇠ v      then      u →put→ v, signalled        for every u that has something for v
//
// Rounds: 1 + ⌈d/k⌉ for the busiest rank, which sends d messages, k at a time. Bytes: those of the problem,
// and a signal of no bytes for each message. No two ranks synchronise that have nothing to say to each other,
// and nothing arrives before its receiver waits for it. Other hosts first, as spread. Where a transport has
// puts, the plan lets the peers write straight into the program's memory (engine.h, Execution::aim);
// elsewhere the same steps are messages. The ready and done signals that papers on persistent RMA alltoallv
// (E. Namugwanya, arXiv 2604.05099) put in the place of fences.
#include "algorithms/patterns/group.h"
#include "algorithms/patterns/parcels.h"

namespace thalweg::alltoallv::notify {

enum : std::size_t { in_flight };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

Schedule build(const Problem& problem, const Topology& topology, const Choice& choice) {
    Builder builder(problem.rank, problem.size);
    const patterns::Parcels parcels(problem, topology, true);
    const std::uint64_t window = patterns::at_a_time(choice.values[in_flight], parcels.outgoing().size());
    std::vector<StepId> told, heard, puts;
    parcels.each(
        [&](const Parcel& parcel) {
            heard.push_back(builder.recv(parcel.peer, {Buffer::out, 0, 0}));
        },
        [&](const Parcel& parcel) {
            told.push_back(builder.send(parcel.peer, {Buffer::in, 0, 0}));
        });
    std::size_t sent = 0, received = 0;
    parcels.each(
        [&](const Parcel& parcel) {
            StepId order[2] = {heard[sent], 0};
            const bool waits = sent >= window;
            if (waits) order[1] = puts[sent - window];
            puts.push_back(builder.put(parcel.peer, {Buffer::in, parcel.offset, parcel.bytes},
                                       {order, waits ? std::size_t{2} : std::size_t{1}}));
            ++sent;
        },
        [&](const Parcel& parcel) {
            builder.arrival(parcel.peer, {Buffer::out, parcel.offset, parcel.bytes}, {&told[received], 1});
            ++received;
        });
    parcels.copy_own(builder);
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology& topology, const Choice& choice) {
    if (problem.size == 1) return {};
    const patterns::Parcels parcels(problem, topology, true);
    const auto messages = static_cast<std::uint64_t>(parcels.outgoing().size());
    const std::uint64_t ranks = problem.exchange == nullptr ? static_cast<std::uint64_t>(problem.size) : 1;
    const auto signals = static_cast<std::uint64_t>(parcels.incoming().size());
    if (messages + signals == 0) return {};
    const std::uint64_t turns =
        messages == 0 ? 0
                      : patterns::ceil_div(messages, patterns::at_a_time(choice.values[in_flight], messages));
    const std::uint64_t empty = parcels.empty_messages();
    return {1 + turns, ranks * (messages - empty), ranks * parcels.sent_bytes(), 0,
            ranks * (signals + empty)};
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto others = static_cast<std::uint64_t>(problem.size - 1);
    Price price{0, others * problem.bytes, problem.bytes, 2 * others};
    price.ports = patterns::at_a_time(choice.values[in_flight], others);
    price.rounds = patterns::ceil_div(2 * others, price.ports);  // those who are ready say so to each
    price.messages = others;
    return price;
}

}  // namespace thalweg::alltoallv::notify
