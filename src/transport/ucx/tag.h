// How (channel, sender, operation, message) become the 64 bits that libucp matches by. The proof that no two
// live operations share a tag is a decision record (docs/decisions: tags over libucp).
//
//     space 1 | root process P | counter K | sender process P | operation L | message 14
//
// P is what the number of processes needs; the rest is shared by L and K, about one part to two.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "transport/transport.h"
#include "transport/ucx/ucx.h"

namespace thalweg::ucx {

struct TagLayout {
    static constexpr int message_bits = 14;
    int process_bits = 0;
    int counter_bits = 0;
    int operation_bits = 0;

    // Fails (false) beyond 2^23 processes: nothing would be left for operations and channels.
    static constexpr bool make(std::uint32_t processes, TagLayout& layout) {
        const int process_bits = processes <= 1 ? 0 : std::bit_width(processes - 1);
        const int rest = 64 - 1 - message_bits - 2 * process_bits;
        if (rest < 3) return false;
        const int operation_bits = std::clamp(rest / 3, 2, 16);
        layout = {process_bits, std::min(rest - operation_bits, 32), operation_bits};
        return true;
    }

    constexpr std::uint32_t live_operations() const { return 1u << operation_bits; }
    constexpr std::uint64_t counters() const { return std::uint64_t{1} << counter_bits; }

    // The bits that all messages of a channel share. Pre: name.root < 2^process_bits, name.counter <
    // counters().
    constexpr std::uint64_t channel(UcxChannelName name, OperationSpace space) const {
        std::uint64_t tag = static_cast<std::uint64_t>(space);
        tag = tag << process_bits | name.root;
        tag = tag << counter_bits | name.counter;
        return tag << (process_bits + operation_bits + message_bits);
    }
    // Pre: sender < 2^process_bits, id.message < 2^message_bits.
    constexpr std::uint64_t tag(std::uint64_t channel, std::uint32_t sender, MessageId id) const {
        const std::uint64_t operation = id.operation & (live_operations() - 1);
        return channel | std::uint64_t{sender} << (operation_bits + message_bits) |
               operation << message_bits | id.message;
    }
};

}  // namespace thalweg::ucx
