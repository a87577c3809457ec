// The agent of this process: made with the first communicator that needs it, and alive as long as the
// process.
#pragma once

#include <string>

#include "plan/world.h"

namespace thalweg {

class Agent;

class OwnAgent {
  public:
    // Makes it where it has not been made, and starts its thread: a system that refuses one does so now,
    // while the ranks can still say no. beside_program: its thread may call MPI beside the program's. False:
    // no memory, or no thread. Any thread.
    static bool make(const World& world, bool beside_program);
    // Null: there is none.
    static Agent* made();
    // For the report: where it lives, and why. False: there is none.
    static bool tell(std::string& place, std::string& why_there);
};

}  // namespace thalweg
