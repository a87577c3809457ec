// What lanes that are gone have left in this process.
//
// A send is complete when its memory may be used again, but libucp, or a ring of the host's memory that was
// full, may still hold the end of it, which only polling moves (Transport::has_left). While a lane lives the
// agent polls for it. A program may free a plan or a communicator as soon as its own part is over, and then
// block in a native call until others have done theirs: so each port has a channel that outlives all lanes
// over it, by which the agent goes on.
#pragma once

#include "plan/attendance.h"

namespace thalweg {

class Remains {
  public:
    // Before the first lane over `carrier`. Pre: its ports are open, and there is an agent. Local; again at
    // no cost. False: no memory.
    static bool prepare(Carrier carrier);
    // A lane over `carrier` goes though something that it sent has not left. Any thread; nothing where
    // nothing was prepared, or operations have ended for good.
    static void see_out(Carrier carrier);
    // Before the ports are closed, which delivers what is left. Pre: the agent's thread does not run.
    static void close();
};

}  // namespace thalweg
