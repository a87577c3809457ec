// One communicator's share of the port: its slots, its completions, its memory.
#pragma once

#include <pthread.h>

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "transport/ucx/port.h"

namespace thalweg::ucx {

class Channel;

// One request of libucp that belongs to a slot.
struct Part {
    std::uint32_t slot = 0;
    bool receive = false;
    std::size_t bytes = 0;    // that a receive must get
    void* request = nullptr;  // null: not in flight
    ucp_mem_h registered = nullptr;
    const void* memory = nullptr;  // of a request in flight
    std::size_t memory_bytes = 0;
    std::uint8_t rail = 0;
    struct Storage* storage = nullptr;
    Part* next_deferred = nullptr;  // in the port's list, from the end of a put until its signal
};

struct SlotState {
    enum class Kind : std::uint8_t { idle, send, receive, put, signal };
    Kind kind = Kind::idle;
    std::uint32_t process = 0;  // the peer's
    std::uint32_t left = 0;     // parts that are not complete
    std::uint64_t tag = 0;      // of a put's signal
    bool unequal = false;       // of a receive that another number of bytes may come for
    std::uint64_t received = 0;
    PeerAccount* account = nullptr;  // of a receive that is counted when it is complete
    std::uint64_t bytes = 0;         // that it is for
    std::uint8_t rail = 0;           // of a put's signal
};

// Memory of a peer that this process puts into.
struct Attached {
    int rank = 0;
    std::uint32_t process = 0;
    std::uint64_t address = 0, bytes = 0;
    std::vector<ucp_rkey_h> keys;  // by rail; empty: the number is free
};

// What requests in flight point to. Outlives its channel where some are left; addresses never change.
struct Storage {
    explicit Storage(UcxPort::Impl& the_port) : port(the_port) {}
    // With the port's lock held, where keys are left.
    ~Storage();
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;
    // Any of these bytes are those of a request in flight, or registered for one.
    bool holds(std::uintptr_t begin, std::uintptr_t end) const;

    UcxPort::Impl& port;
    Channel* channel = nullptr;  // null: nobody wants to know any more
    std::uint32_t in_flight = 0;
    // While a receive is being posted: which; and how it ended, if the message was there already.
    struct Outcome {
        ucs_status_t status = UCS_OK;
        std::size_t received = 0;
    };
    const Part* posting = nullptr;
    std::optional<Outcome> outcome;
    std::deque<SlotState> slots;
    std::deque<Part> parts;
    std::vector<Attached> attached;  // libucp looks at a put's key until that is over
};

// Where piece i of n begins: pieces begin at whole pages of the message.
inline std::size_t piece_begin(std::size_t bytes, std::size_t i, std::size_t n) {
    constexpr std::size_t alignment = 4096;
    return i == n ? bytes : bytes / n * i / alignment * alignment;
}

class Channel final : public Transport {
  public:
    Channel(UcxPort::Impl& port, const UcxGroup& group);
    ~Channel() override;
    // To be called once, before anything else. invalid_argument: the port has a channel of that name.
    Status open();

    const Capabilities& capabilities() const override { return capabilities_; }
    int rank() const override { return group_.rank; }
    int size() const override { return group_.size; }
    Slot slots() const override { return static_cast<Slot>(storage_->slots.size()); }
    Status grow(Slot slots) override;
    Status post_send(Slot slot, int peer, MessageId id, const void* data, std::size_t bytes,
                     SendMode mode) override;
    Status post_recv(Slot slot, int peer, MessageId id, void* data, std::size_t bytes) override;
    Status progress(std::span<Slot> done, std::size_t& count) override;
    std::uint64_t received_bytes(Slot slot) const override { return storage_->slots[slot].received; }
    bool stirred() const override { return stirred_; }
    std::uint64_t sent() const override;
    bool has_left(std::uint64_t sent) override;
    void drive_host() override;
    int wait_descriptor() const override { return port_.descriptor(); }
    Status arm() override;
    void give_up() override;

