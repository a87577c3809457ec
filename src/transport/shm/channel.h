// One communicator's share of the port: its slots and its completions.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/peer_account.h"
#include "transport/shm/port.h"

namespace thalweg::shm {

class Channel final : public Transport {
  public:
    Channel(ShmPort::Impl& port, const ShmGroup& group);
    ~Channel() override;
    // To be called once, before anything else. invalid_argument: the port has a channel of that name.
    Status open();

    const Capabilities& capabilities() const override { return capabilities_; }
    int rank() const override { return group_.rank; }
    int size() const override { return group_.size; }
    Slot slots() const override { return slots_; }
    Status grow(Slot slots) override;
    void expect(int peer, std::size_t bytes) override;
    void forgo(int peer, std::size_t bytes) override;
    Status post_send(Slot slot, int peer, MessageId id, const void* data, std::size_t bytes,
                     SendMode mode) override;
    Status post_recv(Slot slot, int peer, MessageId id, void* data, std::size_t bytes) override;
    Status progress(std::span<Slot> done, std::size_t& count) override;
    std::uint64_t received_bytes(Slot slot) const override { return received_[slot]; }
    bool stirred() const override { return stirred_; }
    bool has_left(std::uint64_t sent) override;
    void drive_host() override;
    int wait_descriptor() const override { return port_.descriptor(); }
    Status arm() override;
    void give_up() override;
    Status stand_in(StandIn memory) override;
    void end_stand_in(const std::byte* memory) override;
    bool crosses(int) const override { return false; }
    int inside_descriptor() const override { return port_.descriptor(); }
    Status arm_inside() override { return arm(); }

    Status expose(void* memory, std::size_t bytes, Region& region, std::vector<std::byte>& key) override;
    void conceal(Region region) override;
    Status attach(int peer, std::span<const std::byte> key, Target& target) override;
    void detach(Target target) override;
    Status post_put(Slot slot, Target target, std::uint64_t offset, const void* data, std::size_t bytes,
                    MessageId signal) override;

    // For the port, with the lock held.
    std::uint64_t name() const { return name_; }
    const StandIns& stand_ins() const { return stand_ins_; }
    // Of memory that lasting messages come from: where others may have it mapped.
    std::optional<SharedPlace> shared_place_of(const void* data, std::size_t bytes) const;
    // Null: it is not mapped here.
    const std::byte* view(const SharedPlace& place, std::size_t bytes) { return views_.view(place, bytes); }
    // Peers may put into all of these bytes.
    bool exposes(std::uint64_t address, std::uint64_t bytes) const;
    // Who may put into memory of this channel's, by place among the near ranks; nobody where none was
    // exposed.
    enum class Putter : std::uint8_t { unasked, asked, stopped };
    std::span<Putter> putters() { return putters_; }
    void note_stopped(const Peer& peer);
    // The ranks that the port may have met.
    std::size_t near_ranks() const {
        return group_.near.empty() ? static_cast<std::size_t>(group_.size) : group_.near.size();
    }
    int near_rank(std::size_t place) const {
        return group_.near.empty() ? static_cast<int>(place) : group_.near[place];
    }
    // Null: never met.
    Peer* peer_of(int rank) const { return port_.find(process_of(rank)); }
    // A peer has given this channel up, and puts nothing more. Throws std::bad_alloc; then nothing changed.
    void note_given_up(const Peer& peer) {
        if (!was_given_up_by(&peer)) given_up_by_.push_back(&peer);
    }
    bool was_given_up_by(const Peer* peer) const {
        return std::find(given_up_by_.begin(), given_up_by_.end(), peer) != given_up_by_.end();
    }
    // Any of these bytes are exposed, or lie in memory that lasting messages come from.
    bool holds(std::uintptr_t begin, std::uintptr_t end) const;
    bool has_news() const { return !completed_.empty() || has_failed(); }
    bool has_failed() const { return failed(failure_); }
    void finish(Slot slot) {
        completed_.push_back(slot);
        port_.tell(*this);
    }
    void note_received(Slot slot, std::uint64_t bytes) { received_[slot] = bytes; }
    // Where the message in this slot is counted; null: nowhere.
    PeerAccount* account_of(Slot slot) const { return accounts_.empty() ? nullptr : accounts_[slot]; }
    void fail(Status status);
    // We want something of a peer that has ended or was never met.
    Status lose(const Peer* peer, int rank);
    bool asleep = false;  // `sleeper` may be waiting on the descriptor
    bool rung = false;    // counted in the port's bell
    std::uint64_t rung_ns = 0;
    pthread_t sleeper = {};

  private:
    struct Attached {
        int rank = -1;  // -1: the number is free
        std::uint64_t address = 0, bytes = 0;
    };

    std::uint32_t process_of(int rank) const {
        return group_.processes ? group_.processes[rank] : static_cast<std::uint32_t>(rank);
    }
    // Takes back what is in flight, and waits for peers that may be reading or writing its memory, 1 s at
    // most.
    void withdraw();
    Key key_of(int rank, MessageId id) const;
    void note_peer(Slot slot, int rank) {
        if (group_.accounts != nullptr) accounts_[slot] = &group_.accounts->of(rank);
    }
    void count_sent(Slot slot, Way way, std::size_t bytes) {
        if (PeerAccount* const account = account_of(slot)) account->sent(way, bytes);
    }

    ShmPort::Impl& port_;
    ShmGroup group_;
    std::uint64_t name_;
    Capabilities capabilities_;
    Slot slots_ = 0;
    std::vector<Slot> completed_;
    std::vector<std::uint64_t> received_;  // by slot: bytes that came for its last receive
    std::vector<PeerAccount*> accounts_;   // by slot, of its last message; empty: nothing is counted
    std::vector<Attached> attached_;
    struct Exposed {
        std::uint64_t address = 0, bytes = 0;  // 0 bytes: the number is free
    };
    std::vector<Exposed> exposed_;
    std::vector<Putter> putters_;
    std::vector<const Peer*> given_up_by_;
    StandIns stand_ins_;
    std::vector<Mapped> known_;  // memory that lasting messages come from
    Views views_;
    bool stirred_ = false;
    bool opened_ = false;
    Status failure_ = Status::ok;
};

}  // namespace thalweg::shm
