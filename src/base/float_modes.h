// How a thread computes with floating-point numbers. Its modes are registers of its own, which it inherits
// from its maker and may change at any time (fesetround, IEEE_SET_ROUNDING_MODE, _MM_SET_FLUSH_ZERO_MODE):
// what it computes for another thread it has to compute as that one would. Each function costs a few ns and
// makes no system call.
#pragma once

#include <pthread.h>

#include <cstdint>
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <cfenv>
#endif

namespace thalweg {

// What results depend on: the direction of rounding; on x86-64 and aarch64 also whether what is too small for
// a normal number counts as zero, and the precision of x87. Which exceptions trap is not among them.
class FloatModes {
  public:
    // Nobody's, and not to be computed in.
    FloatModes() = default;
    static FloatModes of_this_thread();

  private:
    friend class InModes;
    pthread_t thread_{};
    std::uint64_t bits_ = 0;  // where the processor has them; elsewhere what fegetround() says
};

// While it lives, this thread computes in these modes; then in its own again. Where they were taken in
// another thread no exception traps meanwhile, and the flags of those that were raised are not this thread's
// afterwards; where they are this thread's, its exceptions are as ever. Made and destroyed by one thread.
class InModes {
  public:
    explicit InModes(const FloatModes& modes);
    ~InModes();
    InModes(const InModes&) = delete;
    InModes& operator=(const InModes&) = delete;

  private:
    const bool own_;  // taken in this thread
#if defined(__x86_64__) || defined(__aarch64__)
    const std::uint64_t control_;  // this thread's
    std::uint64_t flags_ = 0;      // likewise; of another's modes
    bool changed_ = false;
#else
    int rounding_ = 0;         // this thread's; of its own modes
    std::fenv_t environment_;  // likewise; of another's
#endif
};

}  // namespace thalweg
