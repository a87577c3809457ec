// An endpoint of a network that is somebody else's, whose polls are told of.
#pragma once

#include <functional>
#include <utility>

#include "transport/transport.h"

namespace thalweg {

class Borrowed : public Transport {
  public:
    // `polled` is called before each poll, and answers what stirred() says behind it.
    Borrowed(Transport& inner, std::function<bool()> polled) : inner_(inner), polled_(std::move(polled)) {}
    const Capabilities& capabilities() const override { return inner_.capabilities(); }
    int rank() const override { return inner_.rank(); }
    int size() const override { return inner_.size(); }
    Slot slots() const override { return inner_.slots(); }
    Status grow(Slot slots) override { return inner_.grow(slots); }
    Status post_send(Slot slot, int peer, MessageId id, const void* data, std::size_t bytes,
                     SendMode mode) override {
        return inner_.post_send(slot, peer, id, data, bytes, mode);
    }
    Status post_recv(Slot slot, int peer, MessageId id, void* data, std::size_t bytes) override {
        return inner_.post_recv(slot, peer, id, data, bytes);
    }
    Status progress(std::span<Slot> done, std::size_t& count) override {
        stirred_ = polled_();
        return inner_.progress(done, count);
    }
    std::uint64_t received_bytes(Slot slot) const override { return inner_.received_bytes(slot); }
    bool stirred() const override { return stirred_; }
    int wait_descriptor() const override { return inner_.wait_descriptor(); }
    Status arm() override { return inner_.arm(); }

  private:
    Transport& inner_;
    std::function<bool()> polled_;
    bool stirred_ = false;
};

}  // namespace thalweg
