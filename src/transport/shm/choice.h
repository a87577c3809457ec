// Which protocol a receiver takes for a message: what the two sides have still to copy, what they have on the
// wire, and how long messages took before. Decided per peer and size class, again after every few messages,
// and changed only for what is clearly better. Pure: reads no clock.
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
const char* describe(Because because);

struct Decision {
    const Protocol* protocol = nullptr;
    std::uint64_t receivers_share = 0;
    double expected_s = 0;  // until all bytes are there
};

// How fast one process copies by each protocol, as measured on this host: shared by all choosers of a port.
class CopyRates {
  public:
    double bytes_per_s(const Protocol& protocol) const { return rates_[number_of(protocol)]; }
    void measured(const Protocol& protocol, std::size_t bytes, double seconds);

  private:
    // Where they begin only says which is preferred before anything has been measured.
    std::array<double, protocols.size()> rates_{4e9, 3e9, 3e9, 3e9, 1.5e9};
};

class Chooser {
  public:
    static constexpr int classes = 6;           // of sizes: below 64 KiB, 256 KiB, 1 MiB, 4 MiB, 16 MiB, all
    static constexpr std::uint32_t settle = 4;  // messages of a class between two decisions
    static constexpr double hysteresis = 0.15;  // what is gained at least by a change
    static constexpr std::uint64_t least_shared = 128 * 1024;  // smaller messages are one side's

    // What was seen of one size class.
    struct Account {
        const Protocol* protocol = nullptr;  // of the latest message; null: none yet
        Because because = Because::only_one;
        std::uint64_t messages = 0, bytes = 0, switches = 0;
    };

    // `forced`: the only protocol where it is usable; null: all. What is forced teaches nothing: afterwards
    // the choice goes on where it was, and its expectation is 0.
    Decision choose(std::uint64_t bytes, const Reach& reach, const Load& receiver, const Load& sender,
                    const CopyRates& rates, const Protocol* forced);
    // A message that `choose` decided took so long.
    void measured(std::uint64_t bytes, const Protocol& protocol, double expected_s, double seconds);

    static int class_of(std::uint64_t bytes);
    const Account& account(int size_class) const { return classes_[size_class].account; }

  private:
    struct Class {
        Account account;
        const Protocol* current = nullptr;  // of what was chosen, not asked for
        std::uint32_t until_next = 0;
        // What messages took, relative to what was expected; moves towards 1 while a protocol is not used.
        std::array<double, protocols.size()> corrections{1, 1, 1, 1, 1};
    };
    std::array<Class, classes> classes_;
};

}  // namespace thalweg::shm
