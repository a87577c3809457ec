// What the MPI library of the replayed ranks does with a message, and what that takes of their cores. Private
// to the replay.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/credits.h"
#include "sim/machine.h"
#include "sim/matching.h"
#include "sim/rank.h"
#include "sim/replay.h"
#include "topology/topology.h"

namespace thalweg::sim {

class Protocol {
  public:
    using MessageId = std::uint32_t;

    // `segments`: kernels send, in segments; where options.credits says so, some messages between hosts are
    // synchronous then, by the engine's credits and what went over their channel before. The references must
    // outlive this.
    Protocol(const SimMachine& machine, const Matching& matching, const Topology& topology, bool segments,
             const ReplayOptions& options);

    bool inside(const Matched& m) const { return topology_.node_of(m.from) == topology_.node_of(m.to); }
    // Not preceded by a question.
    bool eager(MessageId index) const;
    // Eager, and not sent before its receiver has answered.
    bool answered(MessageId index) const {
        return synchronous(index) && !machine_.synchronous_asks &&
               matching_.messages[index].bytes <= machine_.inter_eager;
    }
    // As operations find it that are left to the MPI library, or those that are not.
    const SimMachine& machine_for(bool left) const {
        return left && options_.library ? *options_.library : machine_;
    }
    double latency(const Matched& m) const {
        return inside(m) ? machine_.intra_latency : machine_.inter_latency;
    }

    // Whether the engine's credits say when message `index` goes.
    bool counted(MessageId index) const {
        const Matched& m = matching_.messages[index];
        return credits_ && !m.left && !inside(m) && !put(index);
    }
    // It is written into its receiver's memory.
    bool put(MessageId index) const {
        const Matched& m = matching_.messages[index];
        return m.direct && machine_for(m.left).puts;
    }
    // Credits::post. Pre: counted.
    bool post(MessageId index, bool oldest) { return credits_->post(index, oldest); }
    // What goes now that message `index` has been sent, in this order.
    std::vector<MessageId> sent(MessageId index);

    // Through memory, by a copy of it.
    std::uint64_t moved(const Matched& m) const {
        return options_.moved ? options_.moved(m.from, m.to, m.bytes) : m.bytes;
    }
    // Of its core, for a task that concerns a message and copies none as a whole.
    double seconds_for(Task task) const;
    // Bytes of an eager message that its receiver did not copy while the rest was on its way, and what its
    // cells take where they lie apart.
    std::uint64_t came_last(const Matched& m) const;

  private:
    // For cells that lie apart: `part` of the lines that they lie in beyond their bytes.
    double apart(const Matched& m, double part) const {
        return static_cast<double>(moved(m) - m.bytes) * part / machine_.copy_rate;
    }
    // Until a socket has of a message what it takes at once.
    double handed(const Matched& m) const;
    bool synchronous(MessageId index) const { return counted(index) && credits_->synchronous(index); }

    const SimMachine& machine_;
    const Matching& matching_;
    const Topology& topology_;
    bool segments_;
    const ReplayOptions& options_;
    std::optional<Credits> credits_;  // where synchronous messages matter
};

}  // namespace thalweg::sim
