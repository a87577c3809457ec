// What a choice costs on a machine, in two ways: closed forms from the algorithms' prices, cheap enough for
// every new message size, and playing the schedules of all ranks, which knows every message but builds them
// all.
//
// Both are the port model: a message occupies its sender's and its receiver's port for latency + bytes /
// rate, and a port carries one message at a time in each direction. All ranks of a host share its port to
// other hosts; inside a host every rank has its own. Whole numbers throughout: equal on all ranks.
#pragma once

#include <cstdint>
#include <span>

#include "algorithms/algorithm.h"
#include "model/machine.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace thalweg {

// By closed forms. Pre: the choice is not refused. A choice without parts on hosts of several ranks is priced
// as if all ranks of a host sent to other hosts at once: an upper bound, far off where neighbours share a
// host.
Picoseconds predict(const Choice& choice, const Problem& problem, const Topology& topology,
                    const Machine& machine);

// When the last step of the last rank is complete. Pre: validate() accepts the schedules. Among messages that
// wait for a port the one that was ready first goes first, then the one of the lower step. O(messages × log)
// time where ports are not fought over.
Picoseconds play(std::span<const Schedule> schedules, const Topology& topology, const Machine& machine);

// What the wire needs whatever the algorithm: the bytes once over the busiest link and one latency.
Picoseconds wire_limit(std::uint64_t bytes, const Topology& topology, const Machine& machine);

}  // namespace thalweg
