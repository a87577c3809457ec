// What one host has for another travels as one message between their leaders.
//
//     2 hosts of 2 ranks, 0 and 2 lead:
//
//     1 →(for 2, 3)→ 0     3 →(for 0, 1)→ 2                         bundles of a rank
//     0 →(for 2: from 0, 1; for 3: from 0, 1)→ 2, and back          one per pair of hosts
//     2 →(from 0, 1)→ 3    0 →(from 2, 3)→ 1                        bundles for a rank
//
// Ranks of one host exchange directly. Rounds: 3. Messages between hosts: h (h-1) at most, none where there
// is nothing to say. Bytes: what leaves a host travels once over the network, and once or twice inside hosts.
// For messages so small that their number counts. A leader knows the bytes between its host's ranks and those
// of others (Exchange::crossing), the others know their own only; or it knows the edges, and each has a slot
// (Exchange::slot_bytes): the network carries whole slots then.
#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "algorithms/patterns/parcels.h"

namespace thalweg::alltoallv::node_leader {

namespace {

using patterns::Parcels;

// What leaves or enters this rank's host.
std::vector<Traffic> traffic_of(const Problem& problem, const Topology& topology) {
    if (problem.exchange != nullptr) return problem.exchange->crossing;
    std::vector<Traffic> all;
    const int here = topology.node_of(problem.rank);
    if (problem.bytes == 0) return all;
    for (int mine : topology.ranks_on(here))
        for (int other = 0; other < problem.size; ++other) {
            if (topology.node_of(other) == here) continue;
            all.push_back({mine, other, problem.bytes});
            all.push_back({other, mine, problem.bytes});
        }
    return all;
}

// A message put together from slices: sent from where they lie if that is one run, else through scratch.
class Pieces {
  public:
    void add(const Slice& slice) {
        if (slice.bytes == 0) return;
        bytes_ += slice.bytes;
        if (!slices_.empty() && slices_.back().buffer == slice.buffer && slices_.back().end() == slice.offset)
            slices_.back().bytes += slice.bytes;
        else
            slices_.push_back(slice);
    }
    // Scratch memory whose bytes are of no matter: not kept where they are received.
    void add_blank(const Slice& slice) {
        if (slice.bytes == 0) return;
        bytes_ += slice.bytes;
        slices_.push_back(slice);
    }
    void send(Builder& builder, int to) const {
        if (bytes_ == 0) return;
        if (slices_.size() == 1) {
            builder.send(to, slices_.front());
            return;
        }
        const Slice whole = builder.scratch(bytes_);
        copy(builder, whole, true);
        builder.send(to, whole);
    }
    void receive(Builder& builder, int from) const {
        if (bytes_ == 0) return;
        if (slices_.size() == 1 && slices_.front().buffer != Buffer::scratch) {
            builder.recv(from, slices_.front());
            return;
        }
        const Slice whole = builder.scratch(bytes_);
        builder.recv(from, whole);
        copy(builder, whole, false);
    }

  private:
    void copy(Builder& builder, const Slice& whole, bool into) const {
        std::uint64_t at = whole.offset;
        for (const Slice& slice : slices_) {
            const Slice part{whole.buffer, at, slice.bytes};
            if (into || slice.buffer != Buffer::scratch)
                builder.copy(into ? part : slice, into ? slice : part);
            at += slice.bytes;
        }
    }
    std::vector<Slice> slices_;
    std::uint64_t bytes_ = 0;
};

// Where bytes that `from` has for `to` lie on their leader; `blank` more, of no matter, go behind them.
struct Leg {
    int from = 0, to = 0;
    Slice slice;
    std::uint64_t blank = 0;
};

// One rank's part.
class Part {
  public:
    Part(Builder& builder, const Problem& problem, const Topology& topology)
        : builder_(builder),
          problem_(problem),
          topology_(topology),
          here_(topology.node_of(problem.rank)),
          leader_(topology.ranks_on(here_).front()),
          slot_(problem.exchange == nullptr ? 0 : problem.exchange->slot_bytes),
          blank_(builder.scratch(slot_)) {}

    void add() {
        const bool leads = problem_.rank == leader_;
        if (leads)
            collect();
        else
            bundle(patterns::outgoing_of(problem_), Buffer::in).send(builder_, leader_);
        const Parcels parcels(problem_, topology_, false);
        exchange_directly(parcels);
        if (leads) {
            exchange();
            hand_out();
        } else {
            bundle(patterns::incoming_of(problem_), Buffer::out).receive(builder_, leader_);
        }
        parcels.copy_own(builder_);
    }

  private:
    int host(int rank) const { return topology_.node_of(rank); }

    // How many of its bytes travel with others', and how many more go with them because a slot has room for
    // them.
    std::uint64_t bundled(const Parcel& parcel) const {
        return slot_ != 0 && parcel.bytes > slot_ ? 0 : parcel.bytes;
    }
    Slice blank(const Parcel& parcel) const {
        return {blank_.buffer, blank_.offset, slot_ == 0 ? 0 : slot_ - bundled(parcel)};
    }

