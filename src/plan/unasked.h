// Blocking exchanges that a trial leaves to the native library whatever they are like, for good or until it
// looks at some again, and broadcasts of one size: they are counted without looking at their communicator,
// because what is not in the caches of a program costs a short call more than it has. There is room for some
// communicators, kinds of call and sizes at a time; calls of others are counted as usual, which comes to the
// same.
//
// A wrapper in C may have the exchanges of one communicator to itself, in the cache line that it reads
// anyhow; and that of broadcasts those of one size.
//
// The trial and the report are told how many there were when the last one has been, or at settle().
#pragma once

#include <mpi.h>

#include <cstdint>

#include "plan/shortcut.h"
#include "plan/statistics.h"

namespace thalweg {

class Trial;
struct UnaskedCalls;

class Unasked {
  public:
    static constexpr std::uint64_t all = ~std::uint64_t{0};

    // Of what each of them is like.
    struct Alike {
        CallKind kind;
        std::uint64_t bytes = 0;  // of a broadcast; 0: they are exchanges of any size
        int ranks = 0;            // of a broadcast's communicator
    };
    // The next `calls` on `comm`, told to `trial` and counted in what it counts declined calls in, which live
    // until they are settled. Does nothing where there is no room.
    static void begin(MPI_Comm comm, const Alike& alike, std::uint64_t calls, Trial& trial);
    // Those that this call is one of, valid until it is made; null: it is none, or something was asked for
    // meanwhile. By the thread that makes it.
    static UnaskedCalls* of(MPI_Comm comm, CallKind kind);
    // The latest of a trial's counts for nothing: the native library refused it. By the thread that made it.
    // False: there was none of them yet.
    static bool take_back(const Trial& trial);
    // Pre: they are under way.
    static Trial* trial_of(const UnaskedCalls& calls);
    // Null: they are no more, or those of another communicator.
    static Trial* trial_of(const UnaskedCalls& calls, MPI_Comm comm);
    // The same of a broadcast; null, too, where another one of its trial's comes, or its root is none: that
    // one is asked about. Pre: bytes != 0.
    static UnaskedCalls* of_broadcast(MPI_Comm comm, std::uint64_t bytes, int root);
    // From the next call on the wrapper that owns `shortcut` makes them itself, by `native`, until there are
    // no more, of() is asked, or ask_again(). Where it makes those of others, they are asked about
    // again, if one thread alone calls MPI, and now and then; else, and where a blocking call may be
    // where somebody is met, this does nothing. By the thread that asked. `shortcut` lives as long as the
    // process.
    static void hand_over(UnaskedCalls& calls, ThalwegExchangeShortcut& shortcut, void* native);
    // The same of broadcasts, which the wrapper knows by `count` and `datatype`, a handle, of the call that
    // was asked about. Does nothing where that is not known to be a predefined one's: all others are asked
    // about.
    static void hand_over(UnaskedCalls& calls, ThalwegBroadcastShortcut& shortcut, void* native,
                          std::int64_t count, std::intptr_t datatype);
    // Wrappers do nothing themselves from now on. By any thread.
    static void ask_again();
    // None is left of one trial, or, where it is null, of any. Not beside of() for the same communicator:
    // the program frees it, or has made its last call.
    static void settle(const Trial* trial);
    // The same of the broadcasts on `comm`: another selection decides about them from now on, or they fail.
    // Ranks that had no room for theirs ask all the same, and must not be alone with that. By the thread that
    // makes calls on `comm`.
    static void settle_broadcasts(MPI_Comm comm);
};

}  // namespace thalweg
