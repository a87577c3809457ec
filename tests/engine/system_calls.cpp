#include "engine/system_calls.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace thalweg::test {
SystemCalls system_calls;
}

using thalweg::test::system_calls;

extern "C" int sched_yield() noexcept {
    ++system_calls.yields;
    return static_cast<int>(syscall(SYS_sched_yield));
}

extern "C" int clock_nanosleep(clockid_t clock, int flags, const timespec* span, timespec* left) {
    ++system_calls.naps;
    const auto asked_ns =
        static_cast<std::uint64_t>(span->tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(span->tv_nsec);
    if (asked_ns > system_calls.longest_nap_ns) system_calls.longest_nap_ns = asked_ns;
    return syscall(SYS_clock_nanosleep, clock, flags, span, left) == 0 ? 0 : errno;
}
