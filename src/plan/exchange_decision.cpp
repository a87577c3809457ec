#include "plan/exchange_decision.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "plan/declining.h"
#include "plan/native_plan.h"
#include "select/exchanges.h"
#include "select/neighbours.h"

namespace thalweg {

namespace {

// Needs nothing that one end of a message alone does not know.
constexpr char straight_name[] = "spread";
// Needs leaders that are told what their hosts exchange.
constexpr std::string_view leader_name = "node_leader";

}  // namespace

void go_straight(Decision& decision, Collective collective, const char* what, int rank) {
    if (rank == 0)
        THALWEG_LOG_AT(warn, "%s has receives of other sizes than what is sent: it goes by %s", what,
                       straight_name);
    decision.choice = standard_choice(*find_algorithm(collective, straight_name));
}

void without_leaders(Decision& decision, const Exchange& exchange) {
    if (decision.choice && decision.choice->algorithm->name == leader_name && !exchange.hosts_informed)
        decision.choice = standard_choice(*find_algorithm(Collective::alltoallv, straight_name));
}

Traits Forethought::traits(NonblockingState& state, const CollectiveCall& call, const CallShape& shape) {
    carrier = state.exchange_carrier();
    if (known) return *known;
    if (coming) {
        name = state.name_first_plan();
        return coming->take();
    }
    // Others may turn out to be the native library's, and names are few.
    if (call.neighbours) name = state.name_plan();
    return agree_on_traits(call.comm, shape.letters, state.rank(), state.size(), state.topology(), &name);
}

namespace {

// By what the ranks know of the calls before this one. Of a blocking call that is to run as a schedule the
// trial finds out whether that is faster than the native library, whatever a table says of sizes like these;
// a nonblocking one is tried by nobody, and the table's word counts: that of neighbours where they are few.
void expect(NonblockingState& state, const CollectiveCall& call, const Traits& traits, CallShape& shape,
            Decision& decision) {
    shape.decided_bytes = traits.mean_bytes;
    const std::uint64_t bytes = call.blocking ? traits.mean_bytes : deciding_bytes(traits, state.topology());
    Decision known = state.decide(call.collective, bytes);
    if (!call.blocking && is_sparse(traits, state.size()) && state.topology().nodes() > 1)
        known = decide_sparse(std::move(known), traits, state.neighbours());
    if (!call.blocking && !known.choice) {
        decision = std::move(known);
        return;
    }
    const std::string_view name = known.choice ? known.choice->algorithm->name : "";
    const bool waits =
        name == "pairwise" && (traits.unevenness > even || is_upset(*known.choice, traits, state.topology()));
    if (name.empty() || name == leader_name || waits)
        known = {standard_choice(*find_algorithm(call.collective, straight_name)), "straight"};
    decision = std::move(known);
}

}  // namespace

Decision decide_exchange(NonblockingState& state, const CollectiveCall& call, CallShape& shape,
                         std::optional<Exchange>& exchange, Forethought& forethought) {
    exchange.emplace();
    const auto order_by = [&exchange, &state](const Decision& by, const Traits& like) {
        exchange->in_pairs = by.choice && meets_in_pairs(*by.choice, like, state.topology());
    };
    if (call.tried != nullptr) {
        if (call.expected != nullptr) {
            shape.decided_bytes = call.expected->mean_bytes;
            order_by(*call.tried, *call.expected);
        }
        return *call.tried;
    }
    Traits traits{assumed_pair_bytes, 0};
    if (call.persistent) traits = forethought.traits(state, call, shape);
    shape.decided_bytes = traits.mean_bytes;
    exchange->sizes_agree = traits.sizes_agree;
    Decision decision = forethought.decision
                            ? *forethought.decision
                            : state.decide(call.collective, deciding_bytes(traits, state.topology()));
    const bool waits_for_nobody = !call.blocking && !call.persistent;
    const Traits* const expected = waits_for_nobody ? state.exchange_traits() : call.expected;
    const bool free = expected != nullptr && !decision.reason.starts_with("asked for");
    if (!decision.choice && !call.persistent && !(free && waits_for_nobody)) return decision;
    if (free) {
        expect(state, call, *expected, shape, decision);
        order_by(decision, *expected);
        return decision;
    }
    if (call.persistent) {
        const NeighbourSelector* const few = is_sparse(traits, state.size()) ? &state.neighbours() : nullptr;
        PlannedExchange planned = decide_planned(std::move(decision), traits, state.selector(call.collective),
                                                 few, state.topology());
        decision = std::move(planned.decision);
        exchange->in_pairs = planned.in_pairs;
        if (!decision.choice) return decision;
        if (!traits.sizes_agree) go_straight(decision, call.collective, "an alltoall", state.rank());
    }
    if (decision.choice->algorithm->name != leader_name) return decision;
    if (call.persistent &&
        inform_leaders(call.comm, shape.letters, state.rank(), state.topology(), *exchange))
        return decision;
    decision.choice = standard_choice(*find_algorithm(call.collective, straight_name));
    if (call.persistent) order_by(decision, traits);
    return decision;
}

void send_whole(Decision& decision, bool neighbours) {
    if (!decision.choice) return;
    // Whole messages in rounds by distance are not what a table names pieces in pairs for.
    if (neighbours && decision.reason != "asked for") {
        decision.choice = standard_choice(*find_algorithm(Collective::alltoallv, straight_name));
        return;
    }
    const auto parameters = decision.choice->algorithm->parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (std::string_view(parameters[i].name) == "chunk_bytes") decision.choice->values[i] = 0;
}

void rather_straight(Decision& decision) {
    if (decision.choice || reason_of(decision) != Reason::native_best) return;
    decision = {standard_choice(*find_algorithm(Collective::alltoallv, straight_name)),
                "the MPI library has none of its own"};
}

// Neighbours are few, and what they exchange is known at the two ends of each message only: every message
// goes straight to its rank, one of no bytes too, unless both ends are known to have none. By leaders where
// that was asked for: of a persistent one they are told the bytes, of others they may know the edges.
Decision decide_neighbours(NonblockingState& state, const CollectiveCall& call, CallShape& shape,
                           std::optional<Exchange>& exchange, Forethought& forethought) {
    exchange.emplace();
    shape.decided_bytes = assumed_pair_bytes;
    if (call.tried != nullptr) {
        as_neighbours(*exchange);
        return *call.tried;
    }
    const bool told = !call.persistent && !call.blocking;
    Decision decision = forethought.decision ? *forethought.decision
                                             : state.neighbours().decide(told ? state.neighbour_bytes()
                                                                              : NeighbourSelector::unknown);
    if (nobody_else_serves(call)) rather_straight(decision);
    if (decision.choice && call.persistent) {
        forethought.messages = forethought.traits(state, call, shape);
        exchange->sizes_agree = forethought.messages.sizes_agree;
    }
    if (decision.choice && decision.choice->algorithm->name == leader_name) {
        if (!call.persistent) {
            exchange->slot_bytes = state.leaders().slot_bytes();
            exchange->hosts_informed = exchange->slot_bytes != 0;
        } else if (exchange->sizes_agree) {
            inform_leaders(call.comm, shape.letters, state.rank(), state.topology(), *exchange);
        }
    }
    without_leaders(decision, *exchange);
    as_neighbours(*exchange);
    // Of a plan more is known (make_ongoing).
    if (!call.persistent) exchange->in_pairs = settle_neighbours(decision, state.edges(), state.topology());
    return decision;
}

}  // namespace thalweg
