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
#include "topology/topology.h"

namespace thalweg::sim {

class Protocol {
  public:
    using MessageId = std::uint32_t;

    // `segments`: kernels send, in segments. `credits`: some messages between hosts are synchronous then, by
    // the engine's credits and what went over their channel before, drawn from `history`. The references must
    // outlive this.
    Protocol(const SimMachine& machine, const Matching& matching, const Topology& topology, bool segments,
             bool credits, std::uint64_t history);

    bool inside(const Matched& m) const { return topology_.node_of(m.from) == topology_.node_of(m.to); }
    // Not preceded by a question.
    bool eager(MessageId index) const;
    // Eager, and not sent before its receiver has answered.
    bool answered(MessageId index) const {
        return synchronous(index) && !machine_.synchronous_asks &&
               matching_.messages[index].bytes <= machine_.inter_eager;
    }
    double latency(const Matched& m) const {
        return inside(m) ? machine_.intra_latency : machine_.inter_latency;
    }

    // Whether the engine's credits say when message `index` goes.
    bool counted(MessageId index) const {
        return credits_ && !inside(matching_.messages[index]) && !put(index);
    }
    // It is written into its receiver's memory.
    bool put(MessageId index) const { return machine_.puts && matching_.messages[index].direct; }
    // Credits::post. Pre: counted.
    bool post(MessageId index, bool oldest) { return credits_->post(index, oldest); }
    // What goes now that message `index` has been sent, in this order.
    std::vector<MessageId> sent(MessageId index);

    // Of its core, for a task that concerns a message and copies none as a whole.
    double seconds_for(Task task) const;
    // Bytes of an eager message that its receiver did not copy while the rest was on its way.
    std::uint64_t came_last(const Matched& m) const;

  private:
    // Until a socket has of a message what it takes at once.
    double handed(const Matched& m) const;
    bool synchronous(MessageId index) const { return counted(index) && credits_->synchronous(index); }

    const SimMachine& machine_;
    const Matching& matching_;
    const Topology& topology_;
    bool segments_;
    std::optional<Credits> credits_;  // where synchronous messages matter
};

}  // namespace thalweg::sim
