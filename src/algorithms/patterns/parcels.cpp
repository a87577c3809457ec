#include "algorithms/patterns/parcels.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>

namespace thalweg::patterns {
namespace {

std::vector<Parcel> uniform(const Problem& problem) {
    std::vector<Parcel> parcels(static_cast<std::size_t>(problem.size));
    std::uint64_t at = 0;
    for (int peer = 0; peer < problem.size; ++peer, at += problem.bytes)
        parcels[static_cast<std::size_t>(peer)] = {peer, at, problem.bytes};
    return parcels;
}

}  // namespace

std::uint64_t meeting(int a, int b) {
    const int apart = std::abs(a - b);
    return apart == 0 ? 0 : 2 * static_cast<std::uint64_t>(apart) + (std::min(a, b) / apart) % 2;
}

std::uint64_t meeting(const Topology& topology, int from, int to) {
    const auto most = topology.max_ranks_per_node();
    const int apart = distance(topology.local_rank(from), topology.local_rank(to), most);
    return meeting(topology.node_of(from), topology.node_of(to)) * static_cast<std::uint64_t>(most) +
           static_cast<std::uint64_t>(apart);
}

std::vector<Parcel> outgoing_of(const Problem& problem) {
    return problem.exchange == nullptr ? uniform(problem) : problem.exchange->outgoing;
}
std::vector<Parcel> incoming_of(const Problem& problem) {
    return problem.exchange == nullptr ? uniform(problem) : problem.exchange->incoming;
}

Parcels::Parcels(const Problem& problem, const Topology& topology, bool far_first) {
    const bool hosts = far_first && topology.size() == problem.size && topology.nodes() > 1;
    const bool in_pairs = far_first && problem.exchange != nullptr && problem.exchange->in_pairs;
    const auto all = std::bit_ceil(static_cast<std::uint64_t>(problem.size));
    const auto place_of = [&](int from, int to) {
        const bool stays = hosts && topology.node_of(from) == topology.node_of(to);
        if (!in_pairs)
            return (stays ? all : 0) + static_cast<std::uint64_t>(distance(from, to, problem.size));
        if (hosts && !stays) return meeting(topology, from, to);
        return (stays ? 4 * all * all : 0) + meeting(from, to);
    };
    const auto sort = [](std::vector<Placed>& list) {
        std::stable_sort(list.begin(), list.end(),
                         [](const Placed& a, const Placed& b) { return a.place < b.place; });
    };
    const bool empty = problem.exchange != nullptr && problem.exchange->empty_travel;
    for (const Parcel& parcel : outgoing_of(problem)) {
        if (parcel.bytes == 0 && !empty) continue;
        if (parcel.peer == problem.rank)
            from_own_.push_back(parcel);
        else
            outgoing_.push_back({place_of(problem.rank, parcel.peer), parcel});
    }
    for (const Parcel& parcel : incoming_of(problem)) {
        if (parcel.bytes == 0 && !empty) continue;
        if (parcel.peer == problem.rank)
            to_own_.push_back(parcel);
        else
            incoming_.push_back({place_of(parcel.peer, problem.rank), parcel});
    }
    sort(outgoing_);
    sort(incoming_);
}

void Parcels::copy_own(Builder& builder) const {
    const std::size_t both = std::min(from_own_.size(), to_own_.size());
    for (std::size_t i = 0; i < both; ++i) {
        const Parcel &from = from_own_[i], &to = to_own_[i];
        const std::uint64_t bytes = std::min(from.bytes, to.bytes);
        if (bytes == 0) continue;
        builder.copy({Buffer::out, to.offset, bytes}, {Buffer::in, from.offset, bytes});
    }
}

OwnMisfit own_misfit(const Exchange& exchange, int rank) {
    const auto own = [&exchange, rank](const std::vector<Parcel>& parcels) {
        std::vector<Parcel> found;
        std::copy_if(parcels.begin(), parcels.end(), std::back_inserter(found), [&](const Parcel& parcel) {
            return parcel.peer == rank && (parcel.bytes != 0 || exchange.empty_travel);
        });
        return found;
    };
    const std::vector<Parcel> from = own(exchange.outgoing), to = own(exchange.incoming);
    OwnMisfit misfit;
    misfit.truncated = from.size() > to.size();
    for (std::size_t i = 0; i < to.size(); ++i) {
        const std::uint64_t bytes = i < from.size() ? from[i].bytes : 0;
        misfit.truncated |= bytes > to[i].bytes;
        if (bytes < to[i].bytes)
            misfit.gaps.push_back({Buffer::out, to[i].offset + bytes, to[i].bytes - bytes});
    }
    return misfit;
}

std::uint64_t Parcels::sent_bytes() const {
    std::uint64_t total = 0;
    for (const Placed& message : outgoing_) total += message.parcel.bytes;
    return total;
}

std::uint64_t Parcels::empty_messages() const {
    return static_cast<std::uint64_t>(std::count_if(
        outgoing_.begin(), outgoing_.end(), [](const Placed& message) { return message.parcel.bytes == 0; }));
}

}  // namespace thalweg::patterns