    // Parcels to or from other hosts: host by host, there by rank.
    std::vector<Parcel> crossing(std::vector<Parcel> parcels) const {
        std::erase_if(parcels, [&](const Parcel& parcel) {
            return (parcel.bytes == 0 && slot_ == 0) || host(parcel.peer) == here_;
        });
        std::stable_sort(parcels.begin(), parcels.end(), [&](const Parcel& a, const Parcel& b) {
            return std::tuple(host(a.peer), a.peer) < std::tuple(host(b.peer), b.peer);
        });
        return parcels;
    }
    Pieces bundle(std::vector<Parcel> parcels, Buffer buffer) const {
        Pieces pieces;
        for (const Parcel& parcel : crossing(std::move(parcels))) {
            pieces.add({buffer, parcel.offset, bundled(parcel)});
            pieces.add_blank(blank(parcel));
        }
        return pieces;
    }

    // What stays on the host, and what no slot has room for.
    void exchange_directly(const Parcels& parcels) {
        const auto direct = [&](const Parcel& parcel) {
            return host(parcel.peer) == here_ || bundled(parcel) != parcel.bytes;
        };
        parcels.each(
            [&](const Parcel& parcel) {
                if (direct(parcel)) builder_.send(parcel.peer, {Buffer::in, parcel.offset, parcel.bytes});
            },
            [&](const Parcel& parcel) {
                if (direct(parcel)) builder_.recv(parcel.peer, {Buffer::out, parcel.offset, parcel.bytes});
            });
    }

    // Of the leader: gives every leg of `legs` its place in a message that is received whole; messages are
    // runs of legs that `same` says belong together.
    template <typename Same>
    void receive(std::vector<Leg>& legs, Same same, int (Part::*sender)(const Leg&) const) {
        for (std::size_t begin = 0, end = 0; begin < legs.size(); begin = end) {
            std::uint64_t bytes = 0;
            for (end = begin; end < legs.size() && same(legs[begin], legs[end]); ++end)
                bytes += legs[end].slice.bytes;
            const Slice whole = builder_.scratch(bytes);
            builder_.recv((this->*sender)(legs[begin]), whole);
            std::uint64_t at = whole.offset;
            for (std::size_t i = begin; i < end; ++i) {
                legs[i].slice.offset = at;
                at += legs[i].slice.bytes;
            }
        }
    }
    int from_rank(const Leg& leg) const { return leg.from; }
    int from_leader(const Leg& leg) const { return topology_.ranks_on(host(leg.from)).front(); }
    int away(int from_host, int to_host) const {
        return patterns::distance(from_host, to_host, topology_.nodes());
    }

    // What leaves this host, from the bundles of its ranks and from the leader's own memory.
    void collect() {
        for (const Traffic& pair : traffic_of(problem_, topology_)) {
            const Leg leg{pair.from, pair.to, {Buffer::scratch, 0, pair.bytes}};
            if (host(pair.from) != here_)
                entering_.push_back(leg);
            else if (pair.from != problem_.rank)
                leaving_.push_back(leg);
        }
        std::stable_sort(leaving_.begin(), leaving_.end(), [&](const Leg& a, const Leg& b) {
            return std::tuple(a.from, host(a.to), a.to) < std::tuple(b.from, host(b.to), b.to);
        });
        receive(
            leaving_, [](const Leg& a, const Leg& b) { return a.from == b.from; }, &Part::from_rank);
        for (const Parcel& parcel : crossing(patterns::outgoing_of(problem_)))
            leaving_.push_back({problem_.rank,
                                parcel.peer,
                                {Buffer::in, parcel.offset, bundled(parcel)},
                                blank(parcel).bytes});
    }

    // One message to and one from every other host, near hosts first.
    void exchange() {
        std::stable_sort(leaving_.begin(), leaving_.end(), [&](const Leg& a, const Leg& b) {
            return std::tuple(away(here_, host(a.to)), a.to, a.from) <
                   std::tuple(away(here_, host(b.to)), b.to, b.from);
        });
        for (std::size_t i = 0; i < leaving_.size();) {
            const int to = host(leaving_[i].to);
            Pieces message;
            for (; i < leaving_.size() && host(leaving_[i].to) == to; ++i) {
                message.add(leaving_[i].slice);
                message.add_blank({blank_.buffer, blank_.offset, leaving_[i].blank});
            }
            message.send(builder_, topology_.ranks_on(to).front());
        }
        std::stable_sort(entering_.begin(), entering_.end(), [&](const Leg& a, const Leg& b) {
            return std::tuple(away(host(a.from), here_), a.to, a.from) <
                   std::tuple(away(host(b.from), here_), b.to, b.from);
        });
        const auto same = [&](const Leg& a, const Leg& b) { return host(a.from) == host(b.from); };
        receive(entering_, same, &Part::from_leader);
    }

