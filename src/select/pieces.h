// The pieces that a large message is run in.
#pragma once

#include <cstdint>

namespace thalweg {

// Messages above this many bytes run as several operations of at most as many: it bounds schedules, plans and
// the memory for staging. Equal on all ranks.
inline constexpr std::uint64_t piece_bytes = 32u << 20;

// `count` pieces of `bytes` each, the last one shorter. Depends on the message's size only.
struct Pieces {
    std::uint64_t bytes, count;
};
inline Pieces pieces_of(std::uint64_t message_bytes) {
    if (message_bytes <= piece_bytes) return {message_bytes, 1};
    const std::uint64_t count = (message_bytes + piece_bytes - 1) / piece_bytes;
    const std::uint64_t even = (message_bytes + count - 1) / count;
    const std::uint64_t bytes = (even + 4095) / 4096 * 4096;
    return {bytes, (message_bytes + bytes - 1) / bytes};
}

}  // namespace thalweg
