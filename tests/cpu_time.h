// Seconds of a processor: what others do on this machine makes them no more.
#pragma once

#include <sys/resource.h>
#include <time.h>

namespace thalweg::test {

// Of the calling thread, since it began.
inline double thread_cpu_seconds() {
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// Of the children that were waited for, and theirs.
inline double children_cpu_seconds() {
    rusage used{};
    getrusage(RUSAGE_CHILDREN, &used);
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

}  // namespace thalweg::test
