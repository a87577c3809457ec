// Each leader combines its share of its host's vectors, reduces it with its peers, and hands the result out.
//
//     2 hosts of 2 ranks, 2 leaders:
//
//     0 ⇄ 1   2 ⇄ 3    0 and 2 combine the first half of their hosts' vectors, 1 and 3 the second
//     0 ⇄ 2   1 ⇄ 3    inter, one half each
//     0 ⇄ 1   2 ⇄ 3    and each hands its half out, piece by piece
//
// A host's vectors are combined before anything leaves it: with an inter of 2 n (h-1)/h bytes, a link between
// hosts carries no more than that, however many ranks a host has, and all leaders of a host share in
// combining and in handing out. Operands are combined in the order of local ranks outwards from the leader's,
// at one place: all ranks get the same bits. Rounds: those of inter, those of intra, and the host's
// reduction, whose pieces follow one another. Bytes inside a host: n (ranks - 1) each way. Several leaders
// per host: M. Bayatpour et al.: Scalable Reduction Collectives with Data Partitioning-based Multi-Leader
// Design, SC 2017.
#include "algorithms/patterns/arrivals.h"
#include "algorithms/patterns/interleaved.h"
#include "algorithms/patterns/levels.h"
#include "algorithms/patterns/vector.h"
#include "schedule/builder.h"

namespace thalweg::allreduce::node_leader {

using patterns::Range;
using patterns::Vector;

enum : std::size_t { leaders, chunk_bytes };
enum : std::size_t { intra, inter };

namespace {

constexpr std::uint64_t staging_pieces = 4;  // pieces that a leader receives before it has combined the first

int leaders_of(const Topology& topology, const Choice& choice) {
    const auto fewest = static_cast<std::uint64_t>(topology.min_ranks_per_node());
    const std::uint64_t asked = choice.values[leaders];
    return static_cast<int>(asked == 0 ? fewest : std::min<std::uint64_t>(asked, fewest));
}

// What a pair of ranks may exchange is split between the pieces of a host's reduction and those of the
// result.
std::uint64_t most_pieces(const Problem& problem, const Topology& topology) {
    const auto widest = static_cast<std::uint64_t>(std::max(topology.max_ranks_per_node(), 1));
    return std::max<std::uint64_t>(problem.messages_per_pair / (2 * widest), 1);
}

// The host's leaders and the share of each.
struct Shares {
    Vector vector;
    int count;
    std::uint64_t chunk, most;

    Shares(const Problem& problem, const Topology& topology, const Choice& choice)
        : vector(problem),
          count(leaders_of(topology, choice)),
          chunk(choice.values[chunk_bytes]),
          most(std::max<std::uint64_t>(problem.messages_per_pair / 2, 1)) {}

    Range share(int leader) const {
        return vector.part(vector.all(), static_cast<std::uint64_t>(leader),
                           static_cast<std::uint64_t>(count));
    }
    Vector::Pieces pieces(int leader) const { return vector.pieces(share(leader), chunk, most); }
};

Problem inter_problem(const Problem& problem, const Topology& topology, int node, const Range& share) {
    Problem part;
    part.rank = node;
    part.size = topology.nodes();
    part.bytes = share.bytes;
    part.element_bytes = problem.element_bytes;
    part.commutative = problem.commutative;
    part.in_place = problem.in_place || topology.ranks_on(node).size() > 1;
    part.messages_per_pair = most_pieces(problem, topology);
    return part;
}

// How many messages of a pair one piece of the result may take inside a host, where the pieces of all leaders
// share a half of what a pair may exchange. No leader has more of them than rounds with its peers.
std::uint64_t messages_of_a_piece(const Problem& problem, const Topology& topology, const Choice& choice,
                                  const Shares& shares) {
    const Problem between = inter_problem(problem, topology, 0, shares.share(0));
    const Price price = choice.parts[inter].algorithm->price(between, Topology{}, choice.parts[inter]);
    const std::uint64_t pieces =
        std::max<std::uint64_t>(price.rounds, 1) * static_cast<std::uint64_t>(shares.count);
    const auto widest = static_cast<std::uint64_t>(std::max(topology.max_ranks_per_node(), 1));
    return std::clamp<std::uint64_t>(problem.messages_per_pair / 2 / pieces, 1, widest);
}

Problem intra_problem(std::uint64_t messages, int ranks, int local_rank, int leader, const Slice& piece) {
    Problem part;
    part.rank = local_rank;
    part.size = ranks;
    part.root = leader;
    part.bytes = piece.bytes;
    part.offset = piece.offset;
    part.messages_per_pair = messages;
    return part;
}

// How many messages of a pair a piece takes inside a host at most: scatters cut it whatever they are told.
std::uint64_t messages_taken(const Choice& inside, std::uint64_t messages, int ranks, std::uint64_t bytes) {
    std::uint64_t most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        const Schedule schedule = thalweg::build(
            inside, intra_problem(messages, ranks, rank, 0, {Buffer::out, 0, bytes}), Topology{});
        for (const Step& step : schedule.steps())
            if (step.peer >= 0) most = std::max<std::uint64_t>(most, std::uint64_t{step.message} + 1);
    }
    return most;
}

// A leader's schedule among its peers, and the pieces of its share in the order in which they are final.
struct Leader {
    Schedule schedule;
    std::vector<patterns::Arrival> pieces;

