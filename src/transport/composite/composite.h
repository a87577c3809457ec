// One transport of two: one between the ranks of a host, another between hosts. What crosses hosts is served
// first, at every poll, and copies inside the host, which the inner transport makes chunk by chunk, fill the
// wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "transport/composite/wire_meter.h"
#include "transport/transport.h"

namespace thalweg {

class PeerAccounts;
class ShmPort;

// What the composite transports of a process share. Outlives them.
class Junction {
  public:
    Junction() = default;
    ~Junction();
    Junction(const Junction&) = delete;
    Junction& operator=(const Junction&) = delete;

    WireMeter& meter() { return meter_; }

  private:
    friend class Composite;
    // One that is ready when either is; made at the first use. -1: the system refuses.
    int descriptor_of(int inside, int between);

    WireMeter meter_;
    std::mutex mutex_;
    int descriptor_ = -1;
};

struct CompositeParts {
    // Both are channels of the same group: same size, same rank. Neither is null.
    std::unique_ptr<Transport> inside, between;
    // By rank: whether `inside` carries messages with it. Equal at both ends of every pair. Not null; all
    // transports of a communicator may share one.
    std::shared_ptr<const std::vector<bool>> is_near;
    // Not null. All parts of transports that share one are channels of the same two ports.
    Junction* junction = nullptr;
    // The port of `inside`: told what is on the wire, so that it chooses accordingly. May be null.
    ShmPort* port = nullptr;
    // Where what crosses hosts is measured, and what is packed for that is counted; both parts count for
    // themselves. Outlives the transport; null: nowhere.
    PeerAccounts* accounts = nullptr;
};

// Errors, with `made` unchanged: invalid_argument (the parts do not fit), unsupported (no descriptor to sleep
// on where both parts have one), out_of_memory.
Status make_composite(CompositeParts parts, std::unique_ptr<Transport>& made);

}  // namespace thalweg
