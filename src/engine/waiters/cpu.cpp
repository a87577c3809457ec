#include "engine/waiters/cpu.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "base/clock.h"
#include "base/float_modes.h"
#include "base/signals_blocked.h"
#include "engine/waiters/monitor.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace thalweg {
namespace {

constexpr std::uint32_t waitpkg_bit = 1u << 5;
constexpr std::uint32_t monitorx_bit = 1u << 29;
constexpr std::uint32_t constant_rate_bit = 1u << 8;

// Long enough that the two clocks' reading errors (about 50 ns) are a thousandth of it.
constexpr std::uint64_t calibration_ns = 50'000;

constexpr std::size_t child_stack_bytes = 64 * 1024;
constexpr int illegal = 1;

// What follows runs in the child: memory is the parent's, who is suspended, and the table of signal handlers
// is a copy. So it calls the kernel directly, and no sanitizer may keep its books there: they are the
// parent's.
#define THALWEG_IN_CHILD __attribute__((no_sanitize("thread", "address")))

// The kernel's form of struct sigaction.
struct KernelAction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    std::uint64_t mask;
};
constexpr unsigned long has_restorer = 0x04000000;  // SA_RESTORER: x86 delivers no signal without it

THALWEG_IN_CHILD void end_illegal(int) { syscall(SYS_exit, illegal); }
THALWEG_IN_CHILD void never_returns() {}

THALWEG_IN_CHILD int try_instruction(void* instruction) {
    const KernelAction action{end_illegal, has_restorer, never_returns, 0};
    const std::uint64_t both = 1ull << (SIGILL - 1) | 1ull << (SIGSEGV - 1);
    syscall(SYS_rt_sigaction, SIGILL, &action, nullptr, sizeof both);
    syscall(SYS_rt_sigaction, SIGSEGV, &action, nullptr, sizeof both);
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &both, nullptr, sizeof both);
    reinterpret_cast<void (*)()>(instruction)();
    return 0;
}

std::string content_of(const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

struct Moment {
    std::uint64_t ns = 0, ticks = 0;
};

// What two clocks say at one time. Of a thread that loses its core between a look at one and at the other
// they say two times: the closest pair of a few counts.
Moment moment_of(std::uint64_t (*clock_ns)(), std::uint64_t (*ticks)()) {
    constexpr int pairs = 8;
    Moment closest;
    std::uint64_t least_ns = UINT64_MAX;
    for (int pair = 0; pair < pairs; ++pair) {
        const std::uint64_t before_ns = clock_ns(), seen = ticks(), taken_ns = clock_ns() - before_ns;
        if (taken_ns >= least_ns) continue;
        least_ns = taken_ns;
        closest = {before_ns + taken_ns / 2, seen};
    }
    return closest;
}

}  // namespace

double ticks_per_ns(std::uint64_t (*clock_ns)(), std::uint64_t (*ticks)()) {
    const Moment begin = moment_of(clock_ns, ticks);
    while (clock_ns() - begin.ns < calibration_ns) {
    }
    const Moment end = moment_of(clock_ns, ticks);
    return in_standard_modes([&] {
        return static_cast<double>(end.ticks - begin.ticks) / static_cast<double>(end.ns - begin.ns);
    });
}

#if defined(__x86_64__) || defined(__i386__)

CpuAnswers ask_cpu() {
    CpuAnswers answers;
    std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
    answers.max_leaf = __get_cpuid_max(0, nullptr);
    answers.max_extended = __get_cpuid_max(0x80000000u, nullptr);
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) answers.leaf7_ecx = ecx;
    if (__get_cpuid(0x80000001u, &eax, &ebx, &ecx, &edx)) answers.extended1_ecx = ecx;
    if (__get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx)) answers.extended7_edx = edx;
    return answers;
}

std::uint64_t read_ticks() { return __builtin_ia32_rdtsc(); }

#else

CpuAnswers ask_cpu() { return {}; }
std::uint64_t read_ticks() { return 0; }

#endif

Cpu decode_cpu(const CpuAnswers& answers, const std::string& enable_c02, const std::string& max_time) {
    Cpu cpu;
    const bool constant_rate =
        answers.max_extended >= 0x80000007u && (answers.extended7_edx & constant_rate_bit) != 0;
    cpu.waitpkg = answers.max_leaf >= 7 && (answers.leaf7_ecx & waitpkg_bit) != 0;
    cpu.mwaitx = answers.max_extended >= 0x80000001u && (answers.extended1_ecx & monitorx_bit) != 0;
    if (!cpu.waitpkg) cpu.no_waitpkg = "this CPU has no WAITPKG";
    if (!cpu.mwaitx) cpu.no_mwaitx = "this CPU has no MONITORX";
    if (!constant_rate) {
        // Their time limits are in ticks: without a steady rate they cannot be told when to end.
        if (cpu.waitpkg) cpu.no_waitpkg = "this CPU's time-stamp counter has no steady rate";
        if (cpu.mwaitx) cpu.no_mwaitx = "this CPU's time-stamp counter has no steady rate";
        cpu.waitpkg = cpu.mwaitx = false;
    }
    cpu.deep = enable_c02 != "0";
    cpu.longest_umwait = std::strtoull(max_time.c_str(), nullptr, 10);
    return cpu;
}

#if defined(__SANITIZE_THREAD__)

// This sanitizer takes every clone for a fork, and would mark our own memory as the child's.
bool executes(void (*)()) { return false; }

#else

bool executes(void (*instruction)()) {
    void* const stack = mmap(nullptr, child_stack_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return false;
    // A signal for the whole group would run the program's handler there, too, in this process's memory.
    const SignalsBlocked inherited;
    // No signal at its end, so that a program that waits for children of its own does not see this one.
    const pid_t child = clone(try_instruction, static_cast<char*>(stack) + child_stack_bytes,
                              CLONE_VM | CLONE_VFORK, reinterpret_cast<void*>(instruction));
    int status = -1;
    if (child > 0) {
        while (waitpid(child, &status, __WALL) < 0) {
            if (errno != EINTR) break;
        }
    }
    munmap(stack, child_stack_bytes);
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#endif

Cpu detect_cpu() {
    Cpu cpu = decode_cpu(ask_cpu(), content_of("/sys/devices/system/cpu/umwait_control/enable_c02"),
                         content_of("/sys/devices/system/cpu/umwait_control/max_time"));
    if (cpu.waitpkg && !executes(try_waitpkg)) {
        cpu.waitpkg = false;
        cpu.no_waitpkg = "umwait is shown by CPUID and forbidden by the hypervisor";
    }
    if (cpu.mwaitx && !executes(try_mwaitx)) {
        cpu.mwaitx = false;
        cpu.no_mwaitx = "mwaitx is shown by CPUID and forbidden by the hypervisor";
    }
    if (cpu.waitpkg || cpu.mwaitx) cpu.ticks_per_ns = ticks_per_ns(now_ns, read_ticks);
    return cpu;
}

}  // namespace thalweg
