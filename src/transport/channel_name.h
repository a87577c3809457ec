// How channels are told apart by transports that know all channels of a process, such as ucx and shm.
#pragma once

#include <cstdint>

namespace thalweg {

// The name of a channel, equal on all its ranks: a counter of the process that is rank 0 of the group.
struct ChannelName {
    std::uint32_t root = 0;
    std::uint32_t counter = 0;
    bool operator==(const ChannelName&) const = default;
};

// A channel has two spaces of operation numbers, which are two Transports of the same name: calls are
// numbered in call order; a persistent plan has one number as long as it lives, and all its rounds use it.
enum class OperationSpace : std::uint8_t { calls, plans };

}  // namespace thalweg
