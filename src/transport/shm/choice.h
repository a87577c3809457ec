// Which protocol a receiver takes for a message: what the two sides have still to copy, what they have on the
// wire, how long messages took before, and where processes share cores, how much of a core they took. Decided
// per peer and size class, again after every few messages, and changed only for what is clearly better. What
// is not in use is tried now and then, by one message at a time. Pure: reads no clock. What computes with
// seconds is called in_standard_modes (float_modes.h).
#pragma once

#include <array>
#include <cstdint>

#include "transport/shm/protocol.h"

namespace thalweg::shm {

// Why the protocol in use was taken.
enum class Because : std::uint8_t {
    only_one,        // the others do not work between these two
    asked_for,       // it works, and was asked for
    copies_bound,    // copies take longest: both sides share them, or the faster one does
    wire_bound,      // the wire takes longest: the side with less to do copies
    measured_faster  // what was measured speaks against what the model would take
};
inline constexpr int reasons = 5;
const char* describe(Because because);

struct Decision {
    const Protocol* protocol = nullptr;
    std::uint64_t receivers_share = 0;
    double expected_s = 0;  // until all bytes are there
};

inline constexpr int size_classes = 6;  // below 64 KiB, 256 KiB, 1 MiB, 4 MiB, 16 MiB, all
int size_class_of(std::uint64_t bytes);

// How fast one process copies by each protocol, as measured on this host: shared by all choosers of a port.
class CopyRates {
  public:
    // spins: whoever waits polls meanwhile, and nobody has to be woken. crowded: as ShmOptions. ring_bytes:
    // what a ring holds before its ends wait for each other.
    explicit CopyRates(bool spins = false, bool crowded = false, std::size_t ring_bytes = shm::ring_bytes)
        : spins_(spins), crowded_(crowded), ring_bytes_(ring_bytes) {}
    bool spins() const { return spins_; }
    std::size_t ring_bytes() const { return ring_bytes_; }
    // How much of a message's cost is the work that it makes: 0 to 1.
    double shortage() const;

    // Of a core's time, in messages of this class; nothing measured there: of the class nearest to it. What
    // goes through a ring is copied twice.
    double bytes_per_s(const Protocol& protocol, int size_class) const;
    // These took `seconds`, of which the process had a core for `core_seconds`. Through a ring: to copy them
    // into it.
    void measured(const Protocol& protocol, int size_class, std::size_t bytes, double seconds,
                  double core_seconds);
    // Whether what the next chunk takes is to be measured: the processor clock is a call of the system, and
    // after the first few one chunk in so many tells enough, while cores are not scarce, where it is known
    // that they are, or where chunks are so short that there are many of them, and that the call takes as
    // long as one.
    bool wants(const Protocol& protocol, int size_class);
    // To copy them out of a ring took `seconds`, by the clock on the wall: too short for the other one. Until
    // it was measured it is taken to be as long as into it.
    void measured_out_of_ring(int size_class, std::size_t bytes, double seconds);
    // The share of the time of copying in which somebody else had the core, of late: 0 to 1.
    double scarcity() const { return scarcity_; }

  private:
    struct Rate {
        double bytes_per_s = 0;  // 0: not measured
        std::uint32_t samples = 0;
        void measured(double seen);
    };
    // Whether every chunk tells how scarce cores are.
    bool all_tell(const Protocol& protocol) const;
    // The nearest that was measured; 0: none.
    template <typename RateOf>
    static double nearest(int size_class, RateOf rate_of);
    std::array<std::array<Rate, protocols.size()>, size_classes> rates_;
    std::array<Rate, size_classes> out_of_ring_;
    bool spins_, crowded_;
    std::size_t ring_bytes_;
    double seconds_ = 0, core_seconds_ = 0;  // of one chunk, of late
    double scarcity_ = 0;                    // as these say
    std::uint64_t chunks_ = 0, asked_ = 0;
};

class Chooser {
  public:
    static constexpr int classes = size_classes;
    static constexpr std::uint32_t settle = 4;                 // messages of a class between two decisions
    static constexpr double hysteresis = 0.15;                 // what is gained at least by a change
    static constexpr std::uint64_t least_shared = 128 * 1024;  // smaller messages are one side's
    // Behind the first few, so many messages in a row try each protocol as soon as it can be used: the second
    // one finds what the first has touched. Then, up to so many messages, one in so many is a trial, and
    // later one in so many.
    static constexpr std::uint64_t before_trials = 4, of_each = 2, often_until = 512, often = 32,
                                   seldom = 128;
    // Messages of a class after which it goes by what was found.
    static constexpr std::uint64_t settled_after = before_trials + of_each * protocols.size() + settle;

    // tries: else only what has been measured counts, and what has not is taken for what CopyRates begins
    // with.
    explicit Chooser(bool tries = true) : tries_(tries) {}

    // What was seen of one size class.
    struct Account {
        const Protocol* protocol = nullptr;  // of the latest message but trials; null: none yet
        Because because = Because::only_one;
        std::array<std::uint64_t, reasons> messages_because{};  // by Because, but trials
        std::uint64_t messages = 0, bytes = 0, switches = 0;
    };

    // `forced`: the only protocol where it is usable; null: all. What is forced teaches nothing: afterwards
    // the choice goes on where it was, and its expectation is 0.
    Decision choose(std::uint64_t bytes, const Reach& reach, const Load& receiver, const Load& sender,
                    const CopyRates& rates, const Protocol* forced);
    // Whether the next message comes through the ring, as others did, without being decided about: of those
    // that have the ring, all but the ones that may be trials.
    bool keeps_ring(std::uint64_t bytes) const;
    // It does, or because the ring is forced.
    void keep_ring(std::uint64_t bytes, bool forced);
    // A message that `choose` decided took so long, while which this process slept so many times.
    void measured(std::uint64_t bytes, const Protocol& protocol, double expected_s, double seconds,
                  std::uint64_t sleeps = 0);

    static int class_of(std::uint64_t bytes) { return size_class_of(bytes); }
    const Account& account(int size_class) const { return classes_[size_class].account; }

  private:
    static void note(Account& account, const Protocol& protocol, Because because);

    // What is known of a protocol in a class.
    struct Known {
        double correction = 1;  // what messages took, relative to what was expected
        double sleeps = 0;      // while one was under way
        std::uint32_t samples = 0;
    };
    // The ring is tried by two messages in a row, of which the second tells what it took, if the first was
    // there before it: for the first it lies in nobody's caches.
    enum class RingTrial : std::uint8_t { none, first_is_under_way, first_is_there };
    struct Class {
        Account account;
        RingTrial ring_trial = RingTrial::none;
        const Protocol* current = nullptr;  // of what was chosen, not asked for
        std::uint32_t until_next = 0;
        std::uint64_t chosen = 0;  // messages
        std::array<Known, protocols.size()> known;
        std::array<std::uint64_t, protocols.size()> tried{};  // early, in messages
    };
    // The number of the protocol that this message shall try; protocols.size(): none.
    std::size_t trial(Class& sizes, const std::array<double, protocols.size()>& costs,
                      std::size_t taken) const;

    bool tries_;
    std::array<Class, classes> classes_;
};

}  // namespace thalweg::shm
