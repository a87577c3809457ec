// The inside of UcxPort: contexts, workers and endpoints, the lock, and who sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/peer_account.h"
#include "transport/ucx/library.h"
#include "transport/ucx/tag.h"
#include "transport/ucx/ucx.h"

namespace thalweg::ucx {

class Channel;
struct Part;
struct Storage;

// Where libucp needs_registration, messages from here on are registered, and none below goes by rendezvous.
inline constexpr std::size_t rendezvous_bytes = 64 * 1024;

// One context and one worker of libucp, over one network device.
struct Rail {
    std::string device;  // empty: whatever libucp found
    ucp_context_h context = nullptr;
    ucp_worker_h worker = nullptr;
};

// What an endpoint says first (greeting.cpp).
struct Greeting {
    std::uint32_t process = 0, rail = 0;
};

// A post that waits until its peer has greeted.
struct Held {
    Channel* channel = nullptr;
    Slot slot = 0;
    const void* data = nullptr;
    std::size_t bytes = 0;
    MessageId id;  // of a put: its signal's
    bool put = false;
    int peer = 0;  // of a send
    SendMode mode = SendMode::buffered;
    Target target = 0;  // of a put
    std::uint64_t offset = 0;
};

struct Peer {
    UcxPort::Impl* port = nullptr;
    std::uint32_t process = 0;
    bool same_host = false;
    std::vector<ucp_ep_h> endpoints;  // by rail; null until first used, and when closed
    bool reached = false;             // all of them were made
    bool greets = false;              // on all of them
    std::vector<Greeting> greetings;  // what they say, by rail: libucp reads it until it is sent
    std::uint32_t said = 0;           // of them, have left this process
    std::uint32_t greeted = 0;        // rails on which it has greeted, as bits
    std::deque<Held> held;            // until all of both are done, in their order
    bool dead = false;
    Peer* next_dying = nullptr;  // in the port's list, from its death until it is mourned
    bool mourned = false;        // endpoints closed and channels told
    ucs_status_t reason = UCS_OK;
};

// How libucp was told to move messages inside a host, or between two: those of `rendezvous_from` bytes and
// more as `longer`. Unknown where it chooses, or the environment does.
struct Manner {
    std::uint64_t rendezvous_from = 0;
    WayTaken shorter, longer;
    const WayTaken& of(std::uint64_t bytes) const { return bytes < rendezvous_from ? shorter : longer; }
};

// What a process's address consists of, taken apart. Refers to the directory's memory.
struct AddressView {
    std::uint64_t host_key = 0;
    std::vector<std::span<const std::byte>> rails;
};

// False: not an address of this build.
bool parse_address(std::span<const std::byte> bytes, AddressView& view);
std::vector<std::byte> format_address(std::uint64_t host_key,
                                      const std::vector<std::vector<std::byte>>& rails);

}  // namespace thalweg::ucx

namespace thalweg {

class UcxPort::Impl {
  public:
    // Whoever posts. Holds the lock as long as it lives.
    class Poster {
      public:
        // Hot path: who need not wait says nothing of it.
        explicit Poster(Impl& port) : port_(port) {
            if (port_.mutex_.try_lock()) return;
            port_.posters_.fetch_add(1, std::memory_order_relaxed);
            port_.mutex_.lock();
            port_.posters_.fetch_sub(1, std::memory_order_relaxed);
        }
        ~Poster() { port_.mutex_.unlock(); }
        Poster(const Poster&) = delete;
        Poster& operator=(const Poster&) = delete;

      private:
        Impl& port_;
    };
    // Whoever polls: after posters that wait.
    class Driver {
      public:
        explicit Driver(Impl& port);
        ~Driver() { port_.mutex_.unlock(); }
        Driver(const Driver&) = delete;
        Driver& operator=(const Driver&) = delete;

      private:
        Impl& port_;
    };

    Impl(const ucx::Library& library, const UcxOptions& options, const ucx::TagLayout& layout);
    ~Impl();

    Status start(std::string& why);
    Status learn(const UcxDirectory& directory, std::string& why);
    bool knows(std::uint32_t process);
    bool reaches(std::uint32_t process, std::string& why);
    bool has_room_for(std::span<const std::uint32_t> processes, std::string& why);
    std::span<const std::byte> address() const { return address_; }
    const char* description() const { return description_.c_str(); }
    Status name_channel(UcxChannelName& name);
    void give_back(UcxChannelName name);
    void refuse(UcxChannelName name);
    bool holds(const void* memory, std::size_t bytes);

    const ucx::Library& ucp() const { return ucp_; }
    const ucx::TagLayout& layout() const { return layout_; }
    const std::vector<ucx::Rail>& rails() const { return rails_; }
    const ucx::Manner& manner(bool same_host) const { return same_host ? inside_ : between_; }
    std::uint32_t process() const { return options_.process; }
    std::uint32_t processes() const { return options_.processes; }
    int descriptor() const { return descriptor_; }
    // Whether this process is a fork of the one that opened the port. Without the lock, which may be held by
    // a thread that does not exist here.
    bool in_child() const;
    // Without the lock, too, because they are asked after every operation. At least what the caller has sent,
    // or has heard of under the lock; and whether the first `sent` are known to have left (has_left).
    std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }
    bool is_known_to_have_left(std::uint64_t sent) const {
        return left_.load(std::memory_order_relaxed) >= sent;
    }

    // Everything below: with the lock held.

    bool open(ucx::Channel& channel);  // false: a channel of that name and space is open
    // settled: it left nothing on its way. The name of another one is not opened here again.
    void close(ucx::Channel& channel, bool settled);
    // Takes what requests in flight point to until they are done; `place` has one entry for it, so that
    // nothing that ends needs memory.
    using Orphans = std::list<std::unique_ptr<ucx::Storage>>;
    void adopt(std::unique_ptr<ucx::Storage> storage, Orphans& place) noexcept;

