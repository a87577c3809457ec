#include "algorithms/patterns/hosts.h"

#include <optional>

#include "algorithms/patterns/arrivals.h"
#include "algorithms/patterns/group.h"
#include "algorithms/patterns/interleaved.h"
#include "algorithms/patterns/levels.h"

namespace thalweg::patterns {
namespace {

enum : std::size_t { intra, inter };

// Messages that a rank sends, and receives, at a time; where there is no such parameter, one.
std::uint64_t ports_of(const Choice& choice) {
    for (std::size_t i = 0; i < choice.algorithm->parameters.size(); ++i)
        if (choice.algorithm->parameters[i].name == "ports") return choice.values[i];
    return 1;
}

// Into how many messages what a leader sends to another may be cut. What comes by all its ports a leader
// hands out, and a pair of its host's ranks exchanges one message beside that. Whole blocks always may go.
std::uint64_t most_between(const Problem& problem, const Topology& topology, const Choice& choice) {
    const auto others = static_cast<std::uint64_t>(std::max(topology.nodes() - 1, 1));
    const std::uint64_t ports = std::clamp<std::uint64_t>(ports_of(choice.parts[inter]), 1, others);
    const std::uint64_t handed_out =
        most_pieces(choice.parts[intra], topology.max_ranks_per_node(), problem.messages_per_pair - 1);
    return std::max(handed_out / ports, ceil_div(others, ports));
}

// The allgather among leaders of `bytes` each, in memory that begins at offset 0.
Problem among_leaders(const Topology& topology, std::uint64_t bytes, std::uint64_t most_between) {
    Problem part;
    part.size = topology.nodes();
    part.in_place = true;
    part.bytes = bytes;
    part.messages_per_pair = most_between;
    return part;
}

// The hand-out of one of `pieces` pieces. A pair of ranks exchanges one message beside them; of whole blocks
// leaders receive no more than two messages of any host.
Problem handed_out(const Problem& problem, const Topology& topology, int local_rank, int ranks,
                   std::size_t pieces, const Slice& piece) {
    const std::size_t hosts = static_cast<std::size_t>(topology.nodes());
    Problem part;
    part.rank = local_rank;
    part.size = ranks;
    part.offset = piece.offset;
    part.bytes = piece.bytes;
    part.messages_per_pair = (problem.messages_per_pair - 1) / std::max(2 * hosts, pieces);
    return part;
}

// All blocks, host by host. The order is that of ranks where every host's ranks are consecutive.
class HostBlocks {
  public:
    HostBlocks(const Problem& problem, const Topology& topology, const Choice& choice)
        : problem_(problem),
          topology_(topology),
          blocks_(problem),
          offset_of_(static_cast<std::size_t>(problem.size)),
          most_between_(most_between(problem, topology, choice)) {
        std::uint64_t at = 0;
        int next = 0;
        for (int node = 0; node < topology.nodes(); ++node) {
            hosts_.push_back({at, 0});
            for (int rank : topology.ranks_on(node)) {
                consecutive_ = consecutive_ && rank == next++;
                offset_of_[static_cast<std::size_t>(rank)] = at;
                at += blocks_.bytes(rank);
            }
            hosts_.back().bytes = at - hosts_.back().offset;
            alike_ = alike_ && hosts_.back().bytes == hosts_.front().bytes;
        }
    }

    const Contributions& blocks() const { return blocks_; }
    const Block& host(int node) const { return hosts_[static_cast<std::size_t>(node)]; }
    // `out` itself can hold the blocks host by host.
    bool in_out() const { return consecutive_ && blocks_.in_order(); }
    // A rank's block in `memory`.
    Slice in_memory(const Base& memory, int rank) const {
        return {memory.buffer, memory.offset + offset_of_[static_cast<std::size_t>(rank)],
                blocks_.bytes(rank)};
    }

    // Refers to this object.
    Problem between(int node) const {
        const std::uint64_t bytes = alike_ ? hosts_.front().bytes : ceil_div(blocks_.total(), hosts_.size());
        Problem part = among_leaders(topology_, bytes, most_between_);
        part.rank = node;
        if (!alike_) part.blocks = hosts_;
        return part;
    }

