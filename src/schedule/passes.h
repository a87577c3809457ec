// Passes: functions Schedule -> Schedule that keep what is moved and change how.
#pragma once

#include <cstdint>

#include "schedule/schedule.h"

namespace thalweg {

// Cuts every message and copy into pieces at multiples of `chunk_bytes` *of the buffer offset range it moves*
// (first piece starts at the slice's start), so that a piece can be passed on while the next one arrives. A
// piece depends only on the pieces it overlaps, plus the order that was written explicitly. Both ends of a
// message cut alike, because they know its size. Pieces are ordered chunk by chunk, so that a rank with
// several children feeds all of them with the first chunk before it sends the second. chunk_bytes is raised
// where a pair would exceed max_messages_per_pair; that depends on `largest_message_bytes`, which must be
// equal on all ranks.
Schedule chunked(const Schedule& schedule, std::uint64_t chunk_bytes, std::uint64_t largest_message_bytes);

}  // namespace thalweg
