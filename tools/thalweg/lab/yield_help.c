// A help for MPICH's waits, preloaded into ranks where they outnumber the cores. MPICH polls UCX without ever
// giving up its core, so the rank that could send has to wait for the end of a time slice. After 20 polls
// without an event this one yields. Native columns measured with it are a fair opponent; without it they would
// show the scheduler, not the algorithm.
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>

typedef unsigned (*progress_function)(void*);

static progress_function next_progress;

__attribute__((visibility("default"))) unsigned ucp_worker_progress(void* worker) {
    static __thread unsigned empty_polls;
    // Every thread finds the same address, so a race stores the same value twice.
    progress_function progress = __atomic_load_n(&next_progress, __ATOMIC_ACQUIRE);
    if (!progress) {
        progress = (progress_function)dlsym(RTLD_NEXT, "ucp_worker_progress");
        if (!progress) {
            // A program that loads its MPI with RTLD_LOCAL (Python does) hides UCX from RTLD_NEXT.
            void* library = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
            if (library) progress = (progress_function)dlsym(library, "ucp_worker_progress");
        }
        if (!progress) return 0;
        __atomic_store_n(&next_progress, progress, __ATOMIC_RELEASE);
    }
    const unsigned events = progress(worker);
    if (events) empty_polls = 0;
    else if (++empty_polls > 20) sched_yield();
    return events;
}
