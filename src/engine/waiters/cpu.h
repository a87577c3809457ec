// What this CPU and its kernel offer to a thread that wants to idle without a system call.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace thalweg {

// The answers of CPUID that matter here, so that a test can make them up. All zero on other architectures.
struct CpuAnswers {
    std::uint32_t max_leaf = 0;
    std::uint32_t leaf7_ecx = 0;      // bit 5: WAITPKG
    std::uint32_t max_extended = 0;   // 0x80000000 eax
    std::uint32_t extended1_ecx = 0;  // 0x80000001 ecx, bit 29: MONITORX
    std::uint32_t extended7_edx = 0;  // 0x80000007 edx, bit 8: the time-stamp counter runs at one rate
};
CpuAnswers ask_cpu();

struct Cpu {
    bool waitpkg = false;  // umonitor, umwait, tpause
    bool mwaitx = false;   // monitorx, mwaitx
    bool deep = true;      // the kernel allows C0.2, which leaves more to the core's other hardware thread
    std::uint64_t longest_umwait = 0;  // the kernel's bound of one umwait or tpause, in TSC ticks; 0: none
    double ticks_per_ns = 0;           // of the time-stamp counter; 0 where none of the above is there
    // Why waitpkg or mwaitx is false, one clause each.
    std::string no_waitpkg, no_mwaitx;
};

// Pure: what CPUID and the kernel's files (contents of umwait_control/enable_c02 and max_time; empty where a
// file is missing) say.
Cpu decode_cpu(const CpuAnswers& answers, const std::string& enable_c02, const std::string& max_time);

// This CPU. An instruction that CPUID promises is tried once before anything relies on it, because a
// hypervisor may forbid what it shows. Milliseconds at most, no signal handler of the process is touched.
Cpu detect_cpu();

// Runs `instruction` where an illegal instruction does no harm: in a child that shares our memory but not our
// signal handlers. False: it is illegal here, or no child could be made.
bool executes(void (*instruction)());

std::uint64_t read_ticks();
// The rate of one clock by another, watched for 50 us; right where this thread loses its core meanwhile.
double ticks_per_ns(std::uint64_t (*clock_ns)(), std::uint64_t (*ticks)());

}  // namespace thalweg
