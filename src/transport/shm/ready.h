// Receives that a peer has told of before their messages were sent: who sends one of these asks no more.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/shm/wire.h"

namespace thalweg::shm {

// The longest message whose receive is told of beforehand, if it is to come through the ring: what is longer
// is copied for so long that the question costs little.
inline constexpr std::uint64_t most_ready_bytes = ring_bytes;

// Of one peer, in the order in which it told of them. The room is there from the beginning.
class Readies {
  public:
    static constexpr std::size_t most = 32;

    bool empty() const { return count_ == 0; }
    // False: there is no room.
    bool add(const Frame& frame) {
        if (count_ == most) return false;
        all_[count_++] = {frame.channel, frame.operation, frame.message, frame.bytes, frame.cookie};
        return true;
    }
    // The oldest for this message, taken out: the peer's receive. 0: there is none of so many bytes; one of
    // another number is gone too, because its receive gets what it is not there for.
    std::uint64_t take(std::uint64_t channel, std::uint32_t operation, std::uint32_t message,
                       std::uint64_t bytes) {
        const Place found = find(channel, operation, message);
        if (found == end()) return 0;
        const std::uint64_t receive = found->bytes == bytes ? found->receive : 0;
        std::copy(found + 1, end(), found);
        --count_;
        return receive;
    }
    bool has(std::uint64_t channel, std::uint32_t operation, std::uint32_t message) {
        return find(channel, operation, message) != end();
    }
    bool knows(std::uint64_t receive) {
        return std::any_of(all_.begin(), end(), [&](const Ready& ready) { return ready.receive == receive; });
    }
    void forget(std::uint64_t receive) {
        remove_if([&](const Ready& ready) { return ready.receive == receive; });
    }
    // The oldest of this channel, for whatever message; 0: there is none.
    std::uint64_t any_of(std::uint64_t channel) {
        const Place found =
            std::find_if(all_.begin(), end(), [&](const Ready& ready) { return ready.channel == channel; });
        return found == end() ? 0 : found->receive;
    }
    void clear() { count_ = 0; }

  private:
    struct Ready {
        std::uint64_t channel = 0;
        std::uint32_t operation = 0, message = 0;
        std::uint64_t bytes = 0, receive = 0;
    };
    using Place = std::array<Ready, most>::iterator;

    Place find(std::uint64_t channel, std::uint32_t operation, std::uint32_t message) {
        return std::find_if(all_.begin(), end(), [&](const Ready& ready) {
            return ready.channel == channel && ready.operation == operation && ready.message == message;
        });
    }
    Place end() { return all_.begin() + static_cast<std::ptrdiff_t>(count_); }
    template <typename Which>
    void remove_if(Which which) {
        count_ = static_cast<std::size_t>(std::remove_if(all_.begin(), end(), which) - all_.begin());
    }

    std::array<Ready, most> all_{};
    std::size_t count_ = 0;
};

}  // namespace thalweg::shm
