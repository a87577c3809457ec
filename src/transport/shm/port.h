// The inside of ShmPort: peers, frames, copies, and who sleeps.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/shm/choice.h"
#include "transport/shm/peer_table.h"
#include "transport/shm/ready.h"
#include "transport/shm/request.h"
#include "transport/shm/segment.h"
#include "transport/shm/shm.h"

namespace thalweg::shm {

class Channel;

// What could not be written yet, in order.
struct Outgoing {
    Frame frame;
    const void* payload = nullptr;
    StandInPart elements;                    // what the payload stands for
    std::unique_ptr<const std::byte[]> own;  // what `payload` is, where that is the queue's
    Request* complete = nullptr;             // a send that is complete when this is written

    // Makes the payload the queue's own. Throws std::bad_alloc.
    void keep_payload() {
        std::unique_ptr<std::byte[]> copy(new std::byte[frame.payload]);
        if (elements)
            elements.load(copy.get(), 0, frame.payload);
        else if (frame.payload != 0)
            std::memcpy(copy.get(), payload, frame.payload);
        own = std::move(copy);
        payload = own.get();
        elements = {};
    }
    bool write_to(RingWriter& ring) const {
        if (!elements) return ring.write(frame, payload);
        std::byte* const place = ring.reserve(frame);
        if (place == nullptr) return false;
        elements.load(place, 0, frame.payload);
        ring.publish();
        return true;
    }
};

// One that waits for room in its ring.
struct Waiting {
    Outgoing what;
    std::array<std::byte, std::max(sizeof(WrittenElements), sizeof(SharedPlace))> word;
    Waiting* next = nullptr;

    // The payload, a word of where a message lies, does not outlive the call that sends it.
    void keep_word() {
        if (what.frame.payload != 0) std::memcpy(word.data(), what.payload, what.frame.payload);
        what.payload = word.data();
    }
};

// All of a port; addresses never change.
class WaitingPool {
  public:
    // Room for `count` altogether. Throws std::bad_alloc.
    void reserve(std::size_t count) {
        while (all_.size() < count) free(all_.emplace_back());
    }
    // That the next `count` find room. Throws std::bad_alloc.
    void spare(std::size_t count) {
        for (const Waiting* next = free_; next != nullptr && count != 0; next = next->next) --count;
        for (; count != 0; --count) free(all_.emplace_back());
    }
    // False: no memory.
    bool try_spare(std::size_t count) noexcept try {
        spare(count);
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
    // Throws std::bad_alloc where there is none left.
    Waiting& take(Outgoing what) {
        if (free_ == nullptr) free(all_.emplace_back());
        Waiting& waiting = *free_;
        free_ = waiting.next;
        waiting.what = std::move(what);
        waiting.next = nullptr;
        return waiting;
    }
    void free(Waiting& waiting) {
        waiting.what.own.reset();
        waiting.next = free_;
        free_ = &waiting;
    }

  private:
    std::deque<Waiting> all_;
    Waiting* free_ = nullptr;
};

// Those of one peer, in order.
class WaitingQueue {
  public:
    bool empty() const { return first_ == nullptr; }
    Waiting* first() const { return first_; }
    void push(Waiting& waiting) {
        (last_ == nullptr ? first_ : last_->next) = &waiting;
        last_ = &waiting;
    }
    // The first one, taken out. Pre: not empty().
    Waiting& pop() {
        Waiting& waiting = *first_;
        first_ = waiting.next;
        if (first_ == nullptr) last_ = nullptr;
        return waiting;
    }

  private:
    Waiting *first_ = nullptr, *last_ = nullptr;
};

struct Peer {
    std::uint32_t process = 0;
    PeerSegment segment;
    RingWriter writer;
    bool heard = false;  // its ring in our segment is known: `reader`, `control`
    RingReader reader;
    const RingControl* control = nullptr;
    WaitingQueue outgoing;
    bool dead = false;
    const char* reason = "copying from or to its memory failed";
    // Our large messages that it has not said to be done with, through Request::next, and their bytes.
    Request *first_announced = nullptr, *last_announced = nullptr;
    std::uint64_t announced_bytes = 0;
    Readies readies;  // receives of which it has told, and whose messages have not been sent
    Chooser chooser;
    ShmAccount account;
};

}  // namespace thalweg::shm

namespace thalweg {

class ShmPort::Impl {
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

    explicit Impl(const ShmOptions& options)
        : options_(options),
          ring_bytes_(length_of_rings(options)),
          rates_(options.spins, options.crowded, ring_bytes_) {}
    ~Impl();

    // Bytes of each of its rings.
    static std::size_t length_of_rings(const ShmOptions& options);