    Status expose(void* memory, std::size_t bytes, Region& region, std::vector<std::byte>& key) override;
    void conceal(Region region) override;
    Status attach(int peer, std::span<const std::byte> key, Target& target) override;
    void detach(Target target) override;
    Status post_put(Slot slot, Target target, std::uint64_t offset, const void* data, std::size_t bytes,
                    MessageId signal) override;

    // For the port, with the lock held.
    std::uint64_t name() const { return name_; }
    bool has_news() const { return !completed_.empty() || has_failed(); }
    bool has_failed() const { return failed(failure_); }
    void peer_died(const Peer& peer);
    // The same of this channel, or they are exposed.
    bool holds(std::uintptr_t begin, std::uintptr_t end) const;
    void send_signal(Slot slot);
    void post_held(const Held& post);
    bool asleep = false;  // `sleeper` may be waiting on the descriptor
    bool rung = false;    // counted in the port's bell
    std::uint64_t rung_ns = 0;
    pthread_t sleeper = {};

  private:
    struct Exposed {
        std::vector<ucp_mem_h> handles;  // by rail; empty: the number is free
        std::uintptr_t begin = 0, end = 0;
    };

    std::uint32_t process_of(int rank) const {
        return group_.processes ? group_.processes[rank] : static_cast<std::uint32_t>(rank);
    }
    // A message is cut into this many pieces, the i-th on rail i; 1: it travels whole on rail_of().
    std::size_t pieces_of(std::size_t bytes, std::uint32_t process);
    std::uint8_t rail_of(int rank) const;
    Part& part(Slot slot, std::size_t index) { return storage_->parts[slot * parts_per_slot_ + index]; }
    // What libucp shall know of a request on `bytes` bytes at `data`; registers them where that is needed.
    ucp_request_param_t request_for(Part& part, const void* data, std::size_t bytes);
    // Registers memory that is exposed, and makes its key.
    Status map(void* memory, std::size_t bytes, std::vector<ucp_mem_h>& handles,
               std::vector<std::byte>& key) noexcept;
    void unmap(std::vector<ucp_mem_h>& handles);
    // Now, or when the peer has been met.
    Status post(const Held& post);
    Status send_now(const Held& post, const Peer& reached);
    Status put_now(const Held& post, const Peer& reached);
    // What waits for that is not posted any more.
    void forget_held();
    static void unregister(Part& part);
    void withdraw_receives();
    // What cannot be withdrawn, until it is over or has taken too long. Without the lock.
    void await_requests();
    // What libucp answered to a post: done, in flight, or an error.
    Status started(Part& part, ucs_status_ptr_t answer);
    void part_done(Part& part, ucs_status_t status, std::size_t received);
    void finish(Slot slot);
    // Null: nothing is counted.
    PeerAccount* account_of(int rank) const {
        return group_.accounts == nullptr ? nullptr : &group_.accounts->of(rank);
    }
    void note_way(PeerAccount& account, std::uint32_t process, std::uint64_t bytes, std::size_t pieces,
                  void (PeerAccount::*count)(Way, std::uint64_t));
    void note_sent(int rank, std::uint64_t bytes, std::size_t pieces);
    void note_received(const SlotState& slot);
    Status fail(Status status);
    // We want something of a peer that is dead or out of reach.
    Status lose(const Peer* peer);

    static void on_sent(void* request, ucs_status_t status, void* user_data);
    static void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                            void* user_data);

    UcxPort::Impl& port_;
    const Library& ucp_;
    UcxGroup group_;
    std::uint64_t name_;
    Capabilities capabilities_;
    std::size_t parts_per_slot_;
    std::unique_ptr<Storage> storage_;
    UcxPort::Impl::Orphans place_;  // for that, should requests outlive the channel
    std::vector<Slot> completed_;
    bool stirred_ = false;  // by the last progress()
    Status failure_ = Status::ok;
    bool opened_ = false;
    std::vector<Exposed> exposed_;
};

}  // namespace thalweg::ucx
