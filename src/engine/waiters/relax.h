// The instruction for the body of a loop that spins.
#pragma once

namespace thalweg {

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace thalweg
