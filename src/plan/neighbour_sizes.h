// What the nonblocking exchanges between a communicator's neighbours were like. Each rank knows its own
// messages only, and none of these calls may wait for others: the ranks tell one another what they have noted
// in a later blocking collective, and decide the calls behind that by it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace thalweg {

class NeighbourSizes {
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

    // The largest message that this rank sends in such a call, in bytes.
    void note(std::uint64_t bytes) noexcept { largest_ = std::max(largest_, bytes); }

    // The largest since the last time; 0: there was none, or none with bytes.
    std::uint64_t take() noexcept { return std::exchange(largest_, 0); }

  private:
    static constexpr std::uint32_t seldom = 1024;
    std::uint32_t calls_ = 0, next_ = 16;
    std::uint64_t largest_ = 0;
};

}  // namespace thalweg
