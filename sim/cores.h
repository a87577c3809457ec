// The cores of the ranks: each is on one task at a time, for so long or until its bytes have gone through its
// host's memory. Private to the replay.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "sim/clock.h"
#include "sim/machine.h"
#include "sim/memory.h"
#include "sim/rank.h"
#include "topology/topology.h"

namespace thalweg::sim {

// Copies and reductions of fewer bytes take their time alone: they share no memory worth mentioning.
inline constexpr std::uint64_t small_copy_bytes = 4096;

class Cores {
  public:
    // `freed(rank)`: its core has ended a task, and whatever that led to has been noted. The references must
    // outlive this.
    Cores(const SimMachine& machine, const Topology& topology, std::vector<Rank>& ranks,
          std::function<void(std::size_t)> freed)
        : topology_(topology),
          shared_(machine.shared_cores > 0),
          ranks_(ranks),
          freed_(std::move(freed)),
          memory_(topology.nodes(), machine.host_copy_rate),
          cores_(1, machine.shared_cores * nanoseconds_per_second) {}

    // The core of rank r is busy for so long, and then does `then` at once.
    template <class Then>
    void occupy(std::size_t r, double seconds, Then then) {
        if (seconds <= 0) return then();
        ranks_[r].busy = true;
        const auto done = [this, r, then] { release(r, then); };
        if (!shared_) return at(now() + seconds, done);
        const auto nanoseconds = static_cast<std::uint64_t>(std::llround(seconds * nanoseconds_per_second));
        cores_.move(0, nanoseconds, nanoseconds_per_second, done);
    }

    // It is busy with so many bytes, at most `rate` of them per second.
    template <class Then>
    void copy(std::size_t r, std::uint64_t bytes, double rate, Then then) {
        if (bytes <= small_copy_bytes) return occupy(r, static_cast<double>(bytes) / rate, then);
        ranks_[r].busy = true;
        memory_.move(topology_.node_of(static_cast<int>(r)), bytes, rate,
                     [this, r, then] { release(r, then); });
    }

  private:
    static constexpr double nanoseconds_per_second = 1e9;

    template <class Then>
    void release(std::size_t r, Then then) {
        ranks_[r].busy = false;
        ranks_[r].looping = true;  // what `then` adds to this rank is done by the call below
        then();
        ranks_[r].looping = false;
        freed_(r);
    }

    const Topology& topology_;
    bool shared_;  // all hosts' ranks have a few cores together, as an emulated cluster's do
    std::vector<Rank>& ranks_;
    std::function<void(std::size_t)> freed_;
    Memory memory_;
    Memory cores_;  // where they are shared: nanoseconds of work instead of bytes
};

}  // namespace thalweg::sim
