/* What a wrapper keeps beside itself of the native function that it jumps to without asking: one cache line,
 * which is all that such a call touches of ours, and one more where handles tell no sizes and the type is a
 * rare one; another one where a trial leaves long broadcasts to the library for a while. In C, for the
 * wrappers; bypass.h and unasked.h fill it. */
#ifndef THALWEG_PLAN_SHORTCUT_H
#define THALWEG_PLAN_SHORTCUT_H

#include <stddef.h>
#include <stdint.h>

/* Sizes of predefined datatypes by their handles, for an MPI whose handles do not tell them. A type whose
 * place another one has is not in it. Never changes. */
enum { thalweg_type_places = 64 };
typedef struct ThalwegTypeSize {
    intptr_t handle;
    uint64_t bytes; /* 0: there is none */
} ThalwegTypeSize;
typedef struct ThalwegTypeSizes {
    uint64_t shift;
    intptr_t byte, real; /* MPI_BYTE and MPI_DOUBLE, which are most of what programs send */
    ThalwegTypeSize of[thalweg_type_places];
} ThalwegTypeSizes;

static inline unsigned thalweg_place_of(uint64_t shift, intptr_t handle) {
    return (unsigned)((uintptr_t)handle >> shift & (thalweg_type_places - 1));
}

/* Zero at first. Fields are read and written one by one, atomically. */
typedef struct ThalwegShortcut {
    void* native;       /* for calls of every size; null while the wrapper has to look */
    void* native_below; /* for calls of fewer than `below` bytes; null while the wrapper has to ask */
    uint64_t below;
    /* A datatype whose handle h has (h & mask) == predefined is a predefined one, of (h >> 8 & 255) bytes. Of
     * any other the wrapper has to ask. */
    uint32_t mask, predefined;
    const ThalwegTypeSize* sizes; /* or null; what of the table is asked for first lies here, too */
    uint64_t shift;
    intptr_t byte, real;
} __attribute__((aligned(64))) ThalwegShortcut;

static inline void* thalweg_native_of(const ThalwegShortcut* shortcut) {
    return __atomic_load_n(&shortcut->native, __ATOMIC_RELAXED);
}

/* Of one element, where it is known; else 0. An int handle may come with anything in its upper half. */
static inline uint64_t thalweg_element_bytes(const ThalwegShortcut* shortcut, intptr_t datatype) {
    const uint32_t handle = (uint32_t)datatype;
    if ((handle & __atomic_load_n(&shortcut->mask, __ATOMIC_RELAXED)) ==
        __atomic_load_n(&shortcut->predefined, __ATOMIC_RELAXED))
        return handle >> 8 & 255;
    const ThalwegTypeSize* const sizes = __atomic_load_n(&shortcut->sizes, __ATOMIC_RELAXED);
    if (sizes == NULL) return 0;
    if (datatype == __atomic_load_n(&shortcut->byte, __ATOMIC_RELAXED)) return 1;
    if (datatype == __atomic_load_n(&shortcut->real, __ATOMIC_RELAXED)) return sizeof(double);
    const uint64_t shift = __atomic_load_n(&shortcut->shift, __ATOMIC_RELAXED);
    const ThalwegTypeSize* const found = &sizes[thalweg_place_of(shift, datatype)];
    return found->handle == datatype ? found->bytes : 0;
}

/* Whether `count` elements of `datatype` are fewer bytes than `below`, for all that the handle tells. A
 * negative count stands for more than any message. */
static inline int thalweg_is_short(const ThalwegShortcut* shortcut, uint64_t below, int64_t count,
                                   intptr_t datatype) {
    const uint64_t bytes = thalweg_element_bytes(shortcut, datatype);
    /* Limits are below 2^56: no product wraps. */
    return bytes != 0 && (uint64_t)count < below && (uint64_t)count * bytes < below;
}

/* For so many of that type; null where they are not known to be short. */
static inline void* thalweg_native_of_short(const ThalwegShortcut* shortcut, int64_t count,
                                            intptr_t datatype) {
    /* What it goes by was written before it. */
    void* const native = __atomic_load_n(&shortcut->native_below, __ATOMIC_ACQUIRE);
    const uint64_t below = __atomic_load_n(&shortcut->below, __ATOMIC_RELAXED);
    return native != NULL && thalweg_is_short(shortcut, below, count, datatype) ? native : NULL;
}

