#include "transport/inproc/inproc.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

namespace thalweg {
namespace {

class Endpoint;

// A message on its way. `data` is the sender's memory, or `copy` where it was sent eagerly.
struct Message {
    Endpoint* from = nullptr;
    Slot slot = 0;
    MessageId id;
    const void* data = nullptr;
    std::size_t bytes = 0;
    std::uint64_t visible_at = 0;  // the receiver's poll number
    std::unique_ptr<std::byte[]> copy;
};

struct Receive {
    const Endpoint* from = nullptr;
    Slot slot = 0;
    MessageId id;
    void* data = nullptr;
    std::size_t bytes = 0;
};

class Endpoint final : public Transport {
  public:
    Endpoint(std::vector<std::unique_ptr<Endpoint>>& all, int rank, int size, const InprocOptions& options)
        : all_(all), rank_(rank), size_(size), options_(options), random_(options.seed * 7919 + rank) {
        capabilities_.name = "inproc";
        capabilities_.max_message_bytes = options.max_message_bytes;
        capabilities_.live_operations = options.live_operations;
        capabilities_.any_thread = true;
        capabilities_.overtakes = options.overtakes;
        capabilities_.tells_excess = true;
        if (options.wakeup_descriptor) descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        capabilities_.wakeup_descriptor = descriptor_ >= 0;
        reserve();
    }
    ~Endpoint() override {
        if (descriptor_ >= 0) close(descriptor_);
    }
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    const Capabilities& capabilities() const override { return capabilities_; }
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    Slot slots() const override { return options_.slots; }
    Status grow(Slot slots) override {
        if (slots <= options_.slots) return Status::ok;
        if (options_.fixed_slots) return Status::unsupported;
        const std::lock_guard lock(mutex_);
        options_.slots = slots;
        reserve();
        return Status::ok;
    }

    Status post_send(Slot slot, int peer, MessageId id, const void* data, std::size_t bytes,
                     SendMode mode) override {
        if (mode == SendMode::synchronous) synchronous_bytes_ += bytes;
        Message message{this, slot, reduced(id), data, bytes, 0, nullptr};
        const bool eager =
            mode == SendMode::buffered && bytes <= options_.eager_bytes && options_.eager_bytes != 0;
        if (eager) {
            message.copy.reset(new std::byte[bytes]);
            if (bytes != 0) std::memcpy(message.copy.get(), data, bytes);
            message.data = message.copy.get();
        }
        all_[peer]->arrive(std::move(message));
        if (eager) complete(slot);
        return Status::ok;
    }

    Status post_recv(Slot slot, int peer, MessageId id, void* data, std::size_t bytes) override {
        receives_.push_back({all_[peer].get(), slot, reduced(id), data, bytes});
        return Status::ok;
    }

    Status progress(std::span<Slot> done, std::size_t& count) override {
        if (!match()) return Status::mismatch;
        for (auto& [receive, message] : matched_) {
            const std::size_t bytes = std::min(receive.bytes, message.bytes);
            if (bytes != 0) std::memcpy(receive.data, message.data, bytes);
            received_[receive.slot] = message.bytes;
            if (!message.copy) message.from->complete(message.slot);
            complete(receive.slot);
        }
        matched_.clear();
        const std::lock_guard lock(mutex_);
        if (options_.delay_polls != 0) std::shuffle(completed_.begin(), completed_.end(), random_);
        count = std::min(done.size(), completed_.size());
        std::copy_n(completed_.begin(), count, done.begin());
        completed_.erase(completed_.begin(), completed_.begin() + static_cast<std::ptrdiff_t>(count));
        return Status::ok;
    }

    std::uint64_t received_bytes(Slot slot) const override { return received_[slot]; }

    int wait_descriptor() const override { return descriptor_; }
    Status arm() override {
        if (descriptor_ < 0) return Status::unsupported;
        const std::lock_guard lock(mutex_);
        const bool met = std::any_of(receives_.begin(), receives_.end(), [&](const Receive& receive) {
            return std::any_of(arrived_.begin(), arrived_.end(),
                               [&](const Message& message) { return meet(message, receive); });
        });
        if (met || !completed_.empty()) return Status::in_progress;
        std::uint64_t signals = 0;
        [[maybe_unused]] const ssize_t bytes = read(descriptor_, &signals, sizeof signals);
        armed_ = true;
        return Status::ok;
    }

