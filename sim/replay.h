// Replays the schedules of all ranks of one operation on a simulated machine. The engine's rules hold: a step
// starts when its dependencies are complete and its rank's processor is free to post it; messages of a pair
// leave in the order in which they were posted.
//
// Modelled: posting, completing and copying on the rank's core, one at a time; eager and rendezvous messages;
// links shared by max-min fairness, one transfer at a time per pair of ranks and rail; the link's message
// rate and the number of messages it works on at once; memory shared by the host's copies; several rails;
// progress by the caller or by an agent; cores that hosts share, where the cluster is an emulated one. Of an
// eager message inside a host only the second copy shares the memory: the first ends in a cache. Cells that
// lie apart (ReplayOptions::moved) take whole cache lines, in a copy inside a host, or gathered and scattered
// at the ends of a message between hosts. Where kernels send (SimMachine::kernel_sends): connections that
// take turns on a host's link, frames and what acknowledges them, sockets that are full, announcements and
// answers behind other bytes of their connection, the engine's credits; over libucp, puts: written, answered
// by the receiver's library, and told of by a message. Not modelled: noise, the engine's window, congestion
// control, adaptive routing, messages that a library splits over several rails, caches otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "sim/machine.h"
#include "sim/program.h"
#include "topology/topology.h"

namespace thalweg::sim {

// Who advances an operation while its rank computes: the caller, which does so only inside the call that
// waits, or an agent on a core of its own.
enum class Progress : std::uint8_t { caller, agent };

// When a rank copies the large messages of its own host, each as a whole.
enum class Copies : std::uint8_t {
    behind_messages,  // as the engine: when nothing that a peer waits for is left to do
    as_matched,       // in the order in which messages come, whichever way they come
    before_network    // as libraries whose progress looks at the network only when the host has nothing
};

// Who shares links among the transfers that are under way. by_size: SimGrid's solver or, where thousands may
// be, a quicker one of ours.
enum class Shares : std::uint8_t { by_size, simgrid, ours };

struct ReplayOptions {
    Shares shares = Shares::by_size;
    Progress progress = Progress::caller;
    Copies copies = Copies::behind_messages;
    // Messages are sent as Thalweg's engine does over an MPI library: some synchronously, by its credits.
    // Matters where kernels move the bytes.
    bool credits = false;
    // The machine as operations that are left to the MPI library find it (Act::left): what their messages
    // take of a core, and whether they ask first. Empty: as the others do.
    std::optional<SimMachine> library;
    unsigned repeat = 1;  // of how many runs of one operation each schedule is made (variants.h, repeated())
    // What had gone over the same channel before operations of the same kind did, and in which order ranks
    // begin that share cores, drawn from this; 0: nothing, and in theirs.
    std::uint64_t history = 0;
    // Every rank starts the operation, computes for so long, then waits. 0: a blocking call.
    double compute_seconds = 0;
    // The same of each rank, where it is not empty.
    std::vector<double> compute_by_rank;
    // What a copy of a message from one rank to another of so many bytes moves through memory, where that is
    // not its bytes: see moved_bytes().
    std::function<std::uint64_t(int from, int to, std::uint64_t bytes)> moved;
    std::string trace_path;  // Chrome/Perfetto JSON of every step; empty: none
};

struct Outcome {
    std::string why;                // empty: replayed; else one sentence that names rank and step
    double seconds = 0;             // until the last rank is done
    double own_seconds = 0;         // the most that a rank takes from where it begins itself
    double root_seconds = 0;        // until rank 0 is done
    double mean_seconds = 0;        // over the ranks
    std::vector<double> by_rank;    // seconds until each rank is done
    std::uint64_t messages = 0;     // of at least one byte
    std::uint64_t bytes = 0;        // sent
    std::uint64_t inter_bytes = 0;  // of them between hosts
    std::uint64_t steps = 0;
};

// One call per process: SimGrid's engine and its clock are global (sim/point.h forks). Checked on the way:
// every send meets a receive of its size, no rank has two unordered steps that touch the same bytes,
// everything completes.
Outcome replay(std::span<const Schedule> schedules, const Topology& topology, const SimMachine& machine,
               const ReplayOptions& options);

// As above, each rank by its program instead: options.compute_* have no meaning then. Pre: the programs
// of all ranks start and wait for every step once.
Outcome replay(std::span<const Schedule> schedules, std::span<const Program> programs,
               const Topology& topology, const SimMachine& machine, const ReplayOptions& options);

}  // namespace thalweg::sim
