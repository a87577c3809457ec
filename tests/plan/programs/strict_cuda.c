/* A stand-in for libcuda.so.1 that is as strict as the driver: its memory lies at addresses that the CPU may
 * not touch, a thread copies only while it has a context, and memory of a pool belongs to no context. Behind
 * each address lies memory that only the stand-in knows. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most = 256, device = 2, no_context = 201, invalid = 1, no_memory = 2 };

typedef struct {
    unsigned char *address, *behind;
    size_t bytes;
    int pool;
} Region;

static Region regions[most];
static int made;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int context_of_device;
static _Thread_local void* contexts[16];
static _Thread_local int depth;

static unsigned long copied;

/* How often something was copied. */
unsigned long strict_copies(void) { return __atomic_load_n(&copied, __ATOMIC_RELAXED); }

static void* current(void) { return depth > 0 ? contexts[depth - 1] : NULL; }

int cuInit(unsigned flags) { return flags == 0 ? 0 : invalid; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* which, int ordinal) { return *which = ordinal, ordinal == 0 ? 0 : 101; }
int cuDevicePrimaryCtxRetain(void** context, int which) {
    return *context = &context_of_device, which == 0 ? 0 : 101;
}
int cuDevicePrimaryCtxRelease_v2(int which) { return which == 0 ? 0 : 101; }
int cuCtxGetCurrent(void** context) { return *context = current(), 0; }
int cuCtxSetCurrent(void* context) {
    if (depth == 0) depth = 1;
    contexts[depth - 1] = context;
    return 0;
}
int cuCtxPushCurrent_v2(void* context) {
    if (depth == 16 || context == NULL) return invalid;
    contexts[depth++] = context;
    return 0;
}
int cuCtxPopCurrent_v2(void** context) {
    if (depth == 0) return no_context;
    *context = contexts[--depth];
    return 0;
}
/* Copies to the device since somebody waited for them. */
static int under_way;
int strict_under_way(void) { return __atomic_load_n(&under_way, __ATOMIC_RELAXED); }
int cuStreamSynchronize(void* stream) {
    if (current() == NULL) return no_context;
    if (stream != NULL) return invalid;
    __atomic_store_n(&under_way, 0, __ATOMIC_RELAXED);
    return 0;
}
int cuCtxSynchronize(void) { return current() != NULL ? 0 : no_context; }

static int allocate(unsigned long long* address, size_t bytes, int pool) {
    if (current() == NULL) return no_context;
    const int file = memfd_create("device", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0) return no_memory;
    Region region = {mmap(NULL, bytes, PROT_NONE, MAP_SHARED, file, 0),
                     mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), bytes, pool};
    close(file);
    if (region.address == MAP_FAILED || region.behind == MAP_FAILED) return no_memory;
    pthread_mutex_lock(&lock);
    const int fits = made < most;
    if (fits) regions[made++] = region;
    pthread_mutex_unlock(&lock);
    *address = (uintptr_t)region.address;
    return fits ? 0 : no_memory;
}
int cuMemAlloc_v2(unsigned long long* address, size_t bytes) { return allocate(address, bytes, 0); }
int cuMemAllocAsync(unsigned long long* address, size_t bytes, void* stream) {
    return stream == NULL ? allocate(address, bytes, 1) : invalid;
}

/* The region that has these bytes; NULL: none. */
static const Region* region_of(unsigned long long address, size_t bytes) {
    const Region* found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < made; ++i) {
        const unsigned long long begin = (uintptr_t)regions[i].address;
        if (address >= begin && address + bytes <= begin + regions[i].bytes) found = &regions[i];
    }
    pthread_mutex_unlock(&lock);
    return found;
}

int cuPointerGetAttribute(void* data, int attribute, unsigned long long address) {
    const Region* const region = region_of(address, 1);
    if (region == NULL) return invalid;
    switch (attribute) {
        case 1: /* the context */
            *(void**)data = region->pool ? NULL : &context_of_device;
            return region->pool ? invalid : 0;
        case 2: /* the kind of memory */
            *(unsigned*)data = device;
            return 0;
        case 9: /* the device */
            *(int*)data = 0;
            return 0;
        case 11: /* where the allocation begins */
            *(unsigned long long*)data = (uintptr_t)region->address;
            return 0;
        case 12: /* and its bytes */
            *(size_t*)data = region->bytes;
            return 0;
        default:
            return invalid;
    }
}

static void* reachable(unsigned long long address, size_t bytes) {
    const Region* const region = region_of(address, bytes);
    return region == NULL ? (void*)(uintptr_t)address
                          : region->behind + (address - (uintptr_t)region->address);
}
int cuMemcpy(unsigned long long to, unsigned long long from, size_t bytes) {
    if (current() == NULL) return no_context;
    memcpy(reachable(to, bytes), reachable(from, bytes), bytes);
    if (region_of(to, bytes) != NULL && region_of(from, bytes) == NULL)
        __atomic_add_fetch(&under_way, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&copied, 1, __ATOMIC_RELAXED);
    return 0;
}
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
    if (region_of(to, bytes) == NULL) return invalid;
    const int error = cuMemcpy(to, (uintptr_t)from, bytes);
    return error != 0 ? error : cuStreamSynchronize(NULL);
}
int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
    if (region_of(from, bytes) == NULL) return invalid;
    return cuMemcpy((uintptr_t)to, from, bytes);
}

/* CUDA_MEMCPY2D of cuda.h; kinds of memory: 1 the host's, 2 the device's. */
typedef struct {
    size_t x, y;
    unsigned kind;
    void* host;
    unsigned long long device;
    void* array;
    size_t pitch;
} Place;
typedef struct {
    Place from, to;
    size_t width, height;
} Rows;

static unsigned char* place(const Place* at, size_t width, size_t height) {
    if (at->x != 0 || at->y != 0 || at->array != NULL || at->pitch < width || at->pitch > INT32_MAX)
        return NULL;
    if (at->kind == 1) return at->host;
    const size_t bytes = (height - 1) * at->pitch + width;
    return at->kind == 2 && region_of(at->device, bytes) != NULL ? reachable(at->device, bytes) : NULL;
}
int cuMemcpy2DUnaligned_v2(const Rows* rows) {
    if (current() == NULL) return no_context;
    if (rows->width == 0 || rows->height == 0) return 0;
    const unsigned char* const from = place(&rows->from, rows->width, rows->height);
    unsigned char* const to = place(&rows->to, rows->width, rows->height);
    if (from == NULL || to == NULL) return invalid;
    if (rows->to.kind == 2) __atomic_add_fetch(&under_way, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&copied, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < rows->height; ++i)
        memcpy(to + i * rows->to.pitch, from + i * rows->from.pitch, rows->width);
    return 0;
}
