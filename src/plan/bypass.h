// Where no blocking collective of a kind can be one of ours (every rank on one host, nothing asked for), or
// none of fewer bytes than some, the wrappers keep the native function and jump to it without asking: a call
// costs one load more than without Thalweg, and where longer ones are looked at a few comparisons, which is
// what a short call can bear when nothing of ours is in the caches. Such calls are not counted.
//
// Whoever wants to see calls holds the bypass closed; it is open while nobody does. It has sides of their own
// for exchanges, which are blocking alltoalls and neighbourhoods, for nonblocking calls, which are handed on
// where nothing of ours would advance them, for blocking ones that are of interest only where somebody is
// to be met in them, and for those that complete requests, which are handed on while none is ours.
// Nonblocking ones are counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "algorithms/algorithm.h"
#include "plan/shortcut.h"
#include "plan/statistics.h"

namespace thalweg {

class Bypass {
  public:
    enum Side : std::size_t { collectives, exchanges, requests, meetings, completions, sides };
    // No limit, and the largest one (shortcut.h multiplies).
    static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
    static constexpr std::uint64_t most = (std::uint64_t{1} << 56) - 1;

    // One load.
    static bool open(Side side = collectives);
    // Whether it is open for blocking ones of that kind: for all, for any, or for `count` elements of
    // `datatype`, a handle, for all that the handle tells.
    static bool open_for_all(Collective collective);
    static bool open_for_some(Collective collective);
    static bool open_for(Collective collective, std::int64_t count, std::intptr_t datatype);
    // Whether a datatype is a predefined one, for all that its handle tells and set_limits() was told.
    static bool is_predefined(std::intptr_t datatype);

    // From now on until the bypass is closed the wrapper that owns `shortcut` jumps to `native` for messages
    // of that kind below its limit; one that cannot tell what is `short_` only where there is none. Does
    // nothing while it is closed. `shortcut` lives as long as the process.
    static void remember(ThalwegShortcut& shortcut, void* native, Collective collective, bool short_);
    static void remember(ThalwegExchangeShortcut& shortcut, void* native);
    static void remember(ThalwegMeetingShortcut& shortcut, void* native);
    static void remember(ThalwegRequestShortcut& shortcut, void* native, CallKind kind);
    static void remember(ThalwegCompletion call, void* native);

    // Closed for the first holder, and opened by the last that lets go. One hold of each side is there from
    // the start, for the world, which may let go of it in MPI_Init, when the wrappers have been probed
    // (interpose/inside.h).
    static void hold(Side side);
    static void let_go(Side side);
    // Collectives of a kind of whose messages it opens for those of fewer bytes; for none at 0.
    using Limits = std::array<std::uint64_t, collective_count>;
    // For these, and says where that is. A handle h of a datatype with (h & mask) == predefined tells a size,
    // or `sizes` do, which may be null. At first it opens for all. Pre: held by the caller.
    static void set_limits(const Limits& below, const char* where, std::uint32_t mask,
                           std::uint32_t predefined, const ThalwegTypeSizes* sizes);

    // Calls that make requests and were handed on are added to those that were declined for this reason.
    static void count_requests(Reason reason);

    // Why thalweg_get_last_call and the report know nothing of a call: "one host: handed on unseen", and
    // below how many bytes where that is not all, or was not when it was open last for calls of that kind.
    static std::string reason(Collective collective);
};

}  // namespace thalweg
