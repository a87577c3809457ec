// How often something short is timed before its time is believed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace thalweg {

// Times of the same thing, in nanoseconds, one of which may be far off either way: a thread that was kept off
// its core starts its clock late, or stops it late. Two that agree to an eighth are enough; else the median
// of three counts. Local; allocates nothing.
class RepeatedTiming {
  public:
    // One more. Pre: wants_more().
    void add(std::uint64_t duration_ns);
    // Whether there are not yet enough of them.
    bool wants_more() const;
    // The shorter of two, the middle one of three, the only one; 0 before the first.
    std::uint64_t believed_ns() const;

  private:
    std::array<std::uint64_t, 3> ascending_{};
    std::size_t count_ = 0;
};

}  // namespace thalweg
