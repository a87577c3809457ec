// How many calls the native library has yet before schedules are tried in their place again, whichever
// communicator they come on: programs make communicators, call a few operations on them and free them, and a
// verdict that was forgotten with each of them would let every one lose what a trial loses.
//
// Each process counts for itself. What the processes of one communicator have counted may differ, because
// each has been in others: they agree on the most before it means anything.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace thalweg {

// Calls of which a trial on one communicator says what to expect on another.
struct TriedCalls {
    int kind = 0, size_class = 0;
    std::uint64_t topology = 0;  // the digest of what hosts the ranks are on
    bool operator==(const TriedCalls&) const = default;
};

// Takes no memory but its own; of more kinds of calls than it has places for, what was not asked about for
// the longest is forgotten. By any thread.
class OwedCalls {
  public:
    static constexpr std::size_t places = 64;

    // 0, too, where nothing is known.
    std::uint64_t of(const TriedCalls& calls);
    // So many of them have been.
    void pass(const TriedCalls& calls, std::uint64_t count);
    // By a verdict the native library has the next `count`; 0: it does not have all of them.
    void decide(const TriedCalls& calls, std::uint64_t count);
    // A communicator was freed in the midst of its first trial, which says nothing and may have cost as much
    // as another: the library has as many as by the latest verdict, if that was for it, else
    // TrialTurns::soonest; and twice as many each time until there is a verdict, as long as that is no more
    // than `most`.
    void break_off(const TriedCalls& calls, std::uint64_t most);

  private:
    struct Place {
        TriedCalls calls;
        std::uint64_t owed = 0, by_broken_off = 0;  // what the next trial leaves that is broken off
        std::uint64_t asked = 0;                    // when, the latest time; 0: the place is free
    };
    Place* find(const TriedCalls& calls);
    Place& make(const TriedCalls& calls);

    std::mutex mutex_;
    std::array<Place, places> all_{};
    std::uint64_t asked_ = 0;
};

}  // namespace thalweg