    void hand_out() {
        std::stable_sort(entering_.begin(), entering_.end(), [&](const Leg& a, const Leg& b) {
            return std::tuple(a.to, host(a.from), a.from) < std::tuple(b.to, host(b.from), b.from);
        });
        std::vector<Slice> own;
        for (std::size_t i = 0; i < entering_.size();) {
            const int to = entering_[i].to;
            Pieces message;
            for (; i < entering_.size() && entering_[i].to == to; ++i) {
                message.add(entering_[i].slice);
                if (to == problem_.rank) own.push_back(entering_[i].slice);
            }
            if (to != problem_.rank) message.send(builder_, to);
        }
        // Several parcels of one rank came as one leg.
        std::size_t leg = 0;
        std::uint64_t used = 0;
        const auto take = [&](std::uint64_t bytes, std::uint64_t to, bool kept) {
            for (std::uint64_t done = 0; done < bytes && leg < own.size();) {
                const std::uint64_t run = std::min(bytes - done, own[leg].bytes - used);
                if (kept)
                    builder_.copy({Buffer::out, to + done, run},
                                  {own[leg].buffer, own[leg].offset + used, run});
                done += run;
                used += run;
                if (used == own[leg].bytes) used = 0, ++leg;
            }
        };
        for (const Parcel& parcel : crossing(patterns::incoming_of(problem_))) {
            take(bundled(parcel), parcel.offset, true);
            take(blank(parcel).bytes, 0, false);
        }
    }

    Builder& builder_;
    const Problem& problem_;
    const Topology& topology_;
    int here_, leader_;
    std::uint64_t slot_;
    Slice blank_;  // what fills slots up, which nobody writes: the first of the scratch memory
    std::vector<Leg> leaving_, entering_;
};

}  // namespace

std::string_view refuse(const Problem& problem, const Topology& topology, const Choice&) {
    if (topology.size() != problem.size) return "needs to know which ranks share a host";
    if (topology.nodes() < 2) return "all ranks are on one host";
    if (problem.exchange != nullptr && !problem.exchange->hosts_informed)
        return "needs leaders that know what their hosts exchange";
    return {};
}

Schedule build(const Problem& problem, const Topology& topology, const Choice&) {
    Builder builder(problem.rank, problem.size);
    Part(builder, problem, topology).add();
    return std::move(builder).finish();
}

namespace {

// Messages and bytes that this rank sends, where pairs differ.
Claim claim_of_one(const Problem& problem, const Topology& topology) {
    Claim claim{3, 0, 0};
    const int here = topology.node_of(problem.rank);
    const bool leads = topology.ranks_on(here).front() == problem.rank;
    std::uint64_t bundled = 0;
    const std::uint64_t slot = problem.exchange->slot_bytes;
    for (const Parcel& parcel : problem.exchange->outgoing) {
        if (parcel.peer == problem.rank) continue;
        const bool stays = topology.node_of(parcel.peer) == here;
        const bool direct = stays || (slot != 0 && parcel.bytes > slot);
        if (!stays) bundled += slot != 0 ? slot : parcel.bytes;
        if (!direct) continue;
        if (parcel.bytes != 0)
            ++claim.messages, claim.bytes += parcel.bytes;
        else if (problem.exchange->empty_travel)
            ++claim.signals;
    }
    if (!leads) {
        claim.messages += bundled != 0;
        claim.bytes += bundled;
        return claim;
    }
    std::set<int> hosts, ranks;
    for (const Traffic& pair : problem.exchange->crossing) {
        if (pair.to == problem.rank) continue;
        claim.bytes += pair.bytes;
        if (topology.node_of(pair.to) == here)
            ranks.insert(pair.to);
        else
            hosts.insert(topology.node_of(pair.to));
    }
    claim.messages += hosts.size() + ranks.size();
    return claim;
}

}  // namespace

Claim claim(const Problem& problem, const Topology& topology, const Choice&) {
    if (problem.exchange != nullptr) return claim_of_one(problem, topology);
    if (problem.bytes == 0) return {};
    const auto p = static_cast<std::uint64_t>(problem.size);
    const auto hosts = static_cast<std::uint64_t>(topology.nodes());
    Claim claim{1, hosts * (hosts - 1), 0};
    std::uint64_t shared = 0;  // hosts of several ranks
    for (int node = 0; node < topology.nodes(); ++node) {
        const std::uint64_t ranks = topology.ranks_on(node).size(), others = p - ranks;
        shared += ranks > 1;
        claim.messages += ranks * (ranks - 1) + 2 * (ranks - 1);
        claim.bytes += (ranks * (ranks - 1) + ranks * others + 2 * (ranks - 1) * others) * problem.bytes;
    }
    claim.rounds += std::min<std::uint64_t>(shared, 2);
    return claim;
}

// Of the leaders among one another; model/ adds what happens inside hosts.
Price price(const Problem& problem, const Topology& topology, const Choice&) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto p = static_cast<std::uint64_t>(problem.size);
    const auto hosts = static_cast<std::uint64_t>(std::max(topology.nodes(), 1));
    const auto ranks = static_cast<std::uint64_t>(std::max(topology.max_ranks_per_node(), 1));
    Price price{1, ranks * (p - ranks) * problem.bytes, ranks * ranks * problem.bytes, hosts - 1};
    price.ports = price.messages = std::max<std::uint64_t>(hosts - 1, 1);
    return price;
}

}  // namespace thalweg::alltoallv::node_leader