    Status start(std::string& why);
    Status meet(std::uint32_t process, std::span<const std::byte> address, std::string& why);
    bool knows(std::uint32_t process);
    std::span<const std::byte> address() const {
        return {reinterpret_cast<const std::byte*>(&address_), sizeof address_};
    }
    const ShmOptions& options() const { return options_; }
    std::size_t mapped_bytes() const { return segment_.mapped_bytes(); }
    int descriptor() const { return descriptor_.get(); }
    // Without the lock, which may be held by a thread that does not exist here.
    bool in_child() const;
    // Without the lock, too: asked after every operation.
    bool all_left() const { return waiting_frames_.load(std::memory_order_relaxed) == 0; }
    ChannelName name_channel();
    void* allocate(std::size_t bytes);
    void release(void* memory);
    Status set_protocol(const char* name);
    void set_wire_ns(std::uint64_t ns);
    std::uint64_t copies_left() const { return copies_left_.load(std::memory_order_relaxed); }
    bool holds(const void* memory, std::size_t bytes);
    std::vector<ShmAccount> accounts();
    const char* description() const;

    // Everything below: with the lock held.

    bool open(shm::Channel& channel);  // false: a channel of that name and space is open
    // Withdraws what the channel has in flight. True: a peer may still touch its memory.
    bool withdraw(shm::Channel& channel);
    // Without waiting for anybody. What peers' own copies read and write meanwhile nobody can take back.
    void abandon(shm::Channel& channel);
    void close(shm::Channel& channel);
    template <typename Then>
    void for_payloads(const shm::Channel& channel, Then then);
    void recall(shm::Request& send);
    // Of a channel that was given up: who may put into its memory is told to stop. True: some have not said
    // that they have.
    bool end_puts(shm::Channel& channel);
    // Room for so many slots more, until they are released. Throws std::bad_alloc.
    void reserve(std::size_t slots);
    void release(std::size_t slots) { requests_.release(slots); }
    // As the channel's calls of these names.
    void expect(std::size_t bytes);
    void forgo(std::size_t bytes) { requests_.forgo(bytes, bytes <= options_.eager_bytes); }
    // Null: never met. Hot path.
    shm::Peer* find(std::uint32_t process) const { return by_process_.find(process); }

    // As the channel's calls of these names; `peer` is alive for a send.
    void send(shm::Channel& channel, Slot slot, shm::Peer& peer, const shm::Key& key, void* data,
              std::size_t bytes, SendMode mode);
    void receive(shm::Channel& channel, Slot slot, shm::Peer& peer, const shm::Key& key, void* data,
                 std::size_t bytes, bool unequal);
    void put(shm::Channel& channel, Slot slot, shm::Peer& peer, const shm::Key& signal, std::uint64_t remote,
             const void* data, std::size_t bytes);

    // One look at everything; at most one chunk is copied. True: something moved. `woken`: after a sleep.
    bool poll(bool woken);
    // ok: a wait on the descriptor is safe, for `channel` too.
    Status arm(shm::Channel& channel);
    // `channel` got a completion, or its failure.
    void tell(shm::Channel& channel);
    // Nobody sleeps for `channel` any more.
    void awake(shm::Channel& channel);
    // Takes the bells of failed channels back.
    void silence_failed();

