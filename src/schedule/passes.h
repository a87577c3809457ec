// Passes: functions Schedule -> Schedule that keep what is moved and change how.
#pragma once

#include <cstdint>

#include "schedule/schedule.h"

namespace thalweg {

// Cuts every message, copy and reduction into pieces of `chunk_bytes`, counted from the start of its slice
// (the last piece may be shorter), so that a piece can be passed on while the next one arrives. Both ends of
// a message cut alike, because they know its size, and number its pieces alike.
//
// A piece depends on the pieces that it overlaps of the steps that its step depended on; order that was
// written although nothing overlaps holds between all pieces. Pieces are ordered chunk by chunk as far as
// their dependencies allow, so that a rank with several children feeds all of them with the first chunk
// before it sends the second.
//
// chunk_bytes is raised so that no pair exceeds max_messages_per_pair: first for all ranks alike, so that
// `largest_message_bytes` (equal on all ranks; 0: unknown) fits; then, for a pair whose messages together
// still do not fit, doubled as often as needed at both ends. 0 chunk_bytes: nothing is cut.
//
// Pre: order between steps that touch the same bytes is written directly, as Builder writes it. Where a
// reduction is cut, chunk_bytes is a multiple of its element. Doing it twice is the same as doing it once.
Schedule chunked(const Schedule& schedule, std::uint64_t chunk_bytes, std::uint64_t largest_message_bytes);

}  // namespace thalweg
