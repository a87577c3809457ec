// How the bytes of a message get from one process of a host into another: one file per protocol.
//
//     protocol   who copies                        what it needs
//     eager      sender into the ring, receiver    nothing
//                out of it
//     cma_get    receiver, out of the sender       process_vm_readv works
//     cma_put    sender, into the receiver         process_vm_writev works
//     coop       both, a share each                both work
//     direct     receiver, by an ordinary copy     the bytes lie in the sender's arena, which is mapped
//
// Elements that are no single run of memory are copied to their places at once, by all of them: the system
// takes lists of stretches, and who reads or writes a ring packs and unpacks there. Where the stretches are
// so short that the system would take longer than that, only the ring is left.
//
// Small messages travel in one frame, at once. For a larger one the receiver decides when it has met its
// receive (choice.h), and tells the sender what to copy, if anything.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "transport/shm/elements.h"
#include "transport/shm/ring.h"

namespace thalweg::shm {

// What two processes can do, seen from a receiver.
struct Reach {
    bool reads = false;   // it reads the sender's memory
    bool writes = false;  // the sender writes into its memory
    bool mapped = false;  // the message lies in memory that it has mapped
};

// Bytes that a process has still to copy, and time until the wire has what it was given.
struct Load {
    std::uint64_t copy_bytes = 0;
    std::uint64_t wire_ns = 0;
};

// One side's view of a message on its way.
struct Transfer {
    pid_t pid = 0;                      // of the other side
    std::byte* local = nullptr;         // this side's memory of the whole message
    std::uint64_t remote = 0;           // the other's, in its address space
    const std::byte* mapped = nullptr;  // the same where it is mapped here
    RingWriter* ring = nullptr;         // to the other side
    std::uint64_t remote_request = 0;
    // What `local` stands for, and how the other side's elements lie, where that is no run of memory.
    StandInPart elements = {};
    const Elements* remote_elements = nullptr;
    int life = -1;  // readable when the other side has ended: then its number may be another process's
};

struct Protocol {
    const char* name;
    bool (*usable)(const Reach& reach);
    // How many bytes of a message, from its first on, the receiver copies; the sender copies the others.
    std::uint64_t (*receivers_share)(std::uint64_t bytes, const Load& receiver, const Load& sender);
    // Copies up to `bytes` bytes at `offset`: what the receiver does, what the sender does; null: nothing.
    // Sets `done`, which is less where there was no room or no more. Errors: transport_failed; unsupported:
    // not from or to this memory, but the ring is left.
    Status (*pull)(const Transfer& transfer, std::uint64_t offset, std::size_t bytes, std::size_t& done);
    Status (*push)(const Transfer& transfer, std::uint64_t offset, std::size_t bytes, std::size_t& done);
};

extern const Protocol eager, cma_get, cma_put, coop, direct;

// In the order of preference where all else is equal. A protocol's place here is its number in frames.
inline constexpr std::array<const Protocol*, 5> protocols = {&direct, &cma_get, &cma_put, &coop, &eager};

// Null: there is no such protocol.
const Protocol* find_protocol(std::uint32_t number);
const Protocol* find_protocol(const char* name);
std::uint32_t number_of(const Protocol& protocol);

// process_vm_readv and process_vm_writev, of as many stretches as one call takes.
Status cma_read(const Transfer& transfer, std::uint64_t offset, std::size_t bytes, std::size_t& done);
Status cma_write(const Transfer& transfer, std::uint64_t offset, std::size_t bytes, std::size_t& done);

}  // namespace thalweg::shm
