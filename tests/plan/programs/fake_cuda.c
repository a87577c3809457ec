/* A stand-in for libcuda.so.1: "device memory" that faults when the CPU touches it, and the few calls that
 * recognise and copy it. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static unsigned char* region;
static size_t region_bytes;
static unsigned long copies;

void* fake_alloc(size_t bytes) {
    region_bytes = (bytes + 4095) / 4096 * 4096;
    region = mmap(NULL, region_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return region;
}
unsigned long fake_copies(void) { return copies; }

static int inside(uintptr_t address) {
    return region != NULL && address >= (uintptr_t)region && address < (uintptr_t)region + region_bytes;
}
static void move(void* to, const void* from, size_t bytes) {
    mprotect(region, region_bytes, PROT_READ | PROT_WRITE);
    memcpy(to, from, bytes);
    mprotect(region, region_bytes, PROT_NONE);
}
void fake_write(void* device, const void* from, size_t bytes) { move(device, from, bytes); }
void fake_read(void* to, const void* device, size_t bytes) { move(to, device, bytes); }

/* The driver's names: attribute 2 is the kind of memory, 2 means device. */
int cuPointerGetAttribute(void* data, int attribute, unsigned long long address) {
    if (!inside((uintptr_t)address)) return 1;
    if (attribute != 2) return 1;
    *(unsigned*)data = 2;
    return 0;
}
int cuMemcpy(unsigned long long to, unsigned long long from, size_t bytes) {
    if (!inside((uintptr_t)to) && !inside((uintptr_t)from)) return 1;
    ++copies;
    move((void*)(uintptr_t)to, (const void*)(uintptr_t)from, bytes);
    return 0;
}