/* The same for what one line of data and two of code can tell: null for zero bytes, and for the rarer types
 * where handles tell no sizes. */
static inline void* thalweg_native_of_plainly_short(const ThalwegShortcut* shortcut, int64_t count,
                                                    intptr_t datatype) {
    void* const native = __atomic_load_n(&shortcut->native_below, __ATOMIC_ACQUIRE);
    if (__builtin_expect(native == NULL, 0)) return NULL;
    const uint64_t below = __atomic_load_n(&shortcut->below, __ATOMIC_RELAXED);
    const uint32_t handle = (uint32_t)datatype;
    uint64_t bytes = handle >> 8 & 255;
    if ((handle & __atomic_load_n(&shortcut->mask, __ATOMIC_RELAXED)) !=
        __atomic_load_n(&shortcut->predefined, __ATOMIC_RELAXED)) {
        if (datatype == __atomic_load_n(&shortcut->byte, __ATOMIC_RELAXED))
            bytes = 1;
        else if (datatype == __atomic_load_n(&shortcut->real, __ATOMIC_RELAXED))
            bytes = sizeof(double);
        else
            return NULL;
    }
    /* As above: no product wraps, but that of nothing, which is then more than any limit. */
    if (__builtin_expect((uint64_t)count >= below, 0)) return NULL;
    return (uint64_t)count * bytes - 1 < below - 1 ? native : NULL;
}

/* Of all wrappers of calls that complete, start or free requests: such a call concerns us only while requests
 * of ours exist. What programs call most lies in the first line. Zero at first. */
enum ThalwegCompletion {
    thalweg_completion_MPI_Wait,
    thalweg_completion_MPI_Waitall,
    thalweg_completion_MPI_Test,
    thalweg_completion_MPI_Start,
    thalweg_completion_MPI_Startall,
    thalweg_completion_MPI_Testall,
    thalweg_completion_MPI_Waitany,
    thalweg_completion_MPI_Testany,
    thalweg_completion_MPI_Waitsome,
    thalweg_completion_MPI_Testsome,
    thalweg_completion_MPI_Request_get_status,
    thalweg_completion_MPI_Request_free,
    thalweg_completion_MPI_Cancel,
    thalweg_completions
};
typedef struct ThalwegCompletions {
    uint64_t requests;                 /* of ours that exist */
    void* native[thalweg_completions]; /* null while the wrapper has to ask */
} __attribute__((aligned(64))) ThalwegCompletions;
#ifdef __cplusplus
extern "C"
#else
extern
#endif
    ThalwegCompletions thalweg_completion_calls __attribute__((visibility("hidden")));

/* Null where the wrapper has to ask. A request of ours in the call's arguments was made before the call. */
static inline void* thalweg_native_of_completion(enum ThalwegCompletion call) {
    if (__atomic_load_n(&thalweg_completion_calls.requests, __ATOMIC_RELAXED) != 0) return NULL;
    return __atomic_load_n(&thalweg_completion_calls.native[call], __ATOMIC_RELAXED);
}

/* Of a wrapper whose calls matter only while somebody is to be met. Zero at first. */
typedef struct ThalwegMeetingShortcut {
    void* native; /* null while the wrapper has to ask */
} __attribute__((aligned(64))) ThalwegMeetingShortcut;

/* Of a wrapper that makes requests. Zero at first. */
typedef struct ThalwegRequestShortcut {
    void* native;   /* null while the wrapper has to ask */
    uint64_t calls; /* that were made by it */
} __attribute__((aligned(64))) ThalwegRequestShortcut;

static inline void* thalweg_native_of_meeting(const ThalwegMeetingShortcut* shortcut) {
    return __atomic_load_n(&shortcut->native, __ATOMIC_RELAXED);
}
/* Null where the wrapper has to ask. Otherwise the call is made by it, and counted. */
static inline void* thalweg_native_of_request(ThalwegRequestShortcut* shortcut) {
    void* const native = __atomic_load_n(&shortcut->native, __ATOMIC_RELAXED);
    if (native != NULL) __atomic_fetch_add(&shortcut->calls, 1, __ATOMIC_RELAXED);
    return native;
}

