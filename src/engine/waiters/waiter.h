// How a thread passes the time until the next event. One interface for all ways; each way is one file here.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace thalweg {

// Used by one thread at a time. wait() calls begin(), then after every poll progressed() or idle(), then
// end().
class Waiter {
  public:
    virtual ~Waiter() = default;
    virtual void begin() {}
    // Something completed: more may be there already, so poll again at once.
    virtual void progressed() {}
    // A poll found nothing. Returns when it is time for the next one, at most 1 ms later. A waiter that
    // sleeps on a descriptor asks `transport` to arm it; one that cannot is handed the transport for nothing.
    virtual void idle(Transport& transport, WaitStatistics& statistics) = 0;
    virtual void end() {}
};

// Pauses, and yields the core now and then.
std::unique_ptr<Waiter> make_spin_waiter();
// A short spin, then naps, then sleeps that grow with the time already waited, guided by how far apart events
// have been. Never yields.
std::unique_ptr<Waiter> make_timed_waiter();

}  // namespace thalweg
