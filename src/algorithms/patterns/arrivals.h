// When the bytes of a message are at hand on one rank of a schedule: what a second algorithm can start from,
// piece by piece, before the first has ended.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace thalweg::patterns {

// `slice` of `out` may be passed on once the first `steps` steps of the schedule have been issued.
struct Arrival {
    Slice slice;
    std::size_t steps = 0;
};

// Cuts `message` into the pieces in which it arrives on the rank of `schedule`, in the order of arrival.
// Bytes that come twice arrive once.
//
// A rank that has the message from the start (`holds_all`) passes a piece on after its last send of it, every
// other one after the sends that follow its receive: the first algorithm's messages are issued first, the
// second fills the time until the next piece. O(steps log steps).
std::vector<Arrival> arrivals(const Schedule& schedule, const Slice& message, bool holds_all);

// Cuts `message` where it is written for the last time, in the order of these writes: what is passed on piece
// by piece where bytes are written more than once (a reduction). What is not written at all comes first.
// O(steps log steps).
std::vector<Arrival> settled(const Schedule& schedule, const Slice& message);

}  // namespace thalweg::patterns
