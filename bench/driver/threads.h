// The kernel's own account of what the threads of this process did: seconds on a core, seconds runnable
// without one, and how often each gave the core up or lost it. What a library counts itself proves nothing.
#pragma once

#include <cstdint>

namespace thalweg::bench {

struct ThreadClock {
    double cpu_seconds = 0;
    double delay_seconds = 0;  // runnable, and waiting for a core (/proc/self/task/*/schedstat)
    double wake_ups = 0;       // times it slept of its own will, each of which ended with a wake-up
    double lost = 0;           // times the core was taken from it

    ThreadClock operator-(const ThreadClock& before) const {
        return {cpu_seconds - before.cpu_seconds, delay_seconds - before.delay_seconds,
                wake_ups - before.wake_ups, lost - before.lost};
    }
    ThreadClock& operator+=(const ThreadClock& more) {
        cpu_seconds += more.cpu_seconds;
        delay_seconds += more.delay_seconds;
        wake_ups += more.wake_ups;
        lost += more.lost;
        return *this;
    }
};

struct ProcessClocks {
    ThreadClock main;   // the thread that called MPI_Init
    ThreadClock agent;  // Thalweg's progress thread
    ThreadClock other;  // every other thread: those of the MPI library, of libucp, of the reference

    ProcessClocks operator-(const ProcessClocks& before) const {
        return {main - before.main, agent - before.agent, other - before.other};
    }
};

// Of this process so far; threads that ended count no more, so differences hold where none ends in between.
ProcessClocks read_process_clocks();

// Of the calling thread; seconds only of what it waited for a core, and how often it lost one. Two system
// calls' time.
ThreadClock read_own_clock();

// Seconds that all cores of this machine spent in softirq since it started (/proc/stat), in the kernel's
// ticks.
double read_softirq_seconds();

}  // namespace thalweg::bench
