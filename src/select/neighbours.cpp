#include "select/neighbours.h"

#include <string_view>
#include <utility>

namespace thalweg {
namespace {

// What an algorithm that was asked for may refuse does not depend on it.
constexpr std::uint64_t any_bytes = 64 << 10;

Choice straight() { return standard_choice(*find_algorithm(Collective::alltoallv, "spread")); }

}  // namespace

NeighbourSelector::NeighbourSelector(const Topology& topology, const Selection& selection)
    : topology_(topology), forced_(selection.forced) {
    const auto take = [&](const TuningTable& table) {
        if (table.collective != Collective::alltoallv || !speaks_for(table, selection.machine.inter)) return;
        for (const TuningRow& row : table.rows)
            if (row.neighbours && speaks_of(row, selection.family, selection.library) && fits(row, topology))
                rows_.push_back(row);
    };
    if (forced_) return;
    for (const TuningTable& table : tables_in(selection.table)) take(table);
    for (const TuningTable& table : built_in_tuning()) take(table);
}

bool NeighbourSelector::bundles() const {
    return forced_ && forced_->algorithm->name == "node_leader" && topology_.nodes() > 1;
}

Decision NeighbourSelector::decide(std::uint64_t largest_bytes) const {
    if (topology_.size() <= 1) return {std::nullopt, "one rank"};
    // Leaders of one host have nobody to lead for.
    if (forced_ && !goes_straight(*forced_) && !bundles()) return {straight(), "asked for"};
    if (forced_) {
        Problem problem;
        problem.size = topology_.size();
        problem.bytes = any_bytes;
        const std::string_view refused = refuse(*forced_, problem, topology_);
        if (!refused.empty()) return {std::nullopt, "asked for, but " + std::string(refused)};
        return {*forced_, "asked for"};
    }
    for (const TuningRow& row : rows_)
        if (row.bytes.has(largest_bytes)) return {row.choice, "tuning table"};
    if (topology_.nodes() <= 1) return {std::nullopt, "one host"};
    return {straight(), "neighbours"};
}

void as_neighbours(Exchange& exchange) {
    exchange.empty_travel = !exchange.sizes_agree;
    exchange.in_pairs = true;
}

}  // namespace thalweg
