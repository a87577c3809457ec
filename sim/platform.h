// The simulated network of one machine: hosts and links in SimGrid's engine. One per process, because
// SimGrid's engine is.
#pragma once

#include <simgrid/s4u.hpp>
#include <vector>

#include "sim/machine.h"

namespace thalweg::sim {

// Bytes move over these links at shared rates; latencies are the replay's (replay.cpp), because messages of a
// pair follow one another without waiting for the wire's far end.
class Platform {
  public:
    // Builds the first `hosts` hosts of the machine, once per rail, and as much of the fabric as they need.
    // Transfers that end within `grain` seconds end together. `by_turns`: the caller sees to it that a host
    // of a star sends one transfer at a time; its link only bounds them. Throws what SimGrid throws.
    Platform(const SimMachine& machine, int hosts, double grain, bool by_turns);

    // The end of rail `rail` at host `host`.
    simgrid::s4u::Host* end(int host, unsigned rail) const {
        return ends_[rail][static_cast<unsigned>(host)];
    }

  private:
    void add_rail(const SimMachine& machine, unsigned rail, int hosts);

    simgrid::s4u::Engine* engine_;
    bool by_turns_;
    simgrid::s4u::NetZone* root_ = nullptr;
    std::vector<std::vector<simgrid::s4u::Host*>> ends_;  // [rail][host]
};

}  // namespace thalweg::sim
