// The message lies in the sender's arena, which the receiver has mapped: an ordinary copy, without the
// system.
#include <cstring>

#include "transport/shm/protocol.h"

namespace thalweg::shm {

const Protocol direct = {
    "direct",
    [](const Reach& reach) { return reach.mapped; },
    [](std::uint64_t bytes, const Load&, const Load&) { return bytes; },
    [](const Transfer& transfer, std::uint64_t offset, std::size_t bytes, std::size_t& done) {
        if (transfer.elements)
            transfer.elements.store(offset, transfer.mapped + offset, bytes);
        else
            std::memcpy(transfer.local + offset, transfer.mapped + offset, bytes);
        done = bytes;
        return Status::ok;
    },
    nullptr,
};

}  // namespace thalweg::shm