  private:
    // Frames out (frames.cpp).
    // `passing`: the payload does not outlive the call. Throws std::bad_alloc where there is neither room in
    // the ring nor memory: callers that could not go on have asked for spare ones before.
    void write(shm::Peer& peer, shm::Outgoing next, bool passing = false);
    void write(shm::Peer& peer, const shm::Frame& frame) {
        write(peer, {frame, nullptr, {}, nullptr, nullptr});
    }
    // A frame that says where this process's side of a message lies.
    void write_place(shm::Peer& peer, shm::Frame frame, const shm::Request& request,
                     const std::optional<shm::SharedPlace>& shared = std::nullopt);
    void written(shm::Peer& peer);
    bool flush(shm::Peer& peer);
    // Frames in.
    bool listen();
    bool drain(shm::Peer& peer, std::uint32_t most);
    shm::Peer* sender_of(std::uint32_t ring);
    // Rings of senders that were not known are listened to again.
    void hear_unmet();
    bool take(shm::Peer& peer, const shm::Frame& frame, const std::byte* payload);
    bool take_message(shm::Peer& peer, const shm::Frame& frame, const std::byte* payload);
    void take_recall(shm::Peer& peer, const shm::Frame& frame);
    void take_no_puts(shm::Peer& peer, const shm::Frame& frame);
    void take_none_put(shm::Peer& peer, const shm::Frame& frame);
    bool take_answer(shm::Peer& peer, const shm::Frame& frame, const std::byte* payload);
    void acknowledge(shm::Peer& peer, std::uint64_t cookie);
    void drop(shm::Request& early);
    // Receives that the sender is told of beforehand (ready.cpp).
    bool may_tell(const shm::Request& receive);
    void tell_ready(shm::Request& receive);
    void meet_ready(shm::Request& receive);
    bool take_ready_back(shm::Request& receive);
    bool take_ready(shm::Peer& peer, const shm::Frame& frame);
    void take_unready(shm::Peer& peer, const shm::Frame& frame);
    bool take_unheard(shm::Peer& peer, const shm::Frame& frame);
    void tell_unheard(shm::Peer& peer, std::uint64_t receive);
    void forget_readies(std::uint64_t channel);
    void look_for_ready(shm::Peer& peer, const shm::Key& key, std::uint64_t bytes);
    void send_ready(shm::Request& send, std::uint64_t receive, bool first);
    bool begins_ready(shm::Request& send, std::uint64_t receive);
    // Large messages (copies.cpp).
    static void announce(shm::Request& send);
    void fetch(shm::Request& receive, const shm::Frame& frame, shm::RemotePlace place);
    void postpone(shm::Request& receive, shm::Request& early);
    void fetch_postponed();
    void forget(shm::Request& receive);
    // Of a send: what the peer was told of it is not its to copy any more, or is counted elsewhere.
    static void settle(shm::Request& send);
    shm::Reach reach(const shm::Peer& peer, const shm::Request& receive) const;
    void queue(shm::Request& request, bool first = false);
    void unqueue(shm::Request& request);
    bool copy_a_chunk();
    void take_the_ring(shm::Request& job);
    void ask_for_rest(shm::Request& receive);
    // Bytes of a put that go through the ring, as a protocol's push.
    static Status store_through(const shm::Request& put, std::size_t bytes, std::size_t& done);
    bool take_stored(const shm::Frame& frame, const std::byte* payload);
    void copied(shm::Request& request);
    void finish(shm::Request& request);
    static bool has_room(shm::Request& receive, std::uint64_t bytes);
    void overflow(shm::Request& receive);
    void fail(shm::Request& request, Status status);
    void count_copies(std::int64_t bytes);
    // For reports (accounts.cpp): a receive was decided about; a chunk was copied; a request is complete,
    // which took so long since it was decided about, if it was.
    static void note_decision(const shm::Request& receive);
    static void note_copied(const shm::Request& job, std::uint64_t taken_ns);
    void note_out_of_ring(const shm::Request& receive, std::size_t bytes, std::uint64_t taken_ns);
    static void note_received(const shm::Request& request, std::uint64_t taken_ns);
    // Peers that end (port.cpp).
    void look_for_deaths();
    void mourn(shm::Peer& peer, const char* reason);
    // A thread sleeps, and there is something to do that it does not know of.
    void stir();

    ShmOptions options_;
    const shm::Protocol* forced_ = nullptr;
    shm::OwnSegment segment_;
    shm::Address address_;
    std::uint32_t forks_at_birth_ = 0;
    std::uint32_t next_counter_ = 1u << 31;

    // Held by whoever meets somebody, before the port's own lock: a process that is met twice at once has one
    // ring.
    std::mutex meeting_;
    mutable std::mutex mutex_;
    std::atomic<int> posters_{0};
    std::unordered_map<std::uint32_t, std::unique_ptr<shm::Peer>> peers_;
    shm::PeerTable by_process_;          // all of them
    std::vector<shm::Peer*> by_ring_;    // of our segment: who writes there, where it is known
    std::vector<std::uint64_t> unread_;  // bits of rings that may have more
    std::vector<std::uint64_t> unmet_;   // and of those whose senders are not known yet
    std::unordered_map<std::uint64_t, shm::Channel*> channels_;
    shm::Requests requests_;
    shm::Matches posted_, early_;
    const std::size_t ring_bytes_;
    shm::CopyRates rates_;

    // The queue of copies; through Request::next_job.
    shm::Request *first_job_ = nullptr, *last_job_ = nullptr;
    std::uint32_t jobs_ = 0;
    std::atomic<std::uint64_t> copies_left_{0};
    shm::WaitingPool waiting_;
    std::atomic<std::uint64_t> waiting_frames_{0};  // of all peers; changed with the lock held
    // Receives that have met early messages which lie at their senders, and about which the next poll
    // decides; through Request::next_job.
    shm::Request *first_met_ = nullptr, *last_met_ = nullptr;

    std::map<std::size_t, std::size_t> free_;  // stretches of the arena: where, how much
    std::map<std::size_t, std::size_t> used_;

    Descriptor descriptor_;  // epoll over the segment's bell, the bell here, and the lives of peers
    Descriptor bell_;        // an eventfd that is readable while rung_ != 0
    std::uint32_t sleepers_ = 0, rung_ = 0;
    std::uint64_t sleeps_ = 0;  // polls after a sleep
    bool stirred_ = false;      // the segment's bell was rung here, and has not been silenced since
    std::uint32_t idle_polls_ = 0;
};

}  // namespace thalweg
