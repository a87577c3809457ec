// Blocking exchanges that a trial leaves to the native library whatever they are like, for good or until it
// looks at some again: they are counted without looking at their communicator, because what is not in the
// caches of a program costs a short call more than it has. There is room for some communicators and kinds of
// call at a time; calls of others are counted as usual, which comes to the same.
//
// The trial and the report are told how many there were when the last one has been, or at settle().
#pragma once

#include <mpi.h>

#include <cstdint>

#include "plan/statistics.h"

namespace thalweg {

class Trial;

class Unasked {
  public:
    static constexpr std::uint64_t all = ~std::uint64_t{0};

    // The next `calls` of `kind` on `comm`, counted in `declined` and told to `trial`, which both live until
    // they are settled. Does nothing where there is no room.
    static void begin(MPI_Comm comm, CallKind kind, std::uint64_t calls, Trial& trial, Tally& declined);
    // Whether this call is one of them; where something was asked for meanwhile it is not. By the thread that
    // makes it.
    static bool has(MPI_Comm comm, CallKind kind);
    // None is left of one trial, or, where it is null, of any. Not beside has() for the same communicator:
    // the program frees it, or has made its last call.
    static void settle(const Trial* trial);
};

}  // namespace thalweg
