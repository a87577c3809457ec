// umonitor, umwait, tpause, monitorx and mwaitx for a CPU that has none of them: the signal that they raise
// is caught, the instruction decoded from its bytes and done in software. So the very code that would run on
// a newer CPU runs here, encodings and operands included.
#pragma once

#if defined(__x86_64__)

#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "engine/waiters/cpu.h"

namespace thalweg::test {

class Emulator {
  public:
    struct Counts {
        std::atomic<std::uint64_t> umonitor{0}, umwait{0}, tpause{0}, monitorx{0}, mwaitx{0}, cut_short{0};
        std::atomic<std::uint32_t> control{~0u};  // of the latest umwait or tpause
    };

    // `longest`: what umwait_control/max_time would say, in ticks.
    explicit Emulator(std::uint64_t longest) {
        longest_ticks() = longest;
        counts().umonitor = counts().umwait = counts().tpause = counts().monitorx = counts().mwaitx = 0;
        counts().cut_short = 0;
        struct sigaction action {};
        action.sa_sigaction = on_illegal;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGILL, &action, &before_);
    }
    ~Emulator() { sigaction(SIGILL, &before_, nullptr); }

    static Counts& counts() {
        static Counts counts;
        return counts;
    }

  private:
    static std::uint64_t& longest_ticks() {
        static std::uint64_t ticks = 0;
        return ticks;
    }
    // What the thread's last umonitor or monitorx watches.
    static const std::atomic<std::uint32_t>*& watched() {
        static thread_local const std::atomic<std::uint32_t>* word = nullptr;
        return word;
    }
    static std::uint32_t& watched_value() {
        static thread_local std::uint32_t value = 0;
        return value;
    }

    static void watch(std::uint64_t address) {
        watched() = reinterpret_cast<const std::atomic<std::uint32_t>*>(address);
        watched_value() = watched()->load();
    }
    // Until a write, the deadline or the system's bound; true: the bound.
    static bool idle(bool watches, std::uint64_t deadline) {
        const std::uint64_t bound = read_ticks() + longest_ticks();
        while (read_ticks() < deadline) {
            if (watches && (watched() == nullptr || watched()->load() != watched_value())) break;
            if (read_ticks() >= bound) return true;
            __builtin_ia32_pause();
        }
        watched() = nullptr;  // a watch is good for one wait
        return false;
    }

    static void on_illegal(int, siginfo_t*, void* context) {
        auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
        static constexpr int numbered[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                           REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                           REG_R12, REG_R13, REG_R14, REG_R15};
        const auto* at = reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]);
        std::uint64_t length = 0;
        const std::uint64_t a = static_cast<std::uint32_t>(registers[REG_RAX]);
        const std::uint64_t d = static_cast<std::uint32_t>(registers[REG_RDX]);
        if (at[0] == 0x0f && at[1] == 0x01 && at[2] == 0xfa) {
            ++counts().monitorx;
            watch(static_cast<std::uint64_t>(registers[REG_RAX]));
            length = 3;
        } else if (at[0] == 0x0f && at[1] == 0x01 && at[2] == 0xfb) {
            ++counts().mwaitx;
            const bool timed = (registers[REG_RCX] & 2) != 0;
            const std::uint64_t span = static_cast<std::uint32_t>(registers[REG_RBX]);
            idle(true, timed ? read_ticks() + span : UINT64_MAX);
            length = 3;
        } else {
            const std::uint8_t prefix = at[0];
            const bool extended = (at[1] & 0xf0) == 0x40;
            const std::uint8_t* opcode = at + 1 + extended;
            const std::uint8_t modrm = opcode[2];
            // 0f ae, a register, /6.
            if (opcode[0] != 0x0f || opcode[1] != 0xae || (modrm & 0xf8) != 0xf0) give_up();
            const int number = (modrm & 7) + (extended && (at[1] & 1) ? 8 : 0);
            const auto operand = static_cast<std::uint64_t>(registers[numbered[number]]);
            length = 4u + extended;
            if (prefix == 0xf3) {
                ++counts().umonitor;
                watch(operand);
            } else if (prefix == 0xf2 || prefix == 0x66) {
                ++(prefix == 0xf2 ? counts().umwait : counts().tpause);
                counts().control = static_cast<std::uint32_t>(operand);
                const bool cut = idle(prefix == 0xf2, d << 32 | a);
                counts().cut_short += cut;
                constexpr long long carry = 1;
                registers[REG_EFL] = cut ? registers[REG_EFL] | carry : registers[REG_EFL] & ~carry;
            } else {
                give_up();
            }
        }
        registers[REG_RIP] += static_cast<long long>(length);
    }

    [[noreturn]] static void give_up() {
        signal(SIGILL, SIG_DFL);
        raise(SIGILL);
        __builtin_trap();
    }

    struct sigaction before_ {};
};

}  // namespace thalweg::test

#endif
