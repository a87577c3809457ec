// What the engine asks of the kernel while it waits: in the place of the C library's functions, for all of
// this program, these count and pass on. What a test says of waits by them holds on a machine of any speed.
#pragma once

#include <atomic>
#include <cstdint>

namespace thalweg::test {

struct SystemCalls {
    std::atomic<int> yields{0};
    std::atomic<std::uint64_t> naps{0};            // clock_nanosleep
    std::atomic<std::uint64_t> longest_nap_ns{0};  // as it was asked for
    void forget() { yields = 0, naps = 0, longest_nap_ns = 0; }
};
extern SystemCalls system_calls;

}  // namespace thalweg::test
