#include "select/exchanges.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/float_modes.h"

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

}  // namespace

void count_message(TraitWords& words, std::uint64_t bytes) {
    if (bytes == 0) return;
    words[0] += bytes;
    ++words[1];
    const std::uint64_t size = std::min(bytes / 1024 + 1, std::uint64_t{1} << 24);
    words[3] += size;
    words[4] += size * size;
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
            sums[word_out_of_step] == 0};
}

bool is_sparse(const Traits& traits, int size) {
    return traits.messages != 0 && traits.messages * dense_share < pairs_of(size);
}

bool upsets_rounds(const Traits& traits, int size) {
    return !traits.in_step && traits.messages * 10 < pairs_of(size) * 9;
}

bool meets_in_pairs(const Choice& choice, const Traits& traits, const Topology& topology) {
    return topology.nodes() > 1 && choice.algorithm->name == "spread" && !traits.in_step &&
           traits.messages < pairs_of(topology.size());
}

// A rank with few peers is one among neighbours, whose messages count, and not what all pairs have on
// average: of a thousand ranks that is next to nothing. In rounds nothing goes where even a tenth of the
// pairs have no message and ranks are out of step, whatever a table says: who has nothing for the one it
// meets is a message ahead of it from then on, and pieces that wait for one another wait for the wrong ones.
PlannedExchange decide_planned(Decision by_mean, const Traits& traits, const NeighbourSelector* neighbours,
                               const Topology& topology) {
    PlannedExchange planned{std::move(by_mean)};
    Decision& decision = planned.decision;
    const auto straight = [&] {
        decision.choice = standard_choice(*find_algorithm(Collective::alltoallv, "spread"));
    };
    const bool asked = decision.reason.starts_with("asked for");
    const bool sparse = !asked && is_sparse(traits, topology.size());
    if (sparse && topology.nodes() > 1) {
        decision = neighbours->decide(traits.mean_message_bytes);
        planned.in_pairs = decision.choice && !traits.in_step;
    }
    if (!decision.choice) return planned;
    const std::string_view name = decision.choice->algorithm->name;
    const bool in_rounds = !asked && name == "pairwise";
    if (!traits.sizes_agree)
        straight();
    else if (in_rounds && traits.unevenness > even)
        decision = {std::nullopt, "messages of uneven sizes"};
    else if ((sparse && name == "node_leader") || (in_rounds && upsets_rounds(traits, topology.size())))
        straight();
    if (decision.choice) planned.in_pairs |= meets_in_pairs(*decision.choice, traits, topology);
    return planned;
}

void at_once_if_uneven(Decision& decision, double unevenness) {
    if (unevenness <= even_neighbours || !decision.choice || decision.reason == "asked for" ||
        decision.choice->algorithm->name != "pairwise")
        return;
    decision = {standard_choice(*find_algorithm(Collective::alltoallv, "spread")),
                "messages of uneven sizes"};
}

}  // namespace thalweg
