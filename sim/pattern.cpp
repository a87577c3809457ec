#include "sim/pattern.h"

#include "model/exchange.h"

namespace thalweg::sim {

Exchange exchange_of(const Pattern& pattern, int rank, bool all_travel) {
    Exchange exchange;
    exchange.empty_travel = all_travel;
    const auto lay = [&](std::vector<Parcel>& parcels, auto bytes_with) {
        std::uint64_t offset = 0;
        for (int peer = 0; peer < pattern.ranks; ++peer) {
            const std::uint64_t bytes = bytes_with(peer);
            if (bytes == 0 && (!all_travel || peer == rank)) continue;
            parcels.push_back({peer, offset, bytes});
            offset += bytes;
        }
    };
    lay(exchange.outgoing, [&](int peer) { return pattern.bytes(rank, peer); });
    lay(exchange.incoming, [&](int peer) { return pattern.bytes(peer, rank); });
    return exchange;
}

void as_planned(const Pattern& pattern, const Choice& choice, const Topology& topology, Exchange& exchange) {
    exchange.sizes_agree = true;
    exchange.in_pairs =
        (topology.nodes() > 1 && is_sparse(pattern.traits, pattern.ranks) && !pattern.traits.in_step) ||
        meets_in_pairs(choice, pattern.traits, topology);
}

void inform_leader(const Pattern& pattern, int rank, const Topology& topology, Exchange& exchange) {
    exchange.hosts_informed = true;
    const int host = topology.node_of(rank);
    if (topology.ranks_on(host).front() != rank) return;
    const auto note = [&](int from, int to) {
        if (const std::uint64_t bytes = pattern.bytes(from, to); bytes != 0)
            exchange.crossing.push_back({from, to, bytes});
    };
    // What leaves goes to all, what comes goes to the host's own: not all pairs, of which there are many.
    for (int from = 0; from < pattern.ranks; ++from) {
        if (topology.node_of(from) != host) {
            for (const int to : topology.ranks_on(host)) note(from, to);
            continue;
        }
        for (int to = 0; to < pattern.ranks; ++to)
            if (topology.node_of(to) != host) note(from, to);
    }
}

void look_at(Pattern& pattern, const Topology& topology) {
    TraitWords words{};
    for (int rank = 0; rank < pattern.ranks; ++rank) {
        const Exchange exchange = exchange_of(pattern, rank, false);
        count_exchange(words, exchange.outgoing, exchange.incoming, rank, pattern.ranks, topology);
    }
    pattern.traits = traits_of(words, pattern.ranks);
}

double pattern_limit(const Topology& topology, const Pattern& pattern, const SimMachine& machine) {
    const auto most = static_cast<double>(exchange_link_bytes(pattern.matrix, topology));
    return most == 0 ? 0 : most / (machine.link_rate * machine.rails) + machine.inter_latency;
}

std::string refuse(const Pattern& pattern, std::uint64_t most) {
    for (int rank = 0; rank < pattern.ranks; ++rank) {
        std::uint64_t sent = 0, received = 0;
        for (int peer = 0; peer < pattern.ranks; ++peer)
            if (__builtin_add_overflow(sent, pattern.bytes(rank, peer), &sent) ||
                __builtin_add_overflow(received, pattern.bytes(peer, rank), &received) || sent > most ||
                received > most)
                return "rank " + std::to_string(rank) + " has more than " + std::to_string(most >> 40) +
                       " TiB to send or to receive";
    }
    return {};
}

}  // namespace thalweg::sim
