// Selectors that communicators alike share: making one reads the tuning tables, which costs more than the
// rest of a set-up, and a program that splits in a loop makes the same communicator again and again.
#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "plan/calibrate.h"
#include "select/select.h"
#include "topology/topology.h"

namespace thalweg {

// What a selector is made from besides the topology and what never changes in a process.
struct SelectorInputs {
    Collective collective = Collective::bcast;
    std::uint32_t generation = 0;  // of the steering
    bool sleeps = false;
    bool persistent = false;  // of such operations in the memory of one host
    std::uint64_t ports = 1;  // of a host to others
    Network network;
    bool overlapped = false;  // of operations that something of ours advances
    bool neighbours = false;  // of those between the neighbours of a topology in that memory

    bool operator==(const SelectorInputs&) const = default;
};

class SelectorCache {
  public:
    // One made lately from equal inputs, else null. O(ranks).
    std::shared_ptr<const Selector> find(const Topology& topology, const SelectorInputs& inputs) const;
    // Replaces the one that was kept longest. Throws std::bad_alloc.
    void keep(std::shared_ptr<const Selector> selector, const Topology& topology,
              const SelectorInputs& inputs);

  private:
    struct Entry {
        Topology topology;
        SelectorInputs inputs;
        std::shared_ptr<const Selector> selector;
    };
    mutable std::mutex mutex_;
    std::array<Entry, 8> entries_;
    std::size_t next_ = 0;
};

}  // namespace thalweg
