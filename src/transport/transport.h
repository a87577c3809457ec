// What an engine needs from a network: a page of primitives with pre-conditions and capabilities, and no
// policy.
//
// A Transport is one *channel*: a fixed group of ranks 0 … size-1 that share a space of operation numbers. No
// call ever blocks, allocates (but where it says so, and a peer's first use) or takes longer than the work of
// one poll. A channel is used by one thread at a time; with the capability any_thread that may be another one
// each time, and different channels may be used by different threads at the same time.
//
// Requests live in *slots* 0 … slots()-1 that the engine hands out. A slot is busy from post_* until
// progress() returns it; posting to a busy slot is a programming error. A message is identified by (peer,
// operation, message); messages with different identities may complete in any order; a message meets the
// receive with the same identity, which must have the same number of bytes, but where both ends say
// MessageId::unequal. Messages of equal identity (the
// parts of one that is larger than max_message_bytes, and operations whose numbers are live_operations apart)
// meet receives in the order in which both were posted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "transport/stand_in.h"

namespace thalweg {

using Slot = std::uint32_t;

struct MessageId {
    std::uint32_t operation = 0;  // number of the operation on this channel, in call order; wraps at 2^32
    std::uint32_t message = 0;    // Step::message, below max_messages_per_pair
    // Its ends may give it different sizes: so it is not cut by its size, and the receiver asks what came. Of
    // both ends alike; no part of what tells messages apart.
    bool unequal = false;
};

enum class SendMode : std::uint8_t {
    buffered,     // complete when the memory may be reused; the receiver may not have seen it
    synchronous,  // complete only after the receiver matched it: the acknowledgement that credits are made of
};

struct Capabilities {
    const char* name = "";              // "mpi", "inproc", … static storage
    std::size_t max_message_bytes = 0;  // larger messages that are not `unequal` must be split by the caller
    // The transport tells this many consecutive operations apart: of the operations that a rank has started
    // and not completed, the numbers must differ by less than this. At least 2; a power of two.
    std::uint32_t live_operations = 2;
    bool wakeup_descriptor =
        false;                // wait_descriptor() and arm() work: a waiter can sleep until the next event
    bool any_thread = false;  // may be driven while the owner is inside the host MPI (an agent can use it)
    bool one_sided = false;   // expose, attach and post_put work
    bool stand_ins = false;   // stand_in() works
    // received_bytes() knows the size of a message that was longer than its receive.
    bool tells_excess = false;
    int rails = 1;  // links between hosts that it uses side by side
    // A large synchronous message asks its receiver first, and what is sent behind it overtakes it. Of all
    // ranks alike.
    bool overtakes = false;
};

// Memory that this rank has exposed; memory of a peer that this rank has attached. Numbers of one channel.
using Region = std::uint32_t;
using Target = std::uint32_t;

class Transport {
  public:
    virtual ~Transport() = default;

    virtual const Capabilities& capabilities() const = 0;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual Slot slots() const = 0;
    // Makes slots() at least `slots`; requests in flight are not disturbed. The one call here that may
    // allocate beside expect(), made when plans are made. Errors: unsupported (slots are what the hardware
    // has), out_of_memory; slots() is unchanged.
    virtual Status grow(Slot slots) = 0;
    // From now on, until forgo() of the same, a receive of so many bytes from `peer` is posted again and
    // again. What this transport itself keeps of messages that come before their receives has its room then,
    // as long as the peer is not more than one such receive ahead. Where there is no memory for it, it is
    // taken when it is needed. Any thread.
    virtual void expect(int /*peer*/, std::size_t /*bytes*/) {}
    virtual void forgo(int /*peer*/, std::size_t /*bytes*/) {}

    // Pre: slot is free, 0 <= peer < size, bytes <= max_message_bytes unless id.unequal. The memory stays
    // valid and, for a receive, untouched until the slot is returned by progress(). Errors: transport_failed
    // (the channel is then unusable).
    virtual Status post_send(Slot slot, int peer, MessageId id, const void* data, std::size_t bytes,
                             SendMode mode) = 0;
    virtual Status post_recv(Slot slot, int peer, MessageId id, void* data, std::size_t bytes) = 0;

    // Polls once and writes the slots that completed into `done` (as many as fit; the rest next time). Sets
    // `count`. Also advances the host MPI where the transport shares its progress. Errors: transport_failed,
    // mismatch (a message met a receive of another size).
    virtual Status progress(std::span<Slot> done, std::size_t& count) = 0;

