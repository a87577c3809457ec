// Where no blocking broadcast of the job can be one of ours (every rank on one host, nothing asked for), the
// wrappers of MPI_Bcast keep the native function and jump to it without asking: a call costs one load more
// than without Thalweg, which is what a short call can bear when nothing of ours is in the caches. Such calls
// are not counted.
//
// Whoever wants to see broadcasts holds the bypass closed; it is open while nobody does.
#pragma once

#include <atomic>

namespace thalweg {

// The native function that a wrapper jumps to, null while it has to ask. Relaxed: the code behind the address
// was there before, and a thread that makes calls after another one closed the bypass is told of it by the
// program's own synchronisation.
using Shortcut = std::atomic<void*>;

// Why thalweg_get_last_call and the report know nothing of a broadcast.
inline constexpr const char* bypass_reason = "one host: handed on unseen";

class Bypass {
  public:
    // One load.
    static bool open();
    // From now on until the bypass is closed the wrapper that owns `shortcut` jumps to `native`. Does nothing
    // while it is closed. `shortcut` lives as long as the process.
    static void remember(Shortcut& shortcut, void* native);

    // Closed for the first holder, and opened by the last that lets go. One hold is there from the start, for
    // the world, which may let go of it in MPI_Init.
    static void hold();
    static void let_go();
};

}  // namespace thalweg
