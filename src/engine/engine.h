// Runs any valid schedule over any transport. Knows no collective and no MPI.
//
// An Execution is made once per plan (all memory is taken then) and started any number of times: start() and
// advance() allocate nothing. Steps that are ready are issued in the order of their ids; at most
// Limits::in_flight requests are posted at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "schedule/schedule.h"
#include "transport/transport.h"

namespace thalweg {

struct Limits {
    std::uint32_t in_flight = 64;            // requests posted at a time, all peers
    std::uint64_t credit_bytes = 1u << 20;   // bytes sent to one peer that it has not acknowledged
};

// The memory a run works on. `out` and `in` are the caller's and must live until the run is done; `scratch` is the
// Execution's own. in may be null where the schedule does not use it.
struct Bindings {
    const void* in = nullptr;
    void* out = nullptr;
};

// What a channel owes its peers across operations: bytes sent since the last acknowledged (synchronous) message,
// per peer. One per transport, shared by all executions on it, which run one after another or interleaved on one
// thread. O(peers that were ever sent to) memory.
class CreditLedger;
std::shared_ptr<CreditLedger> make_credit_ledger(int peers, std::uint64_t credit_bytes);

class Execution {
  public:
    // `transport` must outlive the Execution; `schedule` is shared. The transport's slots bound in_flight.
    Execution(std::shared_ptr<const Schedule> schedule, Transport& transport,
              std::shared_ptr<CreditLedger> credits, const Limits& limits);
    ~Execution();
    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;

    // Pre: not running. `operation` is this operation's number on the channel, equal on all ranks.
    Status start(const Bindings& bindings, std::uint32_t operation);
    // Issues what is ready, polls the transport once. ok when everything is complete, in_progress otherwise.
    Status advance();
    bool running() const;

    struct Impl;

  private:
    std::unique_ptr<Impl> impl_;
};

// How a thread waits for advance() to say ok. Where ranks exceed cores: a short spin, then sleep; where every rank
// has a core: spin (with a yield now and then).
enum class WaitPolicy : std::uint8_t { spin, sleep };
const char* name_of(WaitPolicy policy);

struct WaitStatistics {
    std::uint64_t polls = 0;
    std::uint64_t sleeps = 0;
    double slept_seconds = 0;
};

// Blocks until the execution is done or fails. Pre: started.
Status wait(Execution& execution, Transport& transport, WaitPolicy policy, WaitStatistics& statistics);

}  // namespace thalweg