    // Of a receive that progress() returned last, posted as `unequal`: the bytes of its message, which are
    // the first of its memory; more than it was posted for where there was no room for all, and then they may
    // be nowhere.
    virtual std::uint64_t received_bytes(Slot) const { return 0; }
    // Where their number is not known: not with the capability tells_excess.
    static constexpr std::uint64_t too_many_bytes = ~std::uint64_t{0};

    // Whether the last progress() moved anything at all, though nothing completed: part of a large message.
    // Who sleeps by the clock looks again at once then, because buffers that were full hold up the sender.
    virtual bool stirred() const { return false; }
    // Whether the next progress() has something to do that waits for nobody: elements that have come and are
    // not in their places yet. No descriptor tells of it, so nobody sleeps before.
    virtual bool has_work() const { return false; }

    // A send completes when its memory may be used again; what it said may still lie in a buffer of this
    // process, which only progress() empties. has_left(sent()) says whether everything that has been sent
    // until now is beyond that: until then somebody must go on polling, though no slot is in use. Calls of
    // progress() make it true. A transport that moves by itself, or with the host MPI, need not know better.
    virtual std::uint64_t sent() const { return 0; }
    virtual bool has_left(std::uint64_t /*sent*/) { return true; }

    // Keeps the *host MPI* progressing while a thread blocks in an operation of ours and nothing else calls
    // it: a peer may be stuck in a large MPI_Send to us before it joins. May be a no-op where progress() does
    // it.
    virtual void drive_host() {}

    // Sleeping until the next event, where capabilities().wakeup_descriptor says so: poll() or epoll the
    // descriptor for reading; never read it. It stays the same for the transport's life, and several
    // transports may share one. arm() returns ok when a wait on the descriptor is safe, in_progress when
    // events are pending and progress() must run first. A thread that sleeps for several transports arms each
    // and sleeps only if all said ok. A wake-up is good for one sleep; it may be for nothing. Errors:
    // unsupported, transport_failed.
    virtual int wait_descriptor() const { return -1; }
    virtual Status arm() { return Status::unsupported; }

    // What it was for has failed, perhaps above it, and nobody posts, polls or sleeps any more. Who sleeps
    // for it is woken; what still comes for it keeps nobody awake who would sleep for another transport of
    // the same descriptor. What is in flight is withdrawn as far as that can be done, because the program
    // may do with its memory what it likes: the one call that may wait for peers, 1 s at most.
    virtual void give_up() {}

    // What peers of this host say comes at once; what crosses hosts comes in packets, most of which change
    // nothing. Whether messages with `peer` cross; and a descriptor like wait_descriptor() that hears only of
    // what does not cross, once arm_inside() has said ok: for a thread that packets shall not wake. -1: none.
    virtual bool crosses(int /*peer*/) const { return true; }
    virtual int inside_descriptor() const { return -1; }
    virtual Status arm_inside() { return Status::unsupported; }

    // Where capabilities().stand_ins says so: messages from and to memory that stands for elements elsewhere.
    // What lies in that memory itself is nobody's business any more. Not on the hot path: it allocates. Pre
    // of end_stand_in: no slot in use refers to it. Errors: unsupported, out_of_memory.
    virtual Status stand_in(StandIn /*memory*/) { return Status::unsupported; }
    virtual void end_stand_in(const std::byte* /*memory*/) {}

    // One-sided transfers, where capabilities().one_sided says so. A rank exposes memory and gives the key to
    // its peers in any way; a peer attaches it and puts into it. Not on the hot path: these allocate.
    //
    // expose: `memory`, of at least one byte, stays valid until conceal(); nobody may put into it from then
    // on. attach: `key` is what `peer` got for the region. Errors: unsupported, out_of_memory,
    // invalid_argument (no memory, a malformed key), transport_failed.
    virtual Status expose(void*, std::size_t, Region&, std::vector<std::byte>&) {
        return Status::unsupported;
    }
    virtual void conceal(Region) {}
    virtual Status attach(int, std::span<const std::byte>, Target&) { return Status::unsupported; }
    virtual void detach(Target) {}
    // Writes `bytes` bytes at `offset` of the target, then signals: the peer's receive of zero bytes with
    // identity `signal` completes when the data is in its memory, and not before. The slot completes when
    // `data` may be reused and the signal is on its way. Otherwise as post_send; invalid_argument: beyond the
    // target.
    virtual Status post_put(Slot, Target, std::uint64_t /*offset*/, const void* /*data*/,
                            std::size_t /*bytes*/, MessageId /*signal*/) {
        return Status::unsupported;
    }
};

}  // namespace thalweg
