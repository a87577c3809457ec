/* The program's own mmap counts the calls that come from the preload object, as its malloc does. Linked with
 * -rdynamic, and run with UCX_MEM_MMAP_HOOK_MODE=none: UCX would put an mmap of its own in front. */
#ifndef MAPPING_COUNT_H
#define MAPPING_COUNT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/mman.h>
#include <sys/syscall.h>

#include "allocation_count.h"

static unsigned long mapped_by_us = 0; /* while it counts */
enum { most_early = 4096 };
static uintptr_t early_callers[most_early]; /* before it is known where the object lies */
static int early = 0;

static void* map(uintptr_t caller, void* at, size_t bytes, int protection, int flags, int file,
                 off_t offset) {
    if (our_begin == 0) {
        const int place = __atomic_fetch_add(&early, 1, __ATOMIC_RELAXED);
        if (place < most_early) early_callers[place] = caller;
    }
    if (counting && caller >= our_begin && caller < our_end) ++mapped_by_us;
    return (void*)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
    return map((uintptr_t)__builtin_return_address(0), at, bytes, protection, flags, file, offset);
}
void* mmap64(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
    return map((uintptr_t)__builtin_return_address(0), at, bytes, protection, flags, file, offset);
}

/* What the object has mapped before find_us(): it always maps something in MPI_Init, or the counter is blind.
 */
static unsigned long mapped_early(void) {
    unsigned long count = 0;
    for (int i = 0; i < early && i < most_early; ++i)
        count += early_callers[i] >= our_begin && early_callers[i] < our_end;
    return count;
}

#endif
