// One message that a process has to do with: a send, a receive, or a message that came before its receive.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "transport/shm/early.h"
#include "transport/shm/elements.h"
#include "transport/shm/protocol.h"
#include "transport/shm/wire.h"
#include "transport/transport.h"

namespace thalweg::shm {

class Channel;
struct Peer;

// What a message is told apart by. `peer` is the process at the other end.
struct Key {
    std::uint64_t channel = 0;
    std::uint32_t operation = 0, message = 0;
    std::uint32_t peer = 0;
    bool operator==(const Key&) const = default;
};

inline std::uint64_t hash_of(const Key& key) {
    std::uint64_t hash = key.channel * 0x9e3779b97f4a7c15u;
    hash ^= (std::uint64_t{key.operation} << 32 | key.message) + (hash >> 29);
    hash *= 0xbf58476d1ce4e5b9u;
    hash ^= key.peer + (hash >> 32);
    return hash * 0x94d049bb133111ebu >> 17;
}

struct Request {
    enum class Kind : std::uint8_t { none, send, receive, early, put };

    Kind kind = Kind::none;
    bool awaits_peer = false;       // the other side has still to say that its part is done
    bool copying = false;           // in the port's queue of copies
    bool blocked = false;           // in there, and the ring had no room
    bool recalled = false;          // a send that was withdrawn; early: by its sender
    bool unequal = false;           // a receive that another number of bytes may come for
    bool announced = false;         // a send, which the peer may have to copy: among those of its Peer
    bool ready = false;             // a receive among the posted ones of which the sender has been told
    std::uint64_t acknowledge = 0;  // early: the sender's request, which wants to know; 0: it does not
    std::uint32_t index = 0, generation = 1;
    Channel* channel = nullptr;  // null: nobody wants to know any more
    Slot slot = 0;
    Peer* peer = nullptr;
    Key key;
    std::byte* data = nullptr;
    std::byte* copy = nullptr;  // of an early one, whose room this is; null where it lies at the sender
    std::uint64_t bytes = 0;
    StandInPart elements;  // what `data` stands for

    // The other side's memory (0: only its owner can reach that) and request, where it is known; how its
    // elements lie, where they are no run.
    std::uint64_t remote = 0, remote_request = 0;
    RemotePlace place;
    const std::byte* mapped = nullptr;
    // This side's share of the copy: bytes [done, until).
    const Protocol* protocol = nullptr;
    std::uint64_t done = 0, until = 0;
    // Of a receive: bytes [done, left_over) of its share are to come through the ring, when the sender has
    // done its own.
    std::uint64_t left_over = 0;
    // Of a receive, for the choice: when it was decided, and how long the model thought that it would take.
    std::uint64_t decided_ns = 0;
    double expected_s = 0;
    std::uint64_t slept = 0;  // how often this process had slept by then

    // Bytes of the message out of, or into, this side's memory.
    void load(std::byte* to, std::uint64_t offset, std::uint64_t count) const {
        if (elements)
            elements.load(to, offset, count);
        else
            std::memcpy(to, data + offset, count);
    }
    void store(std::uint64_t offset, const std::byte* from, std::uint64_t count) const {
        if (elements)
            elements.store(offset, from, count);
        else
            std::memcpy(data + offset, from, count);
    }

    Request* next = nullptr;      // in a chain of Matches, among a peer's announced sends or the free ones
    Request* next_job = nullptr;  // in the queue of copies, or among receives that have met early messages
    Request* met = nullptr;       // of a receive: that message
};

// All requests of a port; addresses never change.
class Requests {
  public:
    // Messages that come before their receives, of each receive that is expected: its sender may have started
    // once more already.
    static constexpr std::size_t most_ahead = 2;

    Requests() = default;
    Requests(const Requests&) = delete;
    Requests& operator=(const Requests&) = delete;
    ~Requests() {
        for (Request& request : all_)
            if (request.copy != nullptr) early_room_.give_back(request.copy, request.bytes);
    }

