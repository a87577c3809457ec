// What processes of one host write into each other's memory: the layout of a segment, and the frames in its
// rings. Nothing here is trusted by its reader (ring.h, segment.cpp).
//
//     segment of a process:  header | ring 0 | ring 1 | … | arena
//
// A ring belongs to one sender, who claims it, and is read by the segment's owner. The arena is memory of the
// owner's that all who have mapped the segment can copy from.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace thalweg::shm {

inline constexpr std::uint64_t magic = 0x7468616c77656707u;  // its last byte counts versions of this layout
inline constexpr std::size_t frame_bytes = 64;
// What a ring holds, and the most that it does where its ends wait for a core rather than for each other.
inline constexpr std::size_t ring_bytes = 128 * 1024, most_ring_bytes = 512 * 1024;
constexpr bool is_length_of_ring(std::uint64_t bytes) {
    return bytes >= ring_bytes && bytes <= most_ring_bytes && std::has_single_bit(bytes);
}
// The most that one frame carries: several fit into a ring, so that copying in and copying out overlap.
inline constexpr std::size_t payload_bytes = 32 * 1024;
// And of a message that is carried in pieces.
inline constexpr std::size_t piece_bytes = 16 * 1024;
// Processes of one host that can send to one of them.
inline constexpr std::uint32_t most_rings = 512;

enum class FrameKind : std::uint32_t {
    skip,   // the rest of the ring is empty
    eager,  // a whole message; `cookie` != 0: acknowledge it to that request when it is matched
    // A message whose bytes lie at `address` of the sender; `cookie`: its request. Where they are no single
    // run, the payload says how they lie, or `address` is 0: only the sender reaches them.
    request,
    // To `other`: copy the bytes from `share` on, by `protocol`, to `address`; `cookie`: the receive. Payload
    // and address as for a request. A second one, when the sender has said `pushed`: the bytes from `offset`
    // to `share`, which the receiver could not copy, through the ring.
    answer,
    piece,   // bytes of the message of receive `other`, at `share`
    pushed,  // to receive `other`: all that the sender had to copy is there
    taken,   // to send `other`: the receiver has all that it had to copy, or has matched an eager one
    // The send `cookie`, whose message may be here, or on its way to receive `other`, is void: copy no more
    // of it, and say `taken`.
    recall,
    leaving,  // the sender's last word
    stored,   // bytes of a put that must go through the ring: to `address`, in memory that is exposed
    ready,    // an answer beforehand: the receive `cookie` of this message gets its `bytes` in pieces
    unready,  // the receive `cookie`, which was told of, is gone: `unheard`, if its message was not sent
    unheard,  // to receive `other`, which was told of: its message will be asked about all the same
    // Of the channel, which the sender has given up, puts of its own included: put nothing into its memory
    // there any more, and say `none_put`.
    no_puts,
    none_put,  // of the channel: nothing of the sender's is put there any more
};

// One frame; `payload` bytes follow it, rounded up to frame_bytes.
struct Frame {
    FrameKind kind = FrameKind::skip;
    std::uint32_t payload = 0;
    std::uint64_t channel = 0;  // of a message: its identity
    std::uint32_t operation = 0, message = 0;
    std::uint64_t bytes = 0;  // of the whole message
    std::uint64_t address = 0;
    std::uint64_t cookie = 0, other = 0;
    union {
        std::uint64_t arena =
            0;                 // request, answer: where `address` lies in the writer's arena, plus one; or 0
        std::uint64_t offset;  // piece; a second answer
    };
};
static_assert(sizeof(Frame) == frame_bytes);

struct RingControl {
    // Process number of the sender plus one; 0: free. Set once, by compare-and-swap.
    alignas(64) std::atomic<std::uint64_t> sender{0};
    // What the sender can do in the owner's memory by process_vm_readv and process_vm_writev, as tried.
    std::atomic<std::uint32_t> sender_reads{0}, sender_writes{0};
    // The sender waits for space: the owner rings its bell when it has taken something out.
    std::atomic<std::uint32_t> wants_space{0};
    // Bytes ever written and ever taken.
    alignas(64) std::atomic<std::uint64_t> tail{0};
    alignas(64) std::atomic<std::uint64_t> head{0};
};

// Where one lies; its data are behind its control.
struct Ring {
    RingControl* control = nullptr;
    std::byte* data = nullptr;
    std::size_t bytes = 0;  // of the data
};

struct Header {
    std::uint64_t magic = 0;
    std::uint64_t nonce = 0;  // of this process, this time
    std::uint64_t process = 0;
    std::uint64_t rings = 0, ring_bytes = 0;  // of the data of each
    std::uint64_t arena_bytes = 0;
    std::uint64_t probed = 0;  // what a peer writes to find out that it can
    // Someone sleeps on the owner's descriptor: who writes a frame takes this and rings the bell.
    alignas(64) std::atomic<std::uint32_t> asleep{0};
    // For the choice of protocols: what the owner still has to copy, and has on the wire.
    alignas(64) std::atomic<std::uint64_t> copy_bytes{0};
    std::atomic<std::uint64_t> wire_ns{0};
    // One bit per ring: something was written since the owner last looked.
    alignas(64) std::atomic<std::uint64_t> written[most_rings / 64]{};
};

// Never zero: zero is nobody's.
inline std::uint64_t cookie_of(std::uint32_t index, std::uint32_t generation) {
    return std::uint64_t{generation} << 32 | (index + 1);
}

}  // namespace thalweg::shm
