// Threads as ranks: a network inside one process, for tests of everything above transport.h.
//
// A message is a record in its receiver's mailbox; the receiver copies straight from the sender's memory, so
// a send completes when it has been received. What is hard about real networks can be switched on: messages
// that are held back, completions out of order, sends that complete before they are received, a small largest
// message.
#pragma once

#include <cstdint>
#include <memory>

#include "transport/transport.h"

namespace thalweg {

struct InprocOptions {
    Slot slots = 256;
    bool fixed_slots = false;  // grow() refuses
    std::size_t max_message_bytes = std::size_t{1} << 31;
    std::uint32_t live_operations = 1u << 18;
    // Buffered sends of at most this many bytes are copied and complete at once; the receiver then holds the
    // copy until it receives. 0: every send is synchronous, the strictest network that schedules must run on.
    std::size_t eager_bytes = 0;
    bool overtakes = false;  // says so; messages stay in their order all the same
    // Every message becomes visible after a random number of its receiver's polls below this; completions are
    // returned in random order. 0: no delay.
    std::uint32_t delay_polls = 0;
    std::uint64_t seed = 1;
    // wait_descriptor() and arm() work: a rank can sleep until something arrives for it.
    bool wakeup_descriptor = false;
};

// The network of `size` ranks. endpoint(r) is rank r's Transport: used by one thread at a time, different
// ranks' by different threads. The network must outlive its endpoints' use.
class InprocNetwork {
  public:
    InprocNetwork(int size, const InprocOptions& options);
    ~InprocNetwork();
    Transport& endpoint(int rank);
    // Bytes in copies of eager messages that `rank` has not received, now and at most so far.
    std::uint64_t unexpected_bytes(int rank) const;
    std::uint64_t largest_unexpected_bytes(int rank) const;
    // Of the synchronous messages that `rank` has sent.
    std::uint64_t synchronous_bytes(int rank) const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace thalweg
