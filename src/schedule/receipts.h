// A pass that lets a sender learn what has been received without a large message that asks.
//
// Credits (engine/credits.h) make some messages synchronous. Where a library then asks the receiver first,
// everything that is sent behind such a message overtakes it, and the answer stands behind what the receiver
// itself is sending. A synchronous message of no bytes is not overtaken: it goes where it stands.
#pragma once

#include <cstdint>

#include "schedule/schedule.h"

namespace thalweg {

struct Receipts {
    std::uint64_t every_bytes = 256 << 10;  // bytes of a pair between one receipt and the next, at least
    std::uint64_t least_bytes = 128 << 10;  // pairs that exchange less get none
};

// Adds messages of no bytes: for every ordered pair one behind each message with which `every_bytes` have
// gone since the one before, and one behind its last message. A receipt is sent when its message has left,
// behind what was ready with it, and received when that is there.
//
// Both ranks of a pair decide alike, by the sizes of its messages, and number their messages as before,
// receipts last. Left without: pairs with a direct message, and those whose numbers would not do
// (max_messages_per_pair). An orderly group (engine/orderly.h) stays orderly: a receipt takes the place
// behind its message.
//
// Pre: both ends of every message give it the same size.
Schedule with_receipts(const Schedule& schedule, const Receipts& receipts = {});

}  // namespace thalweg
