#include "model/cost.h"

#include <algorithm>
#include <vector>

namespace thalweg {
namespace {

constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

// On a level of fewer ports than the price counts on, the messages of a round take turns. `sharing` ranks use
// the ports together. A last round of fewer messages than there are ports takes as long as the others.
Picoseconds time_of(const Price& price, const Level& level, std::uint64_t sharing = 1) {
    const std::uint64_t level_ports = std::max<std::uint64_t>(level.ports, 1);
    const std::uint64_t ports = std::max<std::uint64_t>(price.ports, 1);
    const std::uint64_t at_once = std::min(ports * sharing, level_ports);
    std::uint64_t rounds = price.rounds * ceil_div(ports, level_ports), idle = 0;
    if (price.messages != 0) {
        rounds = price.rounds - ceil_div(price.messages, ports) +
                 ceil_div(price.messages, std::min(ports, level_ports));
        const std::uint64_t left = sharing * price.messages % at_once;
        idle = left == 0 ? 0 : at_once - left;
    }
    const std::uint64_t bytes = ceil_div(sharing * price.bytes + idle * price.piece_bytes, at_once);
    return rounds * level.latency + level.transfer(bytes);
}

// From one piece to the next, on the busiest rank.
Picoseconds period_of(const Price& price, std::uint64_t piece_bytes, const Level& level) {
    return price.degree * (level.latency + level.transfer(piece_bytes)) /
           std::max<std::uint64_t>(price.flows, 1);
}

Price price_of(const Choice& choice, const Problem& problem) {
    return choice.algorithm->price(problem, Topology{}, choice);
}

std::uint64_t value_of(const Choice& choice, std::string_view parameter) {
    const auto& parameters = choice.algorithm->parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (parameters[i].name == parameter) return choice.values[i];
    return 0;
}

constexpr std::size_t intra = 0, inter = 1;  // the parts of the combinators, in the order of their rows

// What all forms by hosts have in common: out of `bytes` in all, pieces of piece_bytes come from the network
// within `network`, one in every outer_period, and go through a host of `ranks` ranks. The time until the
// last one is through; `leaders` of a host do all this at once, each with `bytes` of its own.
//
// The last piece goes through its host after everything else; before that, a host that needs longer for a
// piece than the network holds the network up. And a host's memory carries the copies of all pieces, one
// after another, while a rank that posts copies nothing; until as many ranks copy as it takes to keep the
// memory busy, each goes at its own rate.
Picoseconds pass_on(const Choice& choice, std::uint64_t piece_bytes, Picoseconds network,
                    Picoseconds outer_period, std::uint64_t bytes, int ranks, const Machine& machine,
                    std::uint64_t leaders = 1) {
    if (ranks <= 1 || bytes == 0) return network;
    Problem inside;
    inside.size = ranks;
    inside.bytes = std::min(std::max<std::uint64_t>(piece_bytes, 1), bytes);
    const std::uint64_t pieces = ceil_div(bytes, inside.bytes);
    const Price inner = price_of(choice.parts[intra], inside);
    const std::uint64_t cuts =
        inner.piece_bytes != 0 && inner.piece_bytes < inside.bytes ? inside.bytes / inner.piece_bytes : 1;
    const Picoseconds inner_period = cuts * period_of(inner, inner.piece_bytes, machine.intra);
    const Picoseconds held_up =
        inner_period > outer_period ? (pieces - 1) * (inner_period - outer_period) : 0;
    const Picoseconds by_ports = network + held_up + time_of(inner, machine.intra);

    const Picoseconds copied = machine.copies(leaders * static_cast<std::uint64_t>(ranks - 1) * inside.bytes);
    if (copied == 0 || machine.intra.bytes_per_second == 0) return by_ports;
    const std::uint64_t busy = machine.host_bytes_per_second / machine.intra.bytes_per_second;
    const Picoseconds filled =
        std::min(inner.rounds, busy) * (machine.intra.latency + machine.intra.transfer(inner.piece_bytes));
    const Picoseconds behind_first = (pieces - 1) * outer_period;
    const Picoseconds by_memory = (network > behind_first ? network - behind_first : 0) +
                                  (pieces - 1) * (copied + inner.degree * machine.intra.latency) +
                                  std::max(copied, filled);
    return std::max(by_ports, by_memory);
}

Picoseconds predict_bcast(const Choice& choice, const Problem& problem, const Topology& topology,
                          const Machine& machine) {
    Problem between = problem, inside = problem;
    between.size = topology.nodes();
    between.root = topology.node_of(problem.root);
    inside.size = topology.max_ranks_per_node();
    inside.root = 0;
    if (topology.nodes() <= 1)
        return std::max(time_of(price_of(choice.parts[intra], inside), machine.intra),
                        machine.copies(static_cast<std::uint64_t>(inside.size - 1) * problem.bytes));
    const Price outer = price_of(choice.parts[inter], between);
    const std::uint64_t piece = std::min(std::max<std::uint64_t>(outer.piece_bytes, 1), problem.bytes);
    return pass_on(choice, piece, time_of(outer, machine.inter), period_of(outer, piece, machine.inter),
                   problem.bytes, inside.size, machine);
}

Picoseconds predict_allgather(const Choice& choice, const Problem& problem, const Topology& topology,
                              const Machine& machine) {
    const auto ranks = static_cast<std::uint64_t>(topology.max_ranks_per_node());
    const std::uint64_t all = static_cast<std::uint64_t>(problem.size) * problem.bytes;
    // Asked for many sizes of pieces: of hosts that are alike none is looked at.
    const bool alike = topology.min_ranks_per_node() == topology.max_ranks_per_node();
    std::vector<Block> hosts;
    for (int node = 0; !alike && node < topology.nodes(); ++node)
        hosts.push_back({0, topology.ranks_on(node).size() * problem.bytes});
    Problem between;
    between.size = topology.nodes();
    between.bytes = ceil_div(all, static_cast<std::uint64_t>(topology.nodes()));
    between.blocks = hosts;
    Price outer;
    if (topology.nodes() > 1) outer = price_of(choice.parts[inter], between);
    const Picoseconds network = time_of(outer, machine.inter);
    const Picoseconds exchange =
        std::max((ranks - 1) * (machine.intra.latency + machine.intra.transfer(problem.bytes)),
                 machine.copies(ranks * (ranks - 1) * problem.bytes));
    if (choice.algorithm->name == "node_leader") {
        const std::uint64_t others = all - ranks * problem.bytes;
        const std::uint64_t pieces = ceil_div(others, std::max<std::uint64_t>(outer.piece_bytes, 1));
        return exchange + pass_on(choice, outer.piece_bytes, network,
                                  network / std::max<std::uint64_t>(pieces, 1), others,
                                  topology.max_ranks_per_node(), machine);
    }
    Problem whole;
    whole.size = topology.max_ranks_per_node();
    whole.bytes = all;
    return exchange + network +
           std::max(time_of(price_of(choice.parts[intra], whole), machine.intra),
                    machine.copies((ranks - 1) * all));
}

Picoseconds predict_allreduce(const Choice& choice, const Problem& problem, const Topology& topology,
                              const Machine& machine) {
    const auto fewest = static_cast<std::uint64_t>(topology.min_ranks_per_node());
    const auto ranks = static_cast<std::uint64_t>(topology.max_ranks_per_node());
    const std::uint64_t asked = value_of(choice, "leaders");
    const std::uint64_t leaders = asked == 0 ? fewest : std::min<std::uint64_t>(asked, fewest);
    Problem between = problem;
    between.size = topology.nodes();
    between.bytes = ceil_div(problem.bytes, leaders);
    Price outer;
    if (topology.nodes() > 1) outer = price_of(choice.parts[inter], between);
    // A leader receives its share from every rank of its host and combines it, piece by piece, as far as a
    // pair has numbers for them.
    const std::uint64_t chunk = value_of(choice, "chunk_bytes");
    const std::uint64_t most = std::max<std::uint64_t>(problem.messages_per_pair / 2, 1);
    const std::uint64_t pieces = chunk == 0 ? 1 : std::min(ceil_div(between.bytes, chunk), most);
    const Picoseconds received = pieces * machine.intra.latency + machine.intra.transfer(between.bytes);
    const Picoseconds combined = machine.reduction(ceil_div(between.bytes, pieces));
    const Picoseconds copied = machine.copies((ranks - 1) * problem.bytes);
    const Picoseconds inside = std::max((ranks - 1) * received, copied) + (ranks > 1 ? combined : 0);
    // All leaders of a host send over its ports, and over one of them in turn: each message costs its
    // latency.
    const std::uint64_t at_once = std::min(leaders, std::max<std::uint64_t>(machine.inter.ports, 1));
    outer.rounds = ceil_div(leaders * outer.rounds, at_once);
    outer.bytes = ceil_div(leaders * outer.bytes, at_once);
    const Picoseconds network = time_of(outer, machine.inter) + machine.reduction(outer.reduced_bytes);
    const std::uint64_t piece = topology.nodes() > 1 ? outer.piece_bytes : between.bytes;
    const Picoseconds period = ceil_div(leaders, at_once) * period_of(outer, piece, machine.inter);
    return inside + pass_on(choice, piece, network, period, between.bytes, topology.max_ranks_per_node(),
                            machine, leaders);
}

// With no more messages of a rank on their way than there are ports, at which they take turns: a last round
// of fewer than the others would be counted in full.
Choice paced_by(const Level& level, Choice choice) {
    const std::uint64_t ports = std::max<std::uint64_t>(level.ports, 1);
    const auto& parameters = choice.algorithm->parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if ((parameters[i].name == "in_flight" || parameters[i].name == "ahead") &&
            (choice.values[i] == 0 || choice.values[i] > ports))
            choice.values[i] = ports;
    return choice;
}

// Only what leaves the hosts counts, but where everything goes through leaders, who collect before and hand
// out after.
Picoseconds predict_alltoallv(const Choice& choice, const Problem& problem, const Topology& topology,
                              const Machine& machine) {
    const Level& level = topology.nodes() <= 1 ? machine.intra : machine.inter;
    Price price = choice.algorithm->price(problem, topology, paced_by(level, choice));
    if (topology.nodes() <= 1) return time_of(price, level);
    const auto ranks = static_cast<std::uint64_t>(topology.max_ranks_per_node());
    const std::uint64_t crossing = (static_cast<std::uint64_t>(problem.size) - ranks) * problem.bytes;
    if (choice.algorithm->name == "node_leader") {
        const Picoseconds inside =
            (ranks - 1) * machine.intra.latency +
            std::max(machine.intra.transfer((ranks - 1) * crossing), machine.copies((ranks - 1) * crossing));
        return time_of(price, machine.inter) + 2 * inside;
    }
    price.bytes = crossing;
    price.messages = price.messages / (static_cast<std::uint64_t>(problem.size) - 1) *
                     (static_cast<std::uint64_t>(problem.size) - ranks);
    return time_of(price, machine.inter, ranks);
}

}  // namespace

Picoseconds predict(const Choice& choice, const Problem& problem, const Topology& topology,
                    const Machine& machine) {
    const Collective collective = choice.algorithm->collective;
    if (problem.size <= 1 || (problem.bytes == 0 && collective != Collective::barrier)) return 0;
    if (collective == Collective::alltoallv) return predict_alltoallv(choice, problem, topology, machine);
    if (choice.parts.empty()) {
        const Price price = price_of(choice, problem);
        const Picoseconds reduced = machine.reduction(price.reduced_bytes);
        if (topology.nodes() <= 1) return time_of(price, machine.intra) + reduced;
        return time_of(price, machine.inter, static_cast<std::uint64_t>(topology.max_ranks_per_node())) +
               reduced;
    }
    switch (collective) {
        case Collective::bcast:
            return predict_bcast(choice, problem, topology, machine);
        case Collective::allgather:
            return predict_allgather(choice, problem, topology, machine);
        case Collective::allreduce:
            return predict_allreduce(choice, problem, topology, machine);
        case Collective::barrier:
        case Collective::alltoallv:
            break;
    }
    return 0;
}

Picoseconds wire_limit(Collective collective, std::uint64_t bytes, const Topology& topology,
                       const Machine& machine) {
    if (topology.size() <= 1 || (bytes == 0 && collective != Collective::barrier)) return 0;
    const bool one_host = topology.nodes() <= 1;
    const Level& level = one_host ? machine.intra : machine.inter;
    const auto ranks = static_cast<std::uint64_t>(topology.size());
    const std::uint64_t hosts = one_host ? ranks : static_cast<std::uint64_t>(topology.nodes());
    std::uint64_t crossing = bytes;
    if (collective == Collective::allgather) {
        const int fewest = one_host ? 1 : topology.min_ranks_per_node();
        crossing = (ranks - static_cast<std::uint64_t>(fewest)) * bytes;
    }
    if (collective == Collective::allreduce) crossing = 2 * (bytes - bytes / hosts);
    if (collective == Collective::alltoallv) {
        crossing = one_host ? (ranks - 1) * bytes : 0;
        for (int node = 0; !one_host && node < topology.nodes(); ++node) {
            const std::uint64_t here = topology.ranks_on(node).size();
            crossing = std::max(crossing, here * (ranks - here) * bytes);
        }
    }
    return level.latency + level.transfer(ceil_div(crossing, std::max<std::uint64_t>(level.ports, 1)));
}

Picoseconds copy_limit(Collective collective, std::uint64_t bytes, const Topology& topology,
                       const Machine& machine) {
    const auto others = static_cast<std::uint64_t>(std::max(topology.max_ranks_per_node() - 1, 0));
    switch (collective) {
        case Collective::bcast:
            return machine.copies(others * bytes);
        case Collective::allgather:
            return machine.copies(others * static_cast<std::uint64_t>(topology.size()) * bytes);
        case Collective::allreduce:
            return machine.copies(2 * others * bytes);
        case Collective::barrier:
        case Collective::alltoallv:
            break;
    }
    return 0;
}

}  // namespace thalweg