    // Room for `count` more, until release() of as many. Throws std::bad_alloc.
    void reserve(std::size_t count) {
        while (all_.size() < reserved_ + count) add();
        reserved_ += count;
    }
    // The room is the next one's who reserves some.
    void release(std::size_t count) { reserved_ -= count; }
    // Room for the early messages of one receive of `bytes` bytes that is posted again and again, until
    // forgo(); they are copied where `whole`. Without memory it is taken when it is needed.
    void expect(std::size_t bytes, bool whole) {
        reserved_ += most_ahead;
        if (whole) early_room_.expect(bytes, most_ahead);
        try {
            while (all_.size() < reserved_) add();
        } catch (const std::bad_alloc&) {
        }
    }
    void forgo(std::size_t bytes, bool whole) {
        reserved_ -= most_ahead;
        if (whole) early_room_.forgo(bytes, most_ahead);
    }
    std::size_t reserved() const { return reserved_; }
    // Room for the bytes of an early message, until it is freed. Throws std::bad_alloc.
    std::byte* copy_of(Request& early) { return early.copy = early_room_.take(early.bytes); }
    std::size_t size() const { return all_.size(); }
    // Throws std::bad_alloc where there is none left.
    Request& take(Request::Kind kind) {
        if (free_ == nullptr) add();
        Request& request = *free_;
        free_ = request.next;
        const std::uint32_t index = request.index, generation = request.generation;
        request = Request();
        request.index = index;
        request.generation = generation;
        request.kind = kind;
        return request;
    }
    void free(Request& request) {
        request.kind = Request::Kind::none;
        if (request.copy != nullptr) early_room_.give_back(request.copy, request.bytes);
        request.copy = nullptr;
        request.place = {};
        ++request.generation;
        request.next = free_;
        free_ = &request;
    }
    static std::uint64_t cookie(const Request& request) {
        return cookie_of(request.index, request.generation);
    }
    // Null where it is over, or never was.
    Request* find(std::uint64_t cookie) {
        const std::uint64_t index = (cookie & 0xffffffffu) - 1;
        if (index >= all_.size()) return nullptr;
        Request& request = all_[index];
        return request.kind != Request::Kind::none && request.generation == cookie >> 32 ? &request : nullptr;
    }
    auto begin() { return all_.begin(); }
    auto end() { return all_.end(); }

  private:
    void add() {
        Request& request = all_.emplace_back();
        request.index = static_cast<std::uint32_t>(all_.size() - 1);
        request.next = free_;
        free_ = &request;
    }

    std::deque<Request> all_;
    EarlyRoom early_room_;
    std::size_t reserved_ = 0;
    Request* free_ = nullptr;
};

// Requests by key; those of one key in the order in which they came.
class Matches {
  public:
    Matches() : buckets_(64) {}

    // Room for so many, if there is memory. Throws std::bad_alloc.
    void reserve(std::size_t count) {
        while (count > 2 * buckets_.size()) grow();
    }
    // Throws std::bad_alloc where the table has to grow; then nothing changed.
    void add(Request& request) {
        if (count_ >= 2 * buckets_.size()) grow();
        Request** link = &bucket(request.key);
        while (*link != nullptr) link = &(*link)->next;
        request.next = nullptr;
        *link = &request;
        ++count_;
    }
    // The oldest of this key; null where there is none.
    Request* find(const Key& key) {
        Request* request = bucket(key);
        while (request != nullptr && !(request->key == key)) request = request->next;
        return request;
    }
    // The same, taken out.
    Request* take(const Key& key) {
        for (Request** link = &bucket(key); *link != nullptr; link = &(*link)->next) {
            if ((*link)->key == key) return unlink(link);
        }
        return nullptr;
    }
    void remove(const Request& request) {
        Request** link = &bucket(request.key);
        while (*link != nullptr && *link != &request) link = &(*link)->next;
        if (*link != nullptr) unlink(link);
    }
    template <typename Which, typename Then>
    void take_all(Which which, Then then) {
        for (Request*& first : buckets_) {
            for (Request** link = &first; *link != nullptr;) {
                if (which(**link))
                    then(*unlink(link));
                else
                    link = &(*link)->next;
            }
        }
    }

  private:
    Request*& bucket(const Key& key) { return buckets_[hash_of(key) % buckets_.size()]; }
    Request* unlink(Request** link) {
        Request* const request = *link;
        *link = request->next;
        request->next = nullptr;
        --count_;
        return request;
    }
    void grow() {
        std::vector<Request*> old(4 * buckets_.size());
        old.swap(buckets_);
        count_ = 0;
        for (Request* request : old) {
            while (request != nullptr) {
                Request* const next = request->next;
                add(*request);
                request = next;
            }
        }
    }

    std::vector<Request*> buckets_;
    std::size_t count_ = 0;
};

}  // namespace thalweg::shm