    Problem inside(int local_rank, int ranks, std::size_t pieces, const Slice& piece) const {
        return handed_out(problem_, topology_, local_rank, ranks, pieces, piece);
    }

  private:
    const Problem& problem_;
    const Topology& topology_;
    Contributions blocks_;
    std::vector<Block> hosts_;
    std::vector<std::uint64_t> offset_of_;
    std::uint64_t most_between_;
    bool consecutive_ = true, alike_ = true;
};

// The schedule of a host's leader among the leaders, and the pieces that it hands out.
struct Leader {
    Schedule schedule;
    std::vector<Arrival> pieces;

    Leader(const HostBlocks& hosts, const Choice& choice, int node, HandOut how)
        : schedule(thalweg::build(choice.parts[inter], hosts.between(node), Topology{})) {
        const Slice all{Buffer::out, 0, hosts.blocks().total()};
        if (how == HandOut::piece_by_piece)
            pieces = arrivals(schedule, all, false);
        else if (all.bytes != 0)
            pieces = {{all, schedule.steps().size()}};
    }
};

}  // namespace

std::string_view refuse_by_hosts(const Problem& problem, const Topology& topology, const Choice& choice) {
    if (!choice.parts[intra].algorithm->parts.empty() || !choice.parts[inter].algorithm->parts.empty())
        return "a combinator cannot be a part of this one: there are two levels";
    if (topology.size() != problem.size) return "the topology describes another number of ranks";
    if (2 * static_cast<std::uint64_t>(topology.nodes()) >= problem.messages_per_pair)
        return "so many hosts exceed the messages that two ranks may exchange";
    // Where hosts and blocks are alike, what the leaders exchange is known without a look at every rank.
    std::optional<HostBlocks> hosts;
    if (!problem.blocks.empty() || topology.min_ranks_per_node() != topology.max_ranks_per_node())
        hosts.emplace(problem, topology, choice);
    const auto widest = static_cast<std::uint64_t>(topology.max_ranks_per_node());
    const Problem leaders =
        hosts ? hosts->between(0)
              : among_leaders(topology, widest * problem.bytes, most_between(problem, topology, choice));
    const std::uint64_t total =
        hosts ? hosts->blocks().total() : static_cast<std::uint64_t>(problem.size) * problem.bytes;
    const std::string_view between = thalweg::refuse(choice.parts[inter], leaders, Topology{});
    if (!between.empty()) return between;
    for (std::size_t ranks : sizes_of_hosts(topology)) {
        const Problem part =
            handed_out(problem, topology, 0, static_cast<int>(ranks), 1, {Buffer::out, 0, total});
        const std::string_view inside = thalweg::refuse(choice.parts[intra], part, Topology{});
        if (ranks > 1 && !inside.empty()) return inside;
    }
    return {};
}

Schedule build_by_hosts(const Problem& problem, const Topology& topology, const Choice& choice, HandOut how) {
    Builder builder(problem.rank, problem.size);
    const HostBlocks hosts(problem, topology, choice);
    const Contributions& blocks = hosts.blocks();
    const int node = topology.node_of(problem.rank), me = topology.local_rank(problem.rank);
    const std::span<const int> local = topology.ranks_on(node);
    const int ranks = static_cast<int>(local.size());
    Base memory{Buffer::out, blocks.start()};
    if (!hosts.in_out()) memory = {Buffer::scratch, builder.scratch(blocks.total()).offset};

    if (memory.buffer == Buffer::scratch && me == 0 && blocks.bytes(problem.rank) != 0)
        builder.copy(hosts.in_memory(memory, problem.rank), blocks.own());
    blocks.add_own(builder);
    for (int i = 1; i < ranks; ++i) {
        const int to = (me + i) % ranks, from = (me - i + ranks) % ranks,
                  sender = local[static_cast<std::size_t>(from)];
        if (blocks.bytes(problem.rank) != 0 && (to == 0 || how == HandOut::piece_by_piece))
            builder.send(local[static_cast<std::size_t>(to)], blocks.own());
        if (blocks.bytes(sender) != 0 && (me == 0 || how == HandOut::piece_by_piece))
            builder.recv(sender, hosts.in_memory(memory, sender));
    }

    const Leader leader(hosts, choice, node, how);
    std::vector<int> leaders;
    for (int other = 0; me == 0 && other < topology.nodes(); ++other)
        leaders.push_back(topology.ranks_on(other).front());
    Interleaved between(builder, leader.schedule, leaders, {Buffer::in}, memory);
    for (const Arrival& piece : leader.pieces) {
        if (me == 0) between.until(piece.steps);
        if (ranks == 1) continue;
        const Problem one = hosts.inside(me, ranks, leader.pieces.size(), piece.slice);
        const Schedule part = thalweg::build(choice.parts[intra], one, Topology{});
        Interleaved(builder, part, local, {Buffer::in}, memory).rest();
    }
    if (me == 0) between.rest();

    for (int rank = 0; memory.buffer == Buffer::scratch && rank < problem.size; ++rank)
        if (rank != problem.rank && blocks.bytes(rank) != 0)
            builder.copy(blocks.place(rank), hosts.in_memory(memory, rank));
    return std::move(builder).finish();
}

Claim claim_by_hosts(const Problem& problem, const Topology& topology, const Choice& choice, HandOut how) {
    const HostBlocks hosts(problem, topology, choice);
    const Contributions& blocks = hosts.blocks();
    Claim total = thalweg::claim(choice.parts[inter], hosts.between(0), Topology{});
    std::uint64_t deepest = 0, gather = 0;
    for (int node = 0; node < topology.nodes(); ++node) {
        const std::span<const int> local = topology.ranks_on(node);
        const auto others = static_cast<std::uint64_t>(local.size() - 1);
        if (others == 0) continue;
        for (int rank : local) {
            const bool sends = how == HandOut::piece_by_piece || rank != local.front();
            const std::uint64_t times = how == HandOut::piece_by_piece ? others : 1;
            if (!sends || blocks.bytes(rank) == 0) continue;
            gather = 1;
            total.messages += times;
            total.bytes += times * blocks.bytes(rank);
            // Handed out at the end, it comes back to its owner.
            if (how == HandOut::at_the_end && hosts.in_out()) total.redundant_bytes += blocks.bytes(rank);
        }
        const Leader leader(hosts, choice, node, how);
        for (const Arrival& piece : leader.pieces) {
            const Problem part =
                hosts.inside(0, static_cast<int>(local.size()), leader.pieces.size(), piece.slice);
            const Claim inside = thalweg::claim(choice.parts[intra], part, Topology{});
            total.messages += inside.messages;
            total.bytes += inside.bytes;
            total.redundant_bytes += inside.redundant_bytes;
            deepest = std::max(deepest, inside.rounds);
        }
    }
    total.rounds += gather + deepest;
    return total;
}

// As if all levels were alike and nothing overlapped; model/ knows the levels and prices them apart.
Price price_by_hosts(const Problem& problem, const Topology& topology, const Choice& choice, HandOut how) {
    const auto ranks = static_cast<std::uint64_t>(std::max(topology.max_ranks_per_node(), 1));
    Problem between;
    between.size = topology.nodes();
    between.bytes = ranks * problem.bytes;
    Price total = choice.parts[inter].algorithm->price(between, Topology{}, choice.parts[inter]);
    Problem inside;
    inside.size = static_cast<int>(ranks);
    inside.bytes = how == HandOut::at_the_end ? static_cast<std::uint64_t>(problem.size) * problem.bytes
                                              : total.piece_bytes;
    const Price hand_out = choice.parts[intra].algorithm->price(inside, Topology{}, choice.parts[intra]);
    total.rounds += ranks - 1 + hand_out.rounds;
    total.bytes += (ranks - 1) * problem.bytes + hand_out.bytes;
    return total;
}

}  // namespace thalweg::patterns
