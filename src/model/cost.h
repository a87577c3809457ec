// What a choice costs on a machine, in two ways: closed forms from the algorithms' prices, cheap enough for
// every new message size, and playing the schedules of all ranks, which knows every message but builds them
// all.
//
// Both are the port model: a message occupies its sender's and its receiver's port for latency + bytes /
// rate, and a port carries one message at a time in each direction. All ranks of a host share its ports to
// other hosts, one per rail; inside a host every rank has one of its own, and what all of them copy goes
// through the host's memory. A reduction takes its core's time.
// Whole numbers throughout: equal on all ranks.
#pragma once

#include <cstdint>
#include <span>

#include "algorithms/algorithm.h"
#include "model/machine.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace thalweg {

// By closed forms. Pre: the choice is not refused. A choice without parts on hosts of several ranks is priced
// as if all ranks of a host sent to other hosts at once: their bytes one after another, far too many where
// neighbours share a host, their latencies beside one another, as adapters have them and play() has not. The
// copy of a rank's own contribution into place is not counted: it overlaps.
Picoseconds predict(const Choice& choice, const Problem& problem, const Topology& topology,
                    const Machine& machine);

// When the last step of the last rank is complete. Pre: validate() accepts the schedules. Among messages that
// wait for a port the one that was ready first goes first, then the one of the lower step. O(messages × log)
// time where ports are not fought over.
Picoseconds play(std::span<const Schedule> schedules, const Topology& topology, const Machine& machine);

// What the wire needs whatever the algorithm: the bytes that must cross the busiest link (into the host whose
// other ranks hold most, the whole message of a broadcast, 2 n (h-1)/h of a reduction among h hosts) over all
// its ports, and one latency. Inside one host a rank counts as a host.
Picoseconds wire_limit(Collective collective, std::uint64_t bytes, const Topology& topology,
                       const Machine& machine);

// What a full host's memory needs whatever the algorithm: everything that its ranks end with, but one rank's
// part, is copied there. 0 where nothing must be.
Picoseconds copy_limit(Collective collective, std::uint64_t bytes, const Topology& topology,
                       const Machine& machine);

}  // namespace thalweg
