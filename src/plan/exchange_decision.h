// How an exchange runs whose pairs differ: an alltoallv, or one between the neighbours of a topology.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "plan/attendance.h"
#include "plan/collective_call.h"
#include "plan/exchange.h"
#include "plan/nonblocking.h"
#include "select/select.h"
#include "transport/channel_name.h"

namespace thalweg {

// What an alltoall is decided by where no argument is equal on all ranks: until something is agreed, messages
// that are worth taking, and not so large that an algorithm which many small ones would suffer from is
// chosen.
inline constexpr std::uint64_t assumed_pair_bytes = 48 << 10;

// What the ranks know of a persistent exchange before it is planned: with the set-up on the way to them, or
// still to be agreed on; and the name of its lane, where rank 0 has given one.
struct Forethought {
    std::optional<TraitsToCome> coming;
    std::optional<Traits> known;       // agreed on already, of one in the memory of the host,
    std::optional<Decision> decision;  // which goes by this
    std::optional<ChannelName> name;
    Carrier carrier = Carrier::none;  // of that
    Traits messages;                  // of neighbours

    Forethought() = default;
    // Gives a name back that was not taken.
    ~Forethought() {
        if (name) Attendance::give_back(carrier, *name);
    }
    Forethought(const Forethought&) = delete;
    Forethought& operator=(const Forethought&) = delete;
    std::optional<ChannelName> take_name() { return std::exchange(name, std::nullopt); }
    // Collective.
    Traits traits(NonblockingState& state, const CollectiveCall& call, const CallShape& shape);
};

// Both: collective where it is persistent, and then what all messages are like is agreed on, and leaders are
// told what travels together. Every rank decides alike. Throw std::bad_alloc, AgreementFailed.
Decision decide_exchange(NonblockingState& state, const CollectiveCall& call, CallShape& shape,
                         std::optional<Exchange>& exchange, Forethought& forethought);
Decision decide_neighbours(NonblockingState& state, const CollectiveCall& call, CallShape& shape,
                           std::optional<Exchange>& exchange, Forethought& forethought);

// Of a plan whose sizes do not agree: by what needs no more than each end of a message knows.
void go_straight(Decision& decision, Collective collective, const char* what, int rank);
// Of one whose leaders know nothing: likewise.
void without_leaders(Decision& decision, const Exchange& exchange);
// A schedule rather than a native call that is expected to be faster.
void rather_straight(Decision& decision);
// Each message in one; between neighbours straight to its rank, unless something else was asked for.
void send_whole(Decision& decision, bool neighbours);

}  // namespace thalweg
