// Waits that are no operation's: for a request of the MPI library, or for another thread's few instructions.
#pragma once

#include <cstdint>

#include "engine/engine.h"

namespace thalweg {

// What every wait that polls does: it polls for so long, and naps for so long between polls where cores are
// shared (timed.cpp says why).
inline constexpr std::uint64_t polling_ns = 5'000;
// 15 us, or 7.5 us for each rank of a core, up to 60 us: a poll takes some 5 to 10 us of a core, and what all
// ranks of a core poll must leave it to the one for which something has come.
std::uint64_t nap_ns();
// An operation's wait over such polls: naps for so long, then sleeps of this fraction of the time already
// waited, none longer than that (timed.cpp).
inline constexpr std::uint64_t naps_for_ns = 3'000'000, waited_per_sleep = 32, longest_sleep_ns = 1'000'000;
// The first of those sleeps.
constexpr std::uint64_t shortest_sleep_ns(std::uint64_t nap_ns) { return nap_ns + nap_ns / 3; }
// So many ranks of this machine share so many cores; 1 of 1 until it is said. From any thread.
void naps_among(std::uint64_t ranks, std::uint64_t cores);

// Passes the time from a poll that found nothing to the next one: at most 200 us, and a sixteenth of what was
// waited so far where that is longer than a nap. By WaitPolicy::sleep it naps and never yields, by spin it
// yields and never naps. `began_ns`: 0 after the first poll of a wait, or of one in which something has come;
// else what the call before returned. Makes no system call in the first 5 us. Allocates nothing; leaves the
// thread's timer slack as it was.
std::uint64_t pause_between_polls(WaitPolicy policy, std::uint64_t began_ns);

}  // namespace thalweg