    Leader(const Problem& problem, const Topology& topology, const Choice& choice, int node,
           const Range& share)
        : schedule(
              thalweg::build(choice.parts[inter], inter_problem(problem, topology, node, share), Topology{})),
          pieces(patterns::settled(schedule, {Buffer::out, 0, share.bytes})) {}
};

// This rank's part of its host's reduction: all leaders' first pieces, then all second ones, and so on.
class HostReduction {
  public:
    HostReduction(Builder& builder, const Shares& shares, std::span<const int> local, int me)
        : builder_(builder), shares_(shares), vector_(shares.vector), local_(local), me_(me) {}

    void build() {
        if (local_.size() == 1) return;
        // A share of one element more may have larger pieces, and fewer of them.
        std::uint64_t rounds = 0;
        for (int leader = 0; leader < shares_.count; ++leader)
            rounds = std::max(rounds, shares_.pieces(leader).count());
        for (std::uint64_t i = 0; i < rounds; ++i)
            for (int leader = 0; leader < shares_.count; ++leader) {
                const Vector::Pieces pieces = shares_.pieces(leader);
                if (i >= pieces.count()) continue;
                if (leader == me_)
                    combine(pieces.piece(i), pieces.piece(0).bytes);
                else
                    builder_.send(local_[static_cast<std::size_t>(leader)], vector_.own(pieces.piece(i)));
            }
    }

  private:
    void combine(const Range& piece, std::uint64_t largest) {
        const Slice result = vector_.result(piece);
        bool held = vector_.in_place();  // the result's place holds what was combined so far
        const auto take = [&](int other) {
            const int from = local_[static_cast<std::size_t>(other)];
            const Side own_side = other > me_ ? Side::left : Side::right;
            if (!held) {
                builder_.recv(from, result);
                builder_.reduce(result, vector_.own(piece), own_side);
                held = true;
                return;
            }
            Slice& stage = staging_[next_++ % staging_pieces];
            if (stage.bytes == 0) stage = builder_.scratch(largest);
            const Slice received{Buffer::scratch, stage.offset, piece.bytes};
            builder_.recv(from, received);
            builder_.reduce(result, received, own_side == Side::left ? Side::right : Side::left);
        };
        for (int other = me_ + 1; other < static_cast<int>(local_.size()); ++other) take(other);
        for (int other = me_ - 1; other >= 0; --other) take(other);
    }

    Builder& builder_;
    const Shares& shares_;
    const Vector& vector_;
    std::span<const int> local_;
    int me_;
    Slice staging_[staging_pieces];
    std::uint64_t next_ = 0;
};

}  // namespace

std::string_view refuse(const Problem& problem, const Topology& topology, const Choice& choice) {
    if (!choice.parts[intra].algorithm->parts.empty() || !choice.parts[inter].algorithm->parts.empty())
        return "a combinator cannot be a part of this one: there are two levels";
    if (topology.size() != problem.size) return "the topology describes another number of ranks";
    for (int rank = 1; !problem.commutative && rank < problem.size; ++rank)
        if (topology.node_of(rank) < topology.node_of(rank - 1))
            return "the operation does not commute, and hosts do not hold consecutive ranks";
    const Shares shares(problem, topology, choice);
    const Range share = shares.share(0);
    const std::string_view between =
        thalweg::refuse(choice.parts[inter], inter_problem(problem, topology, 0, share), Topology{});
    if (!between.empty()) return between;
    const std::uint64_t messages = messages_of_a_piece(problem, topology, choice, shares);
    for (std::size_t ranks : patterns::sizes_of_hosts(topology)) {
        const Problem part =
            intra_problem(messages, static_cast<int>(ranks), 0, 0, {Buffer::out, 0, share.bytes});
        const std::string_view inside = thalweg::refuse(choice.parts[intra], part, Topology{});
        if (ranks > 1 && !inside.empty()) return inside;
    }
    const int widest = topology.max_ranks_per_node();
    if (static_cast<std::uint64_t>(widest) > messages &&
        messages_taken(choice.parts[intra], messages, widest, share.bytes) > messages)
        return "so many pieces exceed the messages that two ranks may exchange";
    return {};
}

