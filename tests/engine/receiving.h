// What networks that tests make up have in common: nothing is sent over them, and a thread can sleep until
// something comes.
#pragma once

#include "engine/engine.h"
#include "transport/transport.h"

namespace thalweg::test {

// Rank 0 of `ranks`.
class Receiving : public Transport {
  public:
    explicit Receiving(int ranks) : ranks_(ranks) {
        capabilities_.max_message_bytes = 1 << 30;
        capabilities_.live_operations = 1 << 16;
        capabilities_.wakeup_descriptor = capabilities_.any_thread = true;
    }
    const Capabilities& capabilities() const final { return capabilities_; }
    int rank() const final { return 0; }
    int size() const final { return ranks_; }
    Slot slots() const final { return 64; }
    Status grow(Slot) final { return Status::ok; }
    Status post_send(Slot, int, MessageId, const void*, std::size_t, SendMode) final {
        return Status::unsupported;
    }

  private:
    Capabilities capabilities_;
    const int ranks_;
};

}  // namespace thalweg::test
