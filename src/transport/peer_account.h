// What the exchanges of one communicator took with each of its peers, for the report. The transports of its
// lanes write it while they post and complete messages, from any thread: a few relaxed additions per message,
// no lock, and memory at a peer's first message only. Messages of no bytes are signals, and not counted.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/composite/wire_meter.h"

namespace thalweg {

// How a message travels, as far as this process knows. The first are the protocols inside a host, numbered
// as there (shm/protocol.h); eager is one between hosts, too.
enum class Way : std::uint8_t {
    direct,
    cma_get,
    cma_put,
    coop,
    eager,
    receivers_choice,  // sent inside a host: its receiver decides
    rendezvous_get,    // between hosts: after a handshake its receiver reads it
    rendezvous_put,    // or its sender writes it
    put,               // into the peer's memory, without asking; a signal follows
    libucp,            // libucp has the choice
    mpi,               // the MPI library has it
};
inline constexpr std::size_t ways = 11;
// A word of the report's format.
const char* name_of(Way way);

// Of a message between hosts. The sentence, without a full stop, is in static storage.
struct WayTaken {
    Way way = Way::libucp;
    const char* because = "";
};

struct PeerFigures {
    struct Count {
        std::uint64_t messages = 0, bytes = 0;
    };
    std::array<Count, ways> sent{}, received{};
    std::uint64_t packed = 0;        // between hosts: elements that are no run, packed or unpacked on the way
    std::uint64_t over_rails = 0;    // between hosts: cut into a piece for each rail
    std::uint64_t switches = 0;      // of the protocol, between two messages of one size class
    std::uint64_t copying_ns = 0;    // inside a host: of this process's share
    std::uint64_t under_way_ns = 0;  // inside a host: from decisions to last bytes, of what was received
    // Of the latest of the largest messages; no sentence: there was none.
    WayTaken in_use;

    std::uint64_t messages() const;
    std::uint64_t bytes() const;
    void add(const PeerFigures& other);  // but in_use
};

class PeerAccount {
  public:
    void sent(Way way, std::uint64_t bytes) { count(sent_, way, bytes); }
    void received(Way way, std::uint64_t bytes) { count(received_, way, bytes); }
    void packed() { packed_.fetch_add(1, std::memory_order_relaxed); }
    void cut_over_rails() { over_rails_.fetch_add(1, std::memory_order_relaxed); }
    void copied(std::uint64_t ns) { copying_ns_.fetch_add(ns, std::memory_order_relaxed); }
    void arrived_after(std::uint64_t ns) { under_way_ns_.fetch_add(ns, std::memory_order_relaxed); }
    // What messages of this size class take now. Inside a host those of shm/choice.h; 0 are those that are
    // too short for a decision. Between hosts 0 are the short ones, 1 all others.
    static constexpr std::size_t classes = 7;
    void takes(int size_class, WayTaken taken);

    PeerFigures figures() const;
    // All but what is in use.
    void add(const PeerFigures& figures);

  private:
    using Counter = std::atomic<std::uint64_t>;
    struct Cell {
        Counter messages{0}, bytes{0};
    };
    using Cells = std::array<Cell, ways>;
    static void count(Cells& cells, Way way, std::uint64_t bytes) {
        if (bytes == 0) return;
        Cell& cell = cells[static_cast<std::size_t>(way)];
        cell.messages.fetch_add(1, std::memory_order_relaxed);
        cell.bytes.fetch_add(bytes, std::memory_order_relaxed);
    }

    Cells sent_, received_;
    Counter packed_{0}, over_rails_{0}, switches_{0}, copying_ns_{0}, under_way_ns_{0};
    struct Latest {
        std::atomic<Way> way{Way::eager};
        std::atomic<const char*> because{nullptr};  // null: no message of this class
    };
    std::array<Latest, classes> latest_;
};

class PeerAccounts {
  public:
    // The first peers that are heard of have accounts of their own, the others share one per kind of place.
    static constexpr std::size_t most_apart = 64;

    // is_near: by rank of the communicator, whether it is on this host. Throws std::bad_alloc.
    explicit PeerAccounts(std::vector<bool> is_near);
    PeerAccounts(const PeerAccounts&) = delete;
    PeerAccounts& operator=(const PeerAccounts&) = delete;

    // Pre: peer is a rank. The account lives as long as this.
    PeerAccount& of(int peer) noexcept;

    // What is on its way between hosts, of messages that the transport measures; measures_wire(): from now on
    // one does.
    WireMeter& wire() { return wire_; }
    void measures_wire() { measures_wire_.store(true, std::memory_order_relaxed); }
    bool wire_is_measured() const { return measures_wire_.load(std::memory_order_relaxed); }

    struct Row {
        int peer = 0;  // -1: those that share it
        bool inside = false;
        std::uint64_t peers = 1;
        PeerFigures figures;
    };
    // With messages; in the order in which they were heard of, the shared ones last.
    std::vector<Row> rows() const;

    // Adds all that `other` has to the shared accounts: of communicators that are gone, whose peers nobody
    // can name any more. What is counted later for these is lost. Throws std::bad_alloc.
    void fold(const PeerAccounts& other, std::uint64_t time_ns);
    std::uint64_t wire_ns(std::uint64_t time_ns) const {
        return folded_wire_ns_.load(std::memory_order_relaxed) + wire_.busy_ns(time_ns);
    }

  private:
    struct Own {
        explicit Own(int rank) : peer(rank) {}
        const int peer;
        PeerAccount account;
    };
    struct Shared {
        PeerAccount account;
        std::uint64_t peers = 0;
    };
    // Which account a rank has: from 1 on those of own_, then those of shared_; 0: it is not heard of yet.
    using Number = std::uint8_t;
    static_assert(most_apart + 2 <= UINT8_MAX);
    PeerAccount& numbered(std::size_t number) {
        return number <= most_apart ? own_[number - 1]->account : shared_[number - most_apart - 1].account;
    }
    std::size_t place_of(int peer) const { return is_near_[static_cast<std::size_t>(peer)] ? 1 : 0; }

    // All that is kept of ranks that never send, which may be ten thousand on each of a thousand
    // communicators: nine bits.
    const std::vector<bool> is_near_;
    std::vector<std::atomic<Number>> by_rank_;
    mutable std::mutex mutex_;
    std::size_t apart_ = 0;
    std::array<std::unique_ptr<Own>, most_apart> own_;
    std::array<Shared, 2> shared_;  // between hosts, inside
    WireMeter wire_;
    std::atomic<bool> measures_wire_{false};
    std::atomic<std::uint64_t> folded_wire_ns_{0};
};

}  // namespace thalweg
