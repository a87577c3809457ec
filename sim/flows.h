// Transfers that share the links of a platform by max-min fairness. Private to the replay.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "sim/platform.h"

namespace thalweg::sim {

class Flows {
  public:
    using Id = std::uint32_t;

    Flows() = default;
    Flows(const Flows&) = delete;
    Flows& operator=(const Flows&) = delete;
    virtual ~Flows() = default;

    // `bytes` (whole ones, at least 1) from one host to another over one rail, from now on. `done` runs at
    // the end; the number means nothing any more then.
    virtual Id begin(int from, int to, unsigned rail, double bytes, std::function<void()> done) = 0;
    // It has no share of any link until it is resumed.
    virtual void suspend(Id flow) = 0;
    virtual void resume(Id flow) = 0;
};

// By SimGrid's solver, which ends what ends within the platform's grain together. The platform must outlive
// it; one per process.
std::unique_ptr<Flows> simgrid_flows(const Platform& platform);

// By a solver of ours over the same routes (sim/shares.cpp): the same shares, in a tenth of the time where
// thousands of transfers are under way. What ends within `grain` seconds ends together. The platform must
// outlive it.
std::unique_ptr<Flows> shared_flows(const Platform& platform, int hosts, double grain);

}  // namespace thalweg::sim
