// What the nonblocking exchanges of a communicator were like, those between its neighbours and those between
// all its ranks. Each rank knows its own messages only, and none of these calls may wait for others: the
// ranks tell one another what they have noted in a later blocking
// collective, and decide the calls behind that by it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "plan/exchange.h"

namespace thalweg {

// Counts calls until it is time to agree.
class Intervals {
  public:
    // One call, in every rank at the same place in the order of calls. True, on all ranks: it is time to tell
    // the others. Sizes that stay need few agreements and new ones soon become known: the first after 16
    // calls, the next after twice as many each, and in the end every 1024 calls.
    bool count() noexcept {
        if (++calls_ < next_) return false;
        calls_ = 0;
        next_ = std::min(2 * next_, seldom);
        return true;
    }
    // Whether the call that was counted last is one of the first or the last few before such a time.
    bool near() const noexcept { return calls_ <= few || calls_ + few > next_; }

  private:
    static constexpr std::uint32_t seldom = 1024, few = 4;
    std::uint32_t calls_ = 0, next_ = 16;
};

class NeighbourSizes {
  public:
    bool count() noexcept { return intervals_.count(); }

    // The largest message that this rank sends in such a call, in bytes.
    void note(std::uint64_t bytes) noexcept { largest_ = std::max(largest_, bytes); }

    // The largest since the last time; 0: there was none, or none with bytes.
    std::uint64_t take() noexcept { return std::exchange(largest_, 0); }

  private:
    Intervals intervals_;
    std::uint64_t largest_ = 0;
};

// More than that a message gains nothing by travelling together with others, in bytes.
inline constexpr std::uint64_t most_slot_bytes = 16 << 10;

// Of neighbourhoods whose messages may travel together (neighbour_leaders.h), blocking ones too.
class EdgeNotes {
  public:
    bool count() noexcept { return intervals_.count(); }

    struct Noted {
        std::uint64_t largest = 0;     // of the messages of no more than most_slot_bytes
        std::uint64_t difference = 0;  // difference_of() all
    };
    void note(const Letters& letters, int rank) noexcept {
        for (const Letter& letter : letters.outgoing)
            if (letter.bytes <= most_slot_bytes) noted_.largest = std::max(noted_.largest, letter.bytes);
        noted_.difference += difference_of(letters, rank);
    }

    // What this rank's were like since the last time.
    Noted take() noexcept { return std::exchange(noted_, {}); }

  private:
    Intervals intervals_;
    Noted noted_;
};

// Of alltoallvs and alltoallws; some of the calls stand for all, because looking at every message of every
// call is dear.
class ExchangeSizes {
  public:
    bool count() noexcept { return intervals_.count(); }
    bool notes() const noexcept { return intervals_.near(); }

    // Of this rank.
    struct Noted {
        TraitWords sums{};  // of all that were noted
        std::uint64_t calls = 0;
    };
    void note(const TraitWords& words) noexcept {
        for (std::size_t i = 0; i < trait_words; ++i) noted_.sums[i] += words[i];
        ++noted_.calls;
    }

    // What this rank's were like since the last time.
    Noted take() noexcept { return std::exchange(noted_, {}); }

  private:
    Intervals intervals_;
    Noted noted_;
};

}  // namespace thalweg
