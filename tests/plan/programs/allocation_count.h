/* The program's own malloc counts the calls that come from the preload object, whichever thread makes them.
 */
#ifndef ALLOCATION_COUNT_H
#define ALLOCATION_COUNT_H

#include "check.h"

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);

static int counting = 0;
static int refusing = 0; /* while it counts: our malloc finds no memory */
static unsigned long from_us = 0;
static uintptr_t our_begin = 0, our_end = 0;
static uintptr_t latest_from_us = 0; /* who asked for memory, as an offset in the object */

/* Whether it is from us. */
static int count(uintptr_t caller) {
    if (!counting || caller < our_begin || caller >= our_end) return 0;
    latest_from_us = caller - our_begin;
    ++from_us;
    return 1;
}
void* malloc(size_t bytes) {
    if (count((uintptr_t)__builtin_return_address(0)) && refusing) return NULL;
    return __libc_malloc(bytes);
}
void* calloc(size_t items, size_t bytes) {
    count((uintptr_t)__builtin_return_address(0));
    return __libc_calloc(items, bytes);
}
void* realloc(void* old, size_t bytes) {
    count((uintptr_t)__builtin_return_address(0));
    return __libc_realloc(old, bytes);
}

/* The addresses that the preload object is mapped to. */
static void find_us(void) {
    Dl_info info;
    if (look_last_call == NULL || !dladdr((void*)look_last_call, &info)) return;
    FILE* const maps = fopen("/proc/self/maps", "r");
    char line[1024];
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        if (strstr(line, strrchr(info.dli_fname, '/')) == NULL || sscanf(line, "%lx-%lx", &begin, &end) != 2)
            continue;
        if (our_begin == 0 || begin < our_begin) our_begin = begin;
        if (end > our_end) our_end = end;
    }
    if (maps) fclose(maps);
}

#endif
