// Why the system copies between no two processes of a host, as far as it says so.
#pragma once

namespace thalweg::shm {

// For reports. `ptrace_scope`: where the security module Yama tells its rule. Linux lets a process copy from
// another only where it might trace it, and above 0 ranks, which are siblings, may not trace each other.
const char* why_rings_only(const char* ptrace_scope = "/proc/sys/kernel/yama/ptrace_scope");

}  // namespace thalweg::shm
