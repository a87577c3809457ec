/* What a wrapper keeps beside itself of the native function that it jumps to without asking: one cache line,
 * which is all that such a call touches of ours. In C, for the wrappers; bypass.h fills it. */
#ifndef THALWEG_PLAN_SHORTCUT_H
#define THALWEG_PLAN_SHORTCUT_H

#include <stdint.h>

/* Zero at first. Fields are read and written one by one, atomically: `below` stays 0 until the others are
 * there. */
typedef struct ThalwegShortcut {
    void* native;   /* null while the wrapper has to ask */
    uint64_t below; /* it stands for calls of fewer bytes; 2^64-1: for all */
    /* A datatype whose handle h has (h & mask) == predefined is a predefined one, of (h >> 8 & 255) bytes. Of
     * any other the wrapper has to ask. */
    uint32_t mask, predefined;
} __attribute__((aligned(32))) ThalwegShortcut;

static inline void* thalweg_native_of(const ThalwegShortcut* shortcut) {
    return __atomic_load_n(&shortcut->native, __ATOMIC_RELAXED);
}

/* Whether it stands for `count` elements of `datatype`. An int handle may come with anything in its upper
 * half; a negative count stands for more than any message. */
static inline int thalweg_stands_for(const ThalwegShortcut* shortcut, int64_t count, intptr_t datatype) {
    const uint64_t below = __atomic_load_n(&shortcut->below, __ATOMIC_RELAXED);
    if (below == UINT64_MAX) return 1;
    const uint32_t handle = (uint32_t)datatype;
    if ((handle & __atomic_load_n(&shortcut->mask, __ATOMIC_RELAXED)) !=
        __atomic_load_n(&shortcut->predefined, __ATOMIC_RELAXED))
        return 0;
    /* Of at most 2^56 elements, as no limit is near. */
    return (uint64_t)count < below && (uint64_t)count * (handle >> 8 & 255) < below;
}

#endif
