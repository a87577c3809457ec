// The vertices of a schedule: what one rank does, over slices of buffers that are bound when it starts.
#pragma once

#include <cstdint>

namespace thalweg {

// `in` is read only, `out` is what the collective defines (for a broadcast `out` is the user's buffer on
// every rank, and the root's is defined at the start), `scratch` belongs to the plan and is undefined at the
// start.
enum class Buffer : std::uint8_t { in, out, scratch };

// `bytes` bytes of `buffer` starting at `offset` bytes.
struct Slice {
    Buffer buffer = Buffer::out;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;

    constexpr std::uint64_t end() const { return offset + bytes; }
    constexpr bool operator==(const Slice&) const = default;
};

constexpr bool overlap(const Slice& a, const Slice& b) {
    return a.bytes != 0 && b.bytes != 0 && a.buffer == b.buffer && a.offset < b.end() && b.offset < a.end();
}

enum class StepKind : std::uint8_t { send, recv, copy, reduce };

using StepId = std::uint32_t;

// The number of messages one ordered pair of ranks may exchange within one run of a schedule. Transports fold
// (operation, message) into a tag and rely on it.
inline constexpr std::uint32_t max_messages_per_pair = 1u << 14;

// An operand's place in a reduction. MPI calls its operations associative, not commutative, and even for
// those that commute equal bits on all ranks need equal operands in equal places.
enum class Side : std::uint8_t { left, right };

// One vertex. send reads `source`; recv writes `target`; copy and reduce read `source` and write `target`.
// reduce also reads `target`: with source_side left, target = source op target; with right, target = target
// op source, element by element. `peer` is the other rank of a send or recv, else -1. `message` is the
// ordinal of this message among all that go from its sender to its receiver in this schedule: it pairs a send
// with its receive. A `direct` message, at both ends, may be put straight into the receiver's memory at any
// time after its send became ready, whether the receive is posted or not: so the receiver has said before, by
// a message of its own that the send waits for, that the memory is ready (validate.h checks it).
//
// A message whose ends may give it different sizes travels in pieces (full_bytes != 0) that say themselves
// where it ends: a piece of less than full_bytes is the last one, and so is one that none may follow. The
// pieces of a message have numbers that follow each other, and slices that do; the first number, full_bytes
// and may_follow are equal at both ends. How many there are each end knows by its own size only: what a
// receiver has planned behind the last piece does not happen, and what comes behind its last step is taken
// and lost (engine.h, expect_unequal).
//
// The small members stand together: schedules of thousands of ranks are millions of these.
struct Step {
    StepKind kind = StepKind::copy;
    Side source_side = Side::left;  // of a reduce
    bool direct = false;            // of a message
    std::int32_t peer = -1;
    std::uint32_t message = 0;
    std::uint32_t may_follow = 0;  // of a piece: how many of its message there are behind it at most
    Slice source;
    Slice target;
    std::uint64_t full_bytes = 0;  // of a piece: the bytes of one that another follows; 0: no piece
};
static_assert(sizeof(Step) <= 72);

constexpr bool is_message(StepKind kind) { return kind == StepKind::send || kind == StepKind::recv; }

}  // namespace thalweg
