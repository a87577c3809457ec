// When the next useful thing will arrive, and how long it does no harm not to look.
//
// A network wakes its listener for every packet; an operation goes on only when a whole message is there. A
// thread that listens all the time is woken ten times or more for one that counts. So once wake-ups prove
// useless, wake-ups are merged: the thread sleeps by the clock, deaf to the network, for half of the time
// that is left until the predicted arrival, and listens again when that is near.
//
//   messages  |------------- gap -------------|
//   packets   | . . . . . . . . . . . . . . . |         . = a wake-up of a listener
//   merged    | . .    '       '    '  '  ' . |         ' = a look by the clock; then it listens
//
// Pure: time and bytes come in, a span goes out.
#pragma once

#include <cstdint>

namespace thalweg {

// Bounds what a wrong prediction, and a peer that needs our library's progress, can wait.
inline constexpr std::uint64_t longest_merge_ns = 1'000'000;
// A sleep and its wake-up cost about 5 us of CPU; a merged sleep must replace some.
inline constexpr std::uint64_t shortest_merge_ns = 50'000;
// Looks in a row, each of which found that part of a message had moved, before a thread sleeps all the same.
inline constexpr std::uint32_t most_stirs = 64;
// Wake-ups in vain, in a row, before wake-ups are merged: the first may be a peer's request that had to be
// answered at once.
inline constexpr std::uint32_t useless_before_merge = 2;

// The message that the order of a schedule wants next: a receive if it has one left, else a send; of those
// that come in packets (Transport::crosses) where there are some. Others are heard of at once.
struct Awaited {
    bool any = false, receive = false, crosses = false;
    std::uint64_t bytes = 0;
};

class Arrivals {
  public:
    // The channel begins to expect something after it expected nothing.
    void begin(std::uint64_t time_ns) { last_ns_ = time_ns; }
    // Bytes of messages that were complete at a look.
    void arrived(std::uint64_t time_ns, std::uint64_t bytes);

    // How long it does no harm not to look, while a message of `next_bytes` is awaited; 0 where it is near,
    // never more than longest_merge_ns. Where nothing is known, or a message is overdue, what a sleep can add
    // is bounded by a sixteenth of the time already waited.
    std::uint64_t span_ns(std::uint64_t time_ns, std::uint64_t next_bytes) const;

    // Bytes per ns, 0: not known yet.
    double rate() const { return rate_; }

  private:
    std::uint64_t last_ns_ = 0;
    double rate_ = 0;
};

// Both directions of a channel, which tell nothing of one another: the last of what was sent may be gone a
// moment after the last that came, or long before it.
class BothWays {
  public:
    // What became complete at a look, of messages that come in packets.
    struct Crossed {
        bool any = false;
        std::uint64_t bytes = 0;
    };

    void begin(std::uint64_t time_ns) { received_.begin(time_ns), sent_.begin(time_ns); }
    void crossed(std::uint64_t time_ns, Crossed received, Crossed sent) {
        if (received.any) received_.arrived(time_ns, received.bytes);
        if (sent.any) sent_.arrived(time_ns, sent.bytes);
    }
    // As Arrivals::span_ns(); 0: what is awaited is heard of at once.
    std::uint64_t span_ns(std::uint64_t time_ns, const Awaited& next) const {
        if (!next.crosses) return 0;
        return (next.receive ? received_ : sent_).span_ns(time_ns, next.bytes);
    }

  private:
    Arrivals received_, sent_;
};

// A span for a thread that could listen instead: 0, listen, where it is too short.
constexpr std::uint64_t merged(std::uint64_t span_ns) { return span_ns < shortest_merge_ns ? 0 : span_ns; }

}  // namespace thalweg