/* What a trial leaves to the native library, as far as a wrapper passes it on by itself and counts down. */
typedef struct ThalwegUnasked {
    void* native; /* for the next `left` calls on `comm`; null while the wrapper has to ask */
    intptr_t comm, handle_bits;
    uint64_t left; /* of the thread that makes the calls on `comm` */
    void* holder;  /* whose calls they are; null: nobody's */
} ThalwegUnasked;

/* Whether a call is one of them: `differing` are the bits in which its handles are others. Counts it. */
static inline int thalweg_count_down(ThalwegUnasked* unasked, intptr_t differing) {
    if ((differing & __atomic_load_n(&unasked->handle_bits, __ATOMIC_RELAXED)) != 0 || unasked->left == 0)
        return 0;
    --unasked->left;
    return 1;
}

/* Of a wrapper of exchanges. Zero at first. */
typedef struct ThalwegExchangeShortcut {
    void* native; /* for every call; null while the wrapper has to look */
    ThalwegUnasked unasked;
} __attribute__((aligned(64))) ThalwegExchangeShortcut;

/* Null where the wrapper has to look. */
static inline void* thalweg_native_of_exchange(const ThalwegExchangeShortcut* shortcut) {
    return __atomic_load_n(&shortcut->native, __ATOMIC_RELAXED);
}
/* Then: null where it has to ask. Otherwise the call is made by it, and counted; *holder is whose it is. */
static inline void* thalweg_native_of_unasked(ThalwegExchangeShortcut* shortcut, intptr_t comm,
                                              void** holder) {
    ThalwegUnasked* const unasked = &shortcut->unasked;
    void* const native = __atomic_load_n(&unasked->native, __ATOMIC_ACQUIRE);
    if (native == NULL) return NULL;
    const intptr_t differing = comm ^ __atomic_load_n(&unasked->comm, __ATOMIC_RELAXED);
    *holder = __atomic_load_n(&unasked->holder, __ATOMIC_RELAXED);
    return thalweg_count_down(unasked, differing) ? native : NULL;
}

/* Of a wrapper of broadcasts, beside what it has for short ones: of those of one size, by how many elements
 * of which type the wrapper's own calls describe them. Zero at first. */
typedef struct ThalwegBroadcastShortcut {
    ThalwegUnasked unasked;
    intptr_t datatype; /* a predefined one: its handle is never another's */
    int64_t count;
    uint32_t ranks; /* of the communicator */
} __attribute__((aligned(64))) ThalwegBroadcastShortcut;

/* MPI_BOTTOM and MPI_IN_PLACE, which are 0 and 1 or -1, and nothing of a predefined type lies there. */
static inline int thalweg_is_no_place(const void* buffer) { return (uintptr_t)buffer + 1 <= 2; }

/* As of an exchange. Wrong arguments are the native library's to report, and are not counted: of those the
 * wrapper asks. */
static inline void* thalweg_native_of_broadcast(ThalwegBroadcastShortcut* shortcut, const void* buffer,
                                                int64_t count, intptr_t datatype, int root, intptr_t comm) {
    ThalwegUnasked* const unasked = &shortcut->unasked;
    void* const native = __atomic_load_n(&unasked->native, __ATOMIC_ACQUIRE);
    if (native == NULL) return NULL;
    const intptr_t differing = (comm ^ __atomic_load_n(&unasked->comm, __ATOMIC_RELAXED)) |
                               (datatype ^ __atomic_load_n(&shortcut->datatype, __ATOMIC_RELAXED));
    if (count != __atomic_load_n(&shortcut->count, __ATOMIC_RELAXED) ||
        (uint32_t)root >= __atomic_load_n(&shortcut->ranks, __ATOMIC_RELAXED) || thalweg_is_no_place(buffer))
        return NULL;
    return thalweg_count_down(unasked, differing) ? native : NULL;
}

#endif
