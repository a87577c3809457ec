// The instructions themselves, and what they are told. Private to the waiters and their tests.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/waiters/cpu.h"

namespace thalweg {

// Bit 0 of the operand of umwait and tpause: 1 asks for C0.1 (wakes faster), 0 for C0.2 (leaves more to the
// core's other hardware thread). Where the kernel forbids C0.2 the CPU takes C0.1 by itself.
constexpr std::uint32_t umwait_control(bool light) { return light ? 1u : 0u; }

// When a wait shall end, in ticks, for a time `span_ns` from now; the largest number where that overflows.
// The kernel's own bound is the CPU's business: a wait that it cuts short is begun again.
std::uint64_t deadline_ticks(const Cpu& cpu, std::uint64_t now_ticks, std::uint64_t span_ns);
// mwaitx takes a span of 32 bits instead.
std::uint32_t span_ticks(const Cpu& cpu, std::uint64_t span_ns);

// One wait on `word` while it is `seen`; each may end early. Pre: the CPU has it (detect_cpu).
void umwait_once(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint32_t control,
                 std::uint64_t deadline);
void tpause_once(std::uint32_t control, std::uint64_t deadline);
void mwaitx_once(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint32_t ticks);

// Each executes its instructions once, with a time that is over: for executes().
void try_waitpkg();
void try_mwaitx();

}  // namespace thalweg
