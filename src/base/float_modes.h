// How a thread computes with floating-point numbers. Its modes are registers of its own, which it inherits
// from its maker and may change at any time (fesetround, IEEE_SET_ROUNDING_MODE, _MM_SET_FLUSH_ZERO_MODE):
// what it computes for another thread it has to compute as that one would. Each function costs a few ns and
// makes no system call.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <type_traits>
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
    // Those of a process that has not asked for others: to the nearest, with small numbers as they are. They
    // count as another thread's everywhere.
    static FloatModes standard();

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

// While it lives, floats and doubles are computed as InModes(FloatModes::standard()) has them computed, by
// this thread. Of long doubles it says nothing.
#if defined(__x86_64__)
class InStandardDoubles {
  public:
    InStandardDoubles() : before_(read()) {
        if ((before_ & ~flags) != standard) write(standard);
    }
    ~InStandardDoubles() {
        if (read() != before_) write(before_);
    }
    InStandardDoubles(const InStandardDoubles&) = delete;
    InStandardDoubles& operator=(const InStandardDoubles&) = delete;

  private:
    // MXCSR: to the nearest, denormals as they are, nothing traps.
    static constexpr std::uint32_t flags = 0x3f, standard = 0x1f80;
    static std::uint32_t read() {
        std::uint32_t control;
        asm volatile("stmxcsr %0" : "=m"(control));
        return control;
    }
    static void write(std::uint32_t control) { asm volatile("ldmxcsr %0" : : "m"(control)); }
    const std::uint32_t before_;
};
#else
class InStandardDoubles {
    const InModes modes_{FloatModes::standard()};
};
#endif

// What `compute` returns, computed while a Modes lives. Throws what it throws.
template <typename Modes, typename Compute>
auto computed_in(const Modes&, const Compute& compute) {
    // To the compiler numbers may be combined in front of the modes as well as behind: so it cannot tell what
    // is computed with before they are there, and has to store what comes of it before they are gone.
    const Compute* hidden = &compute;
    asm volatile("" : "+r"(hidden) : : "memory");
    if constexpr (std::is_void_v<decltype(compute())>) {
        (*hidden)();
        asm volatile("" : : : "memory");
    } else {
        auto result = (*hidden)();
        asm volatile("" : : "r"(&result) : "memory");
        return result;
    }
}

// What `compute` returns, which computes with floats and doubles the same in every process, whatever modes
// this thread is in: what ranks decide each for itself, and alike. Nothing traps meanwhile, and the flags are
// as before. Some 8 ns on x86-64: beside what is kept, not in front of it. Not around calls of MPI, which may
// run functions of the program's, nor around anything that may be left by a jump.
template <typename Compute>
auto in_standard_modes(const Compute& compute) {
    return computed_in(InStandardDoubles(), compute);
}
// The same where numbers become text or come of it, in which the C library asks how long doubles are rounded.
// Some 30 ns.
template <typename Compute>
auto with_texts_in_standard_modes(const Compute& compute) {
    return computed_in(InModes(FloatModes::standard()), compute);
}

}  // namespace thalweg
