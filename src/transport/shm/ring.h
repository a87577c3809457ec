// A queue of frames from one process to another, in memory that both have mapped: one writer, one reader, no
// lock. Neither end believes what the other can write: every number is read once and checked.
#pragma once

#include <cstring>

#include "transport/shm/wire.h"

namespace thalweg::shm {

inline constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes + frame_bytes - 1) / frame_bytes * frame_bytes;
}

// Looks at every page, once: what comes through the ring then waits for none of them, and is timed without.
inline void touch(const Ring& ring, bool& touched) {
    if (touched || ring.data == nullptr) return;
    touched = true;
    constexpr std::size_t page_bytes = 4096;
    for (std::size_t at = 0; at < ring.bytes; at += page_bytes)
        (void)*static_cast<const volatile std::byte*>(ring.data + at);
}

class RingWriter {
  public:
    RingWriter() = default;
    explicit RingWriter(const Ring& ring) : ring_(ring) {}

    // Writes a frame and `frame.payload` bytes of `payload` (null where it has none) behind it. False: no
    // room now. Pre: frame.payload <= payload_bytes.
    bool write(const Frame& frame, const void* payload) {
        std::byte* const place = reserve(frame);
        if (place == nullptr) return false;
        if (payload != nullptr) std::memcpy(place, payload, frame.payload);
        publish();
        return true;
    }

    // The same in two steps: where the payload belongs, null where there is no room now; then publish().
    std::byte* reserve(const Frame& frame) {
        const std::size_t needed = frame_bytes + rounded(frame.payload);
        const std::size_t at = tail_ & (ring_.bytes - 1);
        const std::size_t skipped = ring_.bytes - at < needed ? ring_.bytes - at : 0;
        if (!has_room(skipped + needed)) return nullptr;
        if (skipped != 0) {
            const Frame skip{};
            std::memcpy(ring_.data + at, &skip, frame_bytes);
            tail_ += skipped;
        }
        std::byte* const place = ring_.data + (tail_ & (ring_.bytes - 1));
        std::memcpy(place, &frame, frame_bytes);
        tail_ += needed;
        return place + frame_bytes;
    }
    // Release: whoever reads this tail sees the frame.
    void publish() { ring_.control->tail.store(tail_, std::memory_order_release); }

    // Asks for a ring of the bell when there is room for the largest frame. True: there is room already.
    bool want_space() {
        // Release: who reads this sees that somebody sleeps, which was said before.
        ring_.control->wants_space.store(1, std::memory_order_release);
        // The reader takes frames out and then looks at wants_space; we set it and then look at the head: one
        // of us sees the other.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        return has_room(2 * (frame_bytes + payload_bytes));
    }

    void touch() { shm::touch(ring_, touched_); }

  private:
    bool has_room(std::size_t bytes) {
        if (bytes <= ring_.bytes - (tail_ - head_)) return true;
        // Acquire: what the reader took out may be overwritten.
        const std::uint64_t head = ring_.control->head.load(std::memory_order_acquire);
        if (head - head_ <= tail_ - head_) head_ = head;
        return bytes <= ring_.bytes - (tail_ - head_);
    }

    Ring ring_;
    std::uint64_t tail_ = 0, head_ = 0;  // ours; and the reader's as last seen
    bool touched_ = false;
};

enum class Read : std::uint8_t { nothing, frame, nonsense };

class RingReader {
  public:
    RingReader() = default;
    explicit RingReader(const Ring& ring) : ring_(ring) {}

    // The oldest frame, copied, and where its payload lies until pop().
    Read front(Frame& frame, const std::byte*& payload) {
        for (;;) {
            const std::uint64_t tail = ring_.control->tail.load(std::memory_order_acquire);
            const std::uint64_t filled = tail - head_;
            if (filled == 0) return Read::nothing;
            const std::size_t at = head_ & (ring_.bytes - 1);
            if (filled > ring_.bytes || filled % frame_bytes != 0) return Read::nonsense;
            std::memcpy(&frame, ring_.data + at, frame_bytes);
            if (frame.kind == FrameKind::skip) {
                if (at == 0 || ring_.bytes - at > filled) return Read::nonsense;
                advance(ring_.bytes - at);
                continue;
            }
            taken_ = frame_bytes + rounded(frame.payload);
            if (frame.payload > payload_bytes || taken_ > filled || taken_ > ring_.bytes - at)
                return Read::nonsense;
            payload = ring_.data + at + frame_bytes;
            return Read::frame;
        }
    }
    // Pre: front() said frame.
    void pop() { advance(taken_); }

    // The writer waits for space and shall be rung; after some pops.
    bool space_wanted() {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (ring_.control->wants_space.load(std::memory_order_relaxed) == 0) return false;
        return ring_.control->wants_space.exchange(0, std::memory_order_acquire) != 0;
    }

    void touch() { shm::touch(ring_, touched_); }

  private:
    void advance(std::size_t bytes) {
        head_ += bytes;
        // Release: our reads of the frame come before the writer's reuse of its place.
        ring_.control->head.store(head_, std::memory_order_release);
    }

    Ring ring_;
    std::uint64_t head_ = 0;
    std::size_t taken_ = 0;
    bool touched_ = false;
};

}  // namespace thalweg::shm
