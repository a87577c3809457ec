// How messages between the neighbours of a topology travel. Each is known at its two ends only, so the cost
// model has nothing to compare: a tuning table speaks, or every message goes straight to its rank at once.
// Where node_leader was asked for, the caller finds out whether leaders can be told what they need.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "algorithms/exchange.h"
#include "select/select.h"
#include "select/table.h"

namespace thalweg {

// Tables are read once. Immutable after construction. Throws std::bad_alloc.
class NeighbourSelector {
  public:
    // A malformed Selection::table is ignored (check_table says why).
    NeighbourSelector(const Topology& topology, const Selection& selection);

    // Of calls in which nobody knows what all ranks send.
    static constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();
    // `largest_bytes`: of all messages of all ranks, equal on all of them. Rows that leave small messages to
    // the native MPI do not speak for unknown ones.
    Decision decide(std::uint64_t largest_bytes) const;
    // Whether that may depend on the size: elsewhere nobody need find it out.
    bool by_size() const { return !rows_.empty(); }
    // Whether what hosts exchange is to travel together.
    bool bundles() const;

  private:
    Topology topology_;
    std::optional<Choice> forced_;
    std::vector<TuningRow> rows_;  // that fit this communicator; the first that has the size decides
};

// Whatever the algorithm is: neighbours meet in pairs, and where the ends of a message are not known to give
// it the same bytes, those of no bytes are messages, too. Pre: exchange.sizes_agree says which.
void as_neighbours(Exchange& exchange);

}  // namespace thalweg
