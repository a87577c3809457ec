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
// Pieces of an orderly group (engine/orderly.h) need not be orderly. Where all pieces of a message are passed
// on alike they are; where blocks of one message go on in messages of their own (a scatter, then a ring) they
// are not: the first piece of such a block depends on a late piece of the large message, but is placed with
// first pieces, and ranks of different blocks disagree on what comes first. No order that a rank can find
// from its own steps alone both feeds all children of a tree piece by piece and settles that. Such schedules
// still run (engine/window.h), and algorithms that pipeline cut themselves.
//
// Pre: order between steps that touch the same bytes is written directly, as Builder writes it. Where a
// reduction is cut, chunk_bytes is a multiple of its element. Doing it twice is the same as doing it once.
Schedule chunked(const Schedule& schedule, std::uint64_t chunk_bytes, std::uint64_t largest_message_bytes);

}  // namespace thalweg
