/* The next definition of a wrapped function, after the object this is compiled into: a tool stacked below us,
 * or the native library; the latter's where the user asks for that. Included by the generated wrappers; every
 * object resolves its own, because dlsym(RTLD_NEXT) starts behind the object that calls it. */
#ifndef THALWEG_INTERPOSE_NEXT_H
#define THALWEG_INTERPOSE_NEXT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "interpose/runtime.h"

/* A part of a wrapper that another part only jumps to. */
#define THALWEG_APART __attribute__((noinline))
/* A wrapper whose way past us lies in as few cache lines as it can. */
#define THALWEG_IN_A_LINE __attribute__((aligned(64)))

/* Zero-initialised but for the name; resolved at the first call, by any thread, to the same value. */
typedef struct ThalwegNext {
    const char* name;
    void* self; /* our own definition, which a search by name must not return */
    _Atomic(void*) address;
} ThalwegNext;

static void* __attribute__((noinline, cold, unused)) thalweg_resolve_next(ThalwegNext* next) {
    void* address = thalweg_find_past_tools(next->name);
    if (address == NULL) address = dlsym(RTLD_NEXT, next->name);
    dlerror(); /* a failed look-up of ours must not be what the program's dlerror() reports */
    if (address == NULL || address == next->self) address = thalweg_find_native(next->name, next->self);
    if (address == NULL) address = thalweg_find_extension(next->name);
    if (address == NULL) thalweg_report_missing(next->name);
    atomic_store_explicit(&next->address, address, memory_order_relaxed);
    return address;
}

/* Null where no library has it; that has been reported then. Relaxed: the code behind the address was there
 * before. */
static inline void* thalweg_next(ThalwegNext* next) {
    void* address = atomic_load_explicit(&next->address, memory_order_relaxed);
    return __builtin_expect(address != NULL, 1) ? address : thalweg_resolve_next(next);
}

#endif