    std::uint64_t unexpected_bytes() const {
        const std::lock_guard lock(mutex_);
        return unexpected_bytes_;
    }
    std::uint64_t largest_unexpected_bytes() const {
        const std::lock_guard lock(mutex_);
        return largest_unexpected_bytes_;
    }

    std::uint64_t synchronous_bytes() const { return synchronous_bytes_; }

  private:
    void reserve() {
        // A peer never has more messages here than it has slots; eager ones, and peers that grew, may enlarge
        // this.
        arrived_.reserve(std::size_t{options_.slots} * size_);
        receives_.reserve(options_.slots);
        matched_.reserve(options_.slots);
        completed_.reserve(options_.slots);
        received_.resize(options_.slots);
    }

    MessageId reduced(MessageId id) const {
        return {id.operation % options_.live_operations, id.message, id.unequal};
    }

    void arrive(Message message) {
        const std::lock_guard lock(mutex_);
        if (options_.delay_polls != 0) message.visible_at = polls_ + random_() % options_.delay_polls;
        if (message.copy) {
            unexpected_bytes_ += message.bytes;
            largest_unexpected_bytes_ = std::max(largest_unexpected_bytes_, unexpected_bytes_);
        }
        arrived_.push_back(std::move(message));
        signal();
    }

    void complete(Slot slot) {
        const std::lock_guard lock(mutex_);
        completed_.push_back(slot);
        signal();
    }

    // Pre: the mutex is held.
    void signal() {
        if (!std::exchange(armed_, false)) return;
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t bytes = write(descriptor_, &one, sizeof one);
    }

    static bool meet(const Message& message, const Receive& receive) {
        return message.from == receive.from && message.id.message == receive.id.message &&
               message.id.operation == receive.id.operation;
    }

    // Moves the pairs that meet to matched_. False: a message met a receive of another size.
    bool match() {
        const std::lock_guard lock(mutex_);
        ++polls_;
        std::size_t kept = 0;
        bool sizes_agree = true;
        for (std::size_t i = 0; i < receives_.size(); ++i) {
            const Receive receive = receives_[i];
            // The first of this identity, or none: equal identities are received in the order they were sent.
            const auto message =
                std::find_if(arrived_.begin(), arrived_.end(),
                             [&](const Message& candidate) { return meet(candidate, receive); });
            if (message == arrived_.end() || message->visible_at > polls_) {
                receives_[kept++] = receive;
                continue;
            }
            sizes_agree &= message->bytes == receive.bytes || receive.id.unequal;
            if (message->copy) unexpected_bytes_ -= message->bytes;
            matched_.emplace_back(receive, std::move(*message));
            arrived_.erase(message);
        }
        receives_.resize(kept);
        return sizes_agree;
    }

    std::vector<std::unique_ptr<Endpoint>>& all_;
    int rank_;
    int size_;
    InprocOptions options_;
    Capabilities capabilities_;
    std::mt19937_64 random_;
    int descriptor_ = -1;
    bool armed_ = false;
    mutable std::mutex mutex_;
    std::uint64_t polls_ = 0;
    std::vector<Message> arrived_;
    std::vector<Receive> receives_;
    std::vector<std::pair<Receive, Message>> matched_;
    std::vector<Slot> completed_;
    std::vector<std::uint64_t> received_;  // by slot
    std::uint64_t unexpected_bytes_ = 0;
    std::uint64_t largest_unexpected_bytes_ = 0;
    std::uint64_t synchronous_bytes_ = 0;
};

}  // namespace

struct InprocNetwork::Impl {
    std::vector<std::unique_ptr<Endpoint>> endpoints;
};

InprocNetwork::InprocNetwork(int size, const InprocOptions& options) : impl_(std::make_unique<Impl>()) {
    for (int rank = 0; rank < size; ++rank) {
        impl_->endpoints.push_back(std::make_unique<Endpoint>(impl_->endpoints, rank, size, options));
    }
}

InprocNetwork::~InprocNetwork() = default;

Transport& InprocNetwork::endpoint(int rank) { return *impl_->endpoints[rank]; }

std::uint64_t InprocNetwork::unexpected_bytes(int rank) const {
    return impl_->endpoints[rank]->unexpected_bytes();
}

std::uint64_t InprocNetwork::largest_unexpected_bytes(int rank) const {
    return impl_->endpoints[rank]->largest_unexpected_bytes();
}

std::uint64_t InprocNetwork::synchronous_bytes(int rank) const {
    return impl_->endpoints[rank]->synchronous_bytes();
}

}  // namespace thalweg
