// Helps for MPICH's waits over UCX, preloaded into the ranks of a lab.
//
// 1. MPICH polls UCX without ever giving up its core, so where ranks outnumber cores the rank that could send
// has
//    to wait for the end of a time slice. After THALWEG_LAB_YIELD_POLLS polls without an event (0: never)
//    this one yields. Native columns measured with it are a fair opponent; without it they would show the
//    scheduler.
//
// 2. MPICH 4.0.2 stops driving UCX when it enters the launcher's barrier in MPI_Finalize, while a slower rank
// may
//    still need its answer to close a connection: short programs on several hosts hang. With
//    THALWEG_LAB_FINALIZE_HELP=1, UCX is driven here while a rank reads from its launcher. (MPICH 5 must not
//    have it: it would see connections closed by ranks that are through already, and abort.)
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef unsigned (*progress_function)(void*);
typedef void (*destroy_function)(void*);
typedef ssize_t (*read_function)(int, void*, size_t);

static progress_function next_progress;
static void* live_worker;  // of the thread that made the first poll; NULL before and after
static int yield_polls;
static int launcher_fd = -1;

// A program that loads its MPI with RTLD_LOCAL (Python does) hides UCX from RTLD_NEXT.
static void* find_next(const char* name) {
    void* found = dlsym(RTLD_NEXT, name);
    if (!found) {
        void* library = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
        if (library) found = dlsym(library, name);
    }
    return found;
}

static int number_of(const char* name, int otherwise) {
    const char* text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

EXPORT unsigned ucp_worker_progress(void* worker) {
    static __thread int empty_polls;
    // Threads that meet here store the same values.
    progress_function progress = __atomic_load_n(&next_progress, __ATOMIC_ACQUIRE);
    if (!progress) {
        progress = (progress_function)find_next("ucp_worker_progress");
        if (!progress) return 0;
        yield_polls = number_of("THALWEG_LAB_YIELD_POLLS", 0);
        if (number_of("THALWEG_LAB_FINALIZE_HELP", 0)) launcher_fd = number_of("PMI_FD", -1);
        live_worker = worker;
        __atomic_store_n(&next_progress, progress, __ATOMIC_RELEASE);
    }
    const unsigned events = progress(worker);
    if (events)
        empty_polls = 0;
    else if (yield_polls > 0 && ++empty_polls > yield_polls)
        sched_yield();
    return events;
}

EXPORT void ucp_worker_destroy(void* worker) {
    if (worker == live_worker) live_worker = NULL;
    destroy_function destroy = (destroy_function)find_next("ucp_worker_destroy");
    if (destroy) destroy(worker);
}

EXPORT ssize_t read(int fd, void* buffer, size_t bytes) {
    static read_function next_read;
    read_function real = __atomic_load_n(&next_read, __ATOMIC_RELAXED);
    if (!real) {
        real = (read_function)dlsym(RTLD_NEXT, "read");
        __atomic_store_n(&next_read, real, __ATOMIC_RELAXED);
    }
    if (fd == launcher_fd && fd >= 0) {
        struct pollfd wait = {fd, POLLIN, 0};
        while (live_worker && poll(&wait, 1, 1) == 0) next_progress(live_worker);
    }
    return real(fd, buffer, bytes);
}