Schedule build(const Problem& problem, const Topology& topology, const Choice& choice) {
    Builder builder(problem.rank, problem.size);
    if (problem.bytes == 0) return std::move(builder).finish();
    const Shares shares(problem, topology, choice);
    const int node = topology.node_of(problem.rank), me = topology.local_rank(problem.rank);
    const std::span<const int> local = topology.ranks_on(node);
    const int ranks = static_cast<int>(local.size());
    const std::uint64_t messages = messages_of_a_piece(problem, topology, choice, shares);
    HostReduction(builder, shares, local, me).build();

    std::vector<Leader> led;
    std::size_t most = 0;
    for (int leader = 0; leader < shares.count; ++leader) {
        led.emplace_back(problem, topology, choice, node, shares.share(leader));
        most = std::max(most, led.back().pieces.size());
    }
    std::vector<int> peers;
    for (int other = 0; me < shares.count && other < topology.nodes(); ++other)
        peers.push_back(topology.ranks_on(other)[static_cast<std::size_t>(me)]);
    const Range own = shares.share(std::min(me, shares.count - 1));
    const Schedule none;
    patterns::Interleaved between(
        builder, me < shares.count ? led[static_cast<std::size_t>(me)].schedule : none, peers,
        {Buffer::in, own.from}, {Buffer::out, shares.vector.result(own).offset});
    // What a leader exchanges comes before what it hands on for others: leaders of other hosts wait for it.
    for (std::size_t i = 0; i < most; ++i) {
        if (me < shares.count && i < led[static_cast<std::size_t>(me)].pieces.size())
            between.until(led[static_cast<std::size_t>(me)].pieces[i].steps);
        for (int leader = 0; ranks > 1 && leader < shares.count; ++leader) {
            const Leader& of = led[static_cast<std::size_t>(leader)];
            if (i >= of.pieces.size()) continue;
            const Schedule part =
                thalweg::build(choice.parts[intra],
                               intra_problem(messages, ranks, me, leader, of.pieces[i].slice), Topology{});
            const Slice begin = shares.vector.result(shares.share(leader));
            patterns::Interleaved(builder, part, local, {Buffer::in}, {Buffer::out, begin.offset}).rest();
        }
    }
    between.rest();
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology& topology, const Choice& choice) {
    Claim total;
    if (problem.bytes == 0) return total;
    const Shares shares(problem, topology, choice);
    const std::uint64_t per_piece = messages_of_a_piece(problem, topology, choice, shares);
    std::uint64_t between = 0, before = 0, after = 0;
    for (int leader = 0; leader < shares.count; ++leader) {
        const Range share = shares.share(leader);
        const Claim inside =
            thalweg::claim(choice.parts[inter], inter_problem(problem, topology, 0, share), Topology{});
        total.messages += inside.messages;
        total.bytes += inside.bytes;
        between = std::max(between, inside.rounds);
        for (int node = 0; node < topology.nodes(); ++node) {
            const int ranks = static_cast<int>(topology.ranks_on(node).size());
            const auto others = static_cast<std::uint64_t>(ranks - 1), pieces = shares.pieces(leader).count();
            total.messages += others * pieces;
            total.bytes += others * share.bytes;
            before = std::max(before, patterns::ceil_div(others * pieces, staging_pieces) + (others > 0));
            if (others == 0) continue;
            const Leader of(problem, topology, choice, node, share);
            for (const patterns::Arrival& piece : of.pieces) {
                const Problem part = intra_problem(per_piece, ranks, leader, leader, piece.slice);
                const Claim handed = thalweg::claim(choice.parts[intra], part, Topology{});
                total.messages += handed.messages;
                total.bytes += handed.bytes;
                total.redundant_bytes += handed.redundant_bytes;
                after = std::max(after, handed.rounds);
            }
        }
    }
    total.rounds = before + between + after;
    return total;
}

// As if all levels were alike and nothing overlapped; model/ knows the levels and prices them apart.
Price price(const Problem& problem, const Topology& topology, const Choice& choice) {
    if (problem.bytes == 0) return {};
    const Shares shares(problem, topology, choice);
    const Range share = shares.share(0);
    const auto others = static_cast<std::uint64_t>(topology.max_ranks_per_node() - 1);
    const Problem between = inter_problem(problem, topology, 0, share);
    Price total = choice.parts[inter].algorithm->price(between, Topology{}, choice.parts[inter]);
    const Problem inside =
        intra_problem(messages_of_a_piece(problem, topology, choice, shares), topology.max_ranks_per_node(),
                      0, 0, {Buffer::out, 0, std::min(total.piece_bytes, share.bytes)});
    const Price handed = choice.parts[intra].algorithm->price(inside, Topology{}, choice.parts[intra]);
    total.rounds += others * shares.pieces(0).count() + handed.rounds;
    total.bytes += others * share.bytes + handed.bytes;
    total.reduced_bytes += others * share.bytes;
    return total;
}

}  // namespace thalweg::allreduce::node_leader
