// Copy in, copy out: the sender writes pieces into the receiver's ring, who copies each to its place when it
// takes it out. Twice the copies, but nothing to ask the system for; what remains where it refuses all else.
#include <algorithm>
#include <cstring>

#include "transport/shm/protocol.h"

namespace thalweg::shm {

const Protocol eager = {
    "eager",
    [](const Reach&) { return true; },
    [](std::uint64_t, const Load&, const Load&) { return std::uint64_t{0}; },
    nullptr,
    [](const Transfer& transfer, std::uint64_t offset, std::size_t bytes, std::size_t& done) {
        done = 0;
        while (done < bytes) {
            Frame frame;
            frame.kind = FrameKind::piece;
            frame.other = transfer.remote_request;
            frame.offset = offset + done;
            frame.payload = static_cast<std::uint32_t>(std::min(bytes - done, piece_bytes));
            std::byte* const place = transfer.ring->reserve(frame);
            if (place == nullptr) break;
            if (transfer.elements)
                transfer.elements.load(place, frame.offset, frame.payload);
            else
                std::memcpy(place, transfer.local + frame.offset, frame.payload);
            transfer.ring->publish();
            done += frame.payload;
        }
        return Status::ok;
    },
};

}  // namespace thalweg::shm
