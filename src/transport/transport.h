// What an engine needs from a network: a page of primitives with pre-conditions and capabilities, and no
// policy.
//
// A Transport is one *channel*: a fixed group of ranks 0 … size-1 that share a space of operation numbers. No
// call ever blocks, allocates (but grow) or takes longer than the work of one poll. A channel is used by one
// thread at a time.
//
// Requests live in *slots* 0 … slots()-1 that the engine hands out. A slot is busy from post_* until
// progress() returns it; posting to a busy slot is a programming error. A message is identified by (peer,
// operation, message); messages with different identities may complete in any order; a message meets the
// receive with the same identity, which must have the same number of bytes. Messages of equal identity (the
// parts of one that is larger than max_message_bytes, and operations whose numbers are live_operations apart)
// meet receives in the order in which both were posted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace thalweg {

using Slot = std::uint32_t;

struct MessageId {
    std::uint32_t operation = 0;  // number of the operation on this channel, in call order; wraps at 2^32
    std::uint32_t message = 0;    // Step::message, below max_messages_per_pair
};

enum class SendMode : std::uint8_t {
    buffered,     // complete when the memory may be reused; the receiver may not have seen it
    synchronous,  // complete only after the receiver matched it: the acknowledgement that credits are made of
};

struct Capabilities {
    const char* name = "";              // "mpi", "inproc", … static storage
    std::size_t max_message_bytes = 0;  // larger messages must be split by the caller
    // The transport tells this many consecutive operations apart: of the operations that a rank has started
    // and not completed, the numbers must differ by less than this. At least 2; a power of two.
    std::uint32_t live_operations = 2;
    bool wakeup_descriptor =
        false;                // wait_descriptor() and arm() work: a waiter can sleep until the next event
    bool any_thread = false;  // may be driven while the owner is inside the host MPI (an agent can use it)
    bool one_sided = false;   // put and signal (not offered by any transport yet)
};

class Transport {
  public:
    virtual ~Transport() = default;

    virtual const Capabilities& capabilities() const = 0;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual Slot slots() const = 0;
    // Makes slots() at least `slots`; requests in flight are not disturbed. The one call here that may
    // allocate, made when plans are made. Errors: unsupported (slots are what the hardware has),
    // out_of_memory; slots() is unchanged.
    virtual Status grow(Slot slots) = 0;

    // Pre: slot is free, 0 <= peer < size, bytes <= max_message_bytes. The memory stays valid and, for a
    // receive, untouched until the slot is returned by progress(). Errors: transport_failed (the channel is
    // then unusable).
    virtual Status post_send(Slot slot, int peer, MessageId id, const void* data, std::size_t bytes,
                             SendMode mode) = 0;
    virtual Status post_recv(Slot slot, int peer, MessageId id, void* data, std::size_t bytes) = 0;

    // Polls once and writes the slots that completed into `done` (as many as fit; the rest next time). Sets
    // `count`. Also advances the host MPI where the transport shares its progress. Errors: transport_failed,
    // mismatch (a message met a receive of another size).
    virtual Status progress(std::span<Slot> done, std::size_t& count) = 0;

    // Keeps the *host MPI* progressing while a thread blocks in an operation of ours and nothing else calls
    // it: a peer may be stuck in a large MPI_Send to us before it joins. May be a no-op where progress() does
    // it.
    virtual void drive_host() {}

    // Sleeping until the next event, where capabilities().wakeup_descriptor says so. arm() returns ok when a
    // wait on the descriptor is safe, in_progress when events are pending and progress() must run first.
    virtual int wait_descriptor() const { return -1; }
    virtual Status arm() { return Status::unsupported; }
};

}  // namespace thalweg