    // The peer, its endpoints made. transport_failed: dead or out of reach, `peer` says why (null: there is
    // no such process).
    Status reach(std::uint32_t process, ucx::Peer*& peer);
    // The same, greeted: what is posted to it or waits for it, or answers its greeting.
    Status meet(std::uint32_t process, ucx::Peer*& peer);
    // Whether the peer's own endpoints are known to be there, and connected to ours, without which nothing is
    // sent (greeting.cpp).
    bool has_met(const ucx::Peer& peer) const {
        return peer.said == rails_.size() && peer.greeted + 1u == 1u << rails_.size();
    }
    // Posts it when the peer has been met; never, if the channel's posts to it have been forgotten by then.
    void hold(ucx::Peer& peer, const ucx::Held& post) { peer.held.push_back(post); }
    void forget(const ucx::Channel& channel, std::uint32_t process);
    // As reach, without any endpoint: only to know whether it is on this host.
    ucx::Peer* find(std::uint32_t process);

    // One poll of every rail. True: something moved.
    bool poll();
    // ok: a wait on the descriptor is safe, for `channel` too.
    Status arm(ucx::Channel& channel);
    // A request was posted on `rail` that is not complete: a driver that sleeps shall see to it.
    void posted(std::size_t rail);
    // Counts what was handed to libucp. Whether the first `sent` of it are in the network's hands: a send
    // that libucp has buffered is complete, and moves only while somebody polls.
    void count_sent() { sent_.store(sent() + 1, std::memory_order_relaxed); }
    bool has_left(std::uint64_t sent);
    // `channel` got a completion, or its failure.
    void tell(ucx::Channel& channel);
    void awake(ucx::Channel& channel);
    // Takes the bells of failed channels back.
    void silence_failed();
    // The last part of a put is over; its signal must be sent, outside of libucp's callbacks. Needs no
    // memory: libucp is passed by no exception.
    void defer(ucx::Part& part) noexcept;
    void run_deferred();

  private:
    Status check(const UcxDirectory& directory, std::string& why) const;
    // Empty: it is not known.
    std::span<const std::byte> address_of(std::uint32_t process) const;
    Status start_rail(ucx::Rail& rail, std::vector<std::byte>& address, std::string& why);
    Status configure(const ucx::Rail& rail, ucp_config_t* config, std::string& why);
    Status make_descriptor(std::string& why);
    static void on_error(void* argument, ucp_ep_h endpoint, ucs_status_t status);
    Status connect(ucx::Peer& peer, std::size_t rail);
    static ucs_status_t on_greeting(void* argument, const void* header, std::size_t header_bytes, void*,
                                    std::size_t, const ucp_am_recv_param_t*);
    ucs_status_t listen(const ucx::Rail& rail);
    Status greet(ucx::Peer& peer, std::size_t rail);
    // To be answered at the next poll. Needs no memory: libucp, which calls it, is passed by no exception.
    void note_greeting(ucx::Greeting greeting) noexcept;
    bool is_greeted() const { return !greetings_.empty() || any_unlisted_; }
    // As far as the list has room.
    void list_unlisted();
    // What they said is answered at the next poll, if they are known by now. Pre: greetings_ has room.
    void hear_strangers();
    void answer_greetings();
    void answer(ucx::Greeting greeting);
    void mourn();
    bool close_endpoints();  // false: some are not closed
    void leave_behind();
    Status arm_rails();  // as arm, of libucp alone
    void close_endpoint(ucx::Peer& peer, std::size_t rail, bool force);

    const ucx::Library& ucp_;
    UcxOptions options_;
    ucx::TagLayout layout_;
    std::string description_;
    std::vector<ucx::Rail> rails_;
    ucx::Manner inside_, between_;
    std::vector<std::byte> address_;
    std::vector<UcxDirectory> directories_;  // none names all processes of another

    std::mutex mutex_;
    std::atomic<int> posters_{0};

    std::unordered_map<std::uint32_t, std::unique_ptr<ucx::Peer>> peers_;
    ucx::Peer* dying_ = nullptr;            // reported by libucp, not mourned yet
    int closing_ = 0;                       // endpoints whose closing is not done
    std::vector<ucx::Greeting> greetings_;  // that have come, to be answered
    std::vector<bool> unlisted_;            // the same where those had no room, by process and rail
    bool any_unlisted_ = false;
    std::unordered_map<std::uint32_t, std::uint32_t> strangers_;  // rails greeted on, of unknown processes

    std::atomic<std::uint64_t> sent_{0};  // changed with the lock held, as the next
    std::atomic<std::uint64_t> left_{0};  // of them, are known to have left; only grows
    std::uint64_t leaving_ = 0;           // that the flush in work vouches for
    int flushing_ = 0;                    // rails whose flush is not done

    // By TagLayout::channel; null: closed, and the name is not opened again.
    std::unordered_map<std::uint64_t, ucx::Channel*> channels_;
    std::uint64_t next_counter_ = 0;
    std::deque<std::uint32_t> returned_counters_;

    Orphans orphans_;
    ucx::Part *first_deferred_ = nullptr, *last_deferred_ = nullptr;  // a list through Part::next_deferred

    int descriptor_ = -1;         // epoll over the workers' descriptors and the bell
    int bell_ = -1;               // an eventfd that is readable while rung_ != 0
    std::uint32_t sleepers_ = 0;  // channels that are asleep
    bool signalled_ = false;      // since the latest of them armed, or tried to
    std::uint32_t rung_ = 0;      // channels that have been rung and have not polled since
    std::uint32_t forks_at_birth_ = 0;
};

}  // namespace thalweg
