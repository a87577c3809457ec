#include "select/exchanges.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "algorithms/patterns/parcels.h"
#include "base/float_modes.h"
#include "base/mixing.h"

namespace thalweg {
namespace {

constexpr std::uint64_t dense_share = 2;  // one in so many of all pairs has a message

std::uint64_t pairs_of(int size) {
    const auto ranks = static_cast<std::uint64_t>(size);
    return ranks * (ranks - 1);
}

std::uint64_t rounded_up(std::uint64_t sum, std::uint64_t count) {
    return count == 0 ? 0 : sum / count + (sum % count != 0);
}

// Of the messages between `rank` and `peers`, which are sorted by place; `sends`: from it to them.
template <typename Place>
std::uint64_t numbered(std::vector<int>& peers, int rank, bool sends, Place place_of) {
    const auto before = [&](int a, int b) { return place_of(a) < place_of(b); };
    if (!std::is_sorted(peers.begin(), peers.end(), before))
        std::stable_sort(peers.begin(), peers.end(), before);
    std::uint64_t sum = 0, number = 0;
    for (const int peer : peers) {
        const int from = sends ? rank : peer, to = sends ? peer : rank;
        sum += mixed({static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to), ++number});
    }
    return sum;
}

bool upsets_rounds(const Traits& traits, int size) {
    return !traits.in_step && traits.messages * 10 < pairs_of(size) * 9;
}

}  // namespace

void count_message(TraitWords& words, std::uint64_t bytes) {
    if (bytes == 0) return;
    words[0] += bytes;
    ++words[1];
    const std::uint64_t size = std::min(bytes / 1024 + 1, std::uint64_t{1} << 24);
    words[3] += size;
    words[4] += size * size;
}

void count_steps(TraitWords& words, std::vector<int> to, std::vector<int> from, int rank, int size,
                 const Topology& topology) {
    const auto others = static_cast<std::size_t>(size) - 1;
    using patterns::distance;
    using patterns::meeting;
    words[word_by_distance] +=
        numbered(to, rank, true, [=](int peer) { return distance(rank, peer, size); }) -
        numbered(from, rank, false, [=](int peer) { return distance(peer, rank, size); });
    // Of dense ones nobody asks, and there are many.
    if (to.size() == others && from.size() == others) {
        ++words[word_in_pairs];
        return;
    }
    if (topology.size() != size || topology.nodes() < 2) {
        const auto place = [=](int peer) { return meeting(rank, peer); };
        words[word_in_pairs] += numbered(to, rank, true, place) - numbered(from, rank, false, place);
        return;
    }
    const auto stays = [&](int peer) { return topology.node_of(peer) == topology.node_of(rank); };
    to.erase(std::remove_if(to.begin(), to.end(), stays), to.end());
    from.erase(std::remove_if(from.begin(), from.end(), stays), from.end());
    words[word_in_pairs] +=
        numbered(to, rank, true, [&](int peer) { return meeting(topology, rank, peer); }) -
        numbered(from, rank, false, [&](int peer) { return meeting(topology, peer, rank); });
}

Traits traits_of(const TraitWords& sums, int size, std::uint64_t calls) {
    const double unevenness = in_standard_modes([&] {
        const auto messages = static_cast<double>(sums[1]), all = static_cast<double>(sums[3]);
        return sums[3] == 0 ? 1 : messages * static_cast<double>(sums[4]) / (all * all);
    });
    return {rounded_up(sums[0], pairs_of(size) * calls),
            rounded_up(sums[1], calls),
            rounded_up(sums[0], sums[1]),
            unevenness,
            sums[word_of_digests] == 0,
            sums[word_by_distance] == 0,
            sums[word_in_pairs] == 0};
}

bool is_sparse(const Traits& traits, int size) {
    return traits.messages != 0 && traits.messages * dense_share < pairs_of(size);
}

bool meets_in_pairs(const Choice& choice, const Traits& traits, const Topology& topology) {
    const std::string_view name = choice.algorithm->name;
    if (name == "spread")
        return topology.nodes() > 1 && !traits.in_step && traits.messages < pairs_of(topology.size());
    return name == "pairwise" && choice.values[0] != 0 && topology.nodes() > 1 &&
           upsets_rounds(traits, topology.size()) && traits.in_step_in_pairs &&
           traits.unevenness <= even_neighbours;
}

bool is_upset(const Choice& choice, const Traits& traits, const Topology& topology) {
    return upsets_rounds(traits, topology.size()) && !meets_in_pairs(choice, traits, topology);
}

// A rank with few peers is one among neighbours, whose messages count, and not what all pairs have on
// average: of a thousand ranks that is next to nothing.
std::uint64_t deciding_bytes(const Traits& traits, const Topology& topology) {
    const bool few = topology.nodes() > 1 && is_sparse(traits, topology.size());
    return few ? traits.mean_message_bytes : traits.mean_bytes;
}

Decision decide_sparse(Decision by_size, const Traits& traits, const NeighbourSelector& neighbours) {
    Decision found = neighbours.decide(traits.mean_message_bytes);
    const bool named = found.choice && found.reason == "tuning table";
    return by_size.choice || named ? found : by_size;
}

PlannedExchange decide_planned(Decision by_size, const Traits& traits, const Selector& selector,
                               const NeighbourSelector* neighbours, const Topology& topology) {
    PlannedExchange planned{std::move(by_size)};
    Decision& decision = planned.decision;
    const auto straight = [&] {
        decision.choice = standard_choice(*find_algorithm(Collective::alltoallv, "spread"));
    };
    const bool asked = decision.reason == "asked for";
    const bool sparse = !asked && is_sparse(traits, topology.size());
    const bool among_few = sparse && topology.nodes() > 1;
    if (among_few) decision = decide_sparse(std::move(decision), traits, *neighbours);
    if (!decision.choice) return planned;
    planned.in_pairs = among_few && !traits.in_step;
    const auto runs = [&](std::string_view name) { return decision.choice->algorithm->name == name; };
    const bool waits = !asked && runs("pairwise") && traits.unevenness > even;
    if (waits && traits.sizes_agree)
        decision = selector.decide_uneven(std::move(decision), traits.mean_bytes);
    if (!decision.choice) return planned;
    const bool upset = !asked && runs("pairwise") && is_upset(*decision.choice, traits, topology);
    if (!traits.sizes_agree || (sparse && runs("node_leader")) || upset) straight();
    planned.in_pairs |= meets_in_pairs(*decision.choice, traits, topology);
    return planned;
}

bool settle_neighbours(Decision& decision, const Traits& traits, const Topology& topology) {
    const bool between_hosts = topology.nodes() > 1;
    const bool neither = between_hosts && !traits.in_step && !traits.in_step_in_pairs;
    const bool in_rounds =
        decision.choice && decision.reason != "asked for" && decision.choice->algorithm->name == "pairwise";
    if (in_rounds && (traits.unevenness > even_neighbours || neither))
        decision = {standard_choice(*find_algorithm(Collective::alltoallv, "spread")),
                    neither ? "ranks out of step" : "messages of uneven sizes"};
    return !between_hosts || !traits.in_step || traits.in_step_in_pairs;
}

}  // namespace thalweg
